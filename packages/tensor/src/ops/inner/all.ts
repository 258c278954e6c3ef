/** The operations that only operations call, all together. */
export * from './arithmetic.js'
export { attention } from './attention.js'
export * from './copies.js'
export * from './methods.js'
export * from './neural.js'
export * from './rows.js'
export * from './sums.js'
export * from './windows.js'
