/** The door of operations as functions, which autograd passes on once they record. */
export * from './ops/all.js'
