/** What apps of this repository need beyond the public names. */
export { isTypeScript } from './program.js'
