/** The acceptance cases: programs of several workers with their expected numbers, run simulated, inlined and on threads. */
export * from './cases/backward.js'
export * from './cases/case.js'
export * from './cases/clean-up.js'
export * from './cases/contexts.js'
export * from './cases/deaths.js'
export * from './cases/dist-optim.js'
export * from './cases/documentation.js'
export * from './cases/error-check.js'
export * from './cases/errors.js'
export * from './cases/failing.js'
export * from './cases/golden.js'
export * from './cases/graph.js'
export * from './cases/layers.js'
export * from './cases/load.js'
export * from './cases/parameters.js'
export * from './cases/ping-pong.js'
export * as cases from './cases/program.js'
export * from './cases/scenario.js'
export * from './cases/second-derivatives.js'
export * from './cases/training.js'

/** The module that `launch` loads to run the cases. */
export const casesProgram = new URL('./cases/program.js', import.meta.url)
