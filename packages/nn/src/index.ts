/** nn's exports for sibling packages. Users import `postgrad/nn` and `postgrad/optim`. */
export * from './modules.js'
export * from './optim.js'
