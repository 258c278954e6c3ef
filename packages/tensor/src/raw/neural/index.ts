/** The raw operations of neural networks by name, as `raw/index.ts` has the others. */
export { linear } from './linear.js'
