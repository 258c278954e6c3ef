/** What siblings get from nn. Users have two doors: `postgrad/nn` and `postgrad/optim`. */
export * from './modules.js'
export * from './optim.js'
