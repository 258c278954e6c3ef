/** The public operations as functions; autograd exports them again, recorded. */
export * from './ops/all.js'
