/** Random distributed programs: their text, a generator from a seed, an interpreter, and PyTorch's numbers for the first seeds. */
export * from './generate.js'
export * from './golden.js'
export * from './interpret.js'
export * from './program.js'
