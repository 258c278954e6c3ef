/**
 * Jest runs on the compiled output, so that worker URLs resolve as they do in production: that of `tsc -b`, or under POSTGRAD_TREE what
 * `scripts/bundled-tree.mjs` made of it, as `npm test` does. Three lanes:
 * unit (one thread, no I/O), sim (a simulated cluster in one thread), real (threads and sockets). A fourth, soak, holds `*.soak.test.ts`:
 * what takes longer than a change should wait for. It exists under POSTGRAD_SOAK=1 only, which `npm run soak` sets.
 */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const tree = process.env.POSTGRAD_TREE ?? root

const lane = (displayName, testRegex, more = {}) => ({
  displayName,
  rootDir: tree,
  roots: ['<rootDir>/packages', '<rootDir>/apps'],
  testRegex,
  testPathIgnorePatterns: ['/node_modules/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/src/'],
  transform: {},
  testEnvironment: join(root, 'scripts/jest-environment.mjs'),
  ...more,
})

/** Node itself loads the tests, and the files of a process share the library. */
const nodeLoads =
  tree === root
    ? {}
    : { runtime: join(root, 'scripts/jest-runtime.cjs'), testEnvironment: join(root, 'scripts/jest-environment-node-loads.mjs') }

const soak = process.env.POSTGRAD_SOAK === '1'

export default {
  projects: soak
    ? [lane('soak', '/dist/.*\\.soak\\.test\\.js$', nodeLoads)]
    : [
        lane('unit', '/dist/(?!.*\\.(sim|real|soak)\\.test\\.js$).*\\.test\\.js$', nodeLoads),
        lane('sim', '/dist/.*\\.sim\\.test\\.js$', nodeLoads),
        lane('real', '/dist/.*\\.real\\.test\\.js$', nodeLoads),
      ],
  testSequencer: join(root, 'scripts/test-sequencer.mjs'),
  testTimeout: soak ? 3_600_000 : 60_000,
}
