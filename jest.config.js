/**
 * Jest runs on the compiled output (`tsc -b` first), so that worker URLs resolve as they do in production. Three lanes:
 * unit (one thread, no I/O), sim (a simulated cluster in one thread), real (threads and sockets). A fourth, soak, holds `*.soak.test.ts`:
 * what takes longer than a change should wait for. It exists under POSTGRAD_SOAK=1 only, which `npm run soak` sets.
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

const soak = process.env.POSTGRAD_SOAK === '1'

export default {
  projects: soak
    ? [lane('soak', '/dist/.*\\.soak\\.test\\.js$')]
    : [
        lane('unit', '/dist/(?!.*\\.(sim|real|soak)\\.test\\.js$).*\\.test\\.js$'),
        lane('sim', '/dist/.*\\.sim\\.test\\.js$'),
        lane('real', '/dist/.*\\.real\\.test\\.js$'),
      ],
  testTimeout: soak ? 3_600_000 : 60_000,
}
