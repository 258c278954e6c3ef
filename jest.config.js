/**
 * Jest runs on the compiled output (`tsc -b` first), so that worker URLs resolve as they do in production. Three lanes:
 * unit (one thread, no I/O), sim (a simulated cluster in one thread), real (threads and sockets).
 */
const lane = (displayName, testRegex, more = {}) => ({
  displayName,
  roots: ['<rootDir>/packages', '<rootDir>/apps'],
  testRegex,
  testPathIgnorePatterns: ['/node_modules/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/src/'],
  transform: {},
  testEnvironment: '<rootDir>/scripts/jest-environment.mjs',
  ...more,
})

export default {
  projects: [
    lane('unit', '/dist/(?!.*\\.(sim|real)\\.test\\.js$).*\\.test\\.js$'),
    lane('sim', '/dist/.*\\.sim\\.test\\.js$'),
    lane('real', '/dist/.*\\.real\\.test\\.js$'),
  ],
  testTimeout: 60_000,
}
