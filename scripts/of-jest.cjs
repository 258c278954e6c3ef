/** Loads packages that jest needs and this repository does not name, by the chain of packages to them. */
const { createRequire } = require('node:module')

/** @returns the `require` of the last package of the chain, which begins below jest-cli */
module.exports = (...chain) => ['jest', 'jest-cli', ...chain].reduce((load, name) => createRequire(load.resolve(name)), require)
