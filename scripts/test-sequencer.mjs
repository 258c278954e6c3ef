/**
 * The order in which jest takes the files of tests: those that are known to take long, then by size, the largest first. Jest remembers times by the folder,
 * which is another one for each build, so it has sizes alone. Some of the longest are small, and would come last, while the other core idles.
 */
import { statSync } from 'node:fs'
import { sep } from 'node:path'
import ofJest from './of-jest.cjs'

/** The longest first, as two cores have them. */
const LONG = [
  ...['tensor/dist/kernels/gpujs/ops.test.js', 'tensor/dist/kernels/wasm/placement.test.js'],
  ...[
    'dist-autograd/dist/lineage/lineage.test.js',
    'tensor/dist/kernels/wasm/backend.test.js',
    'tensor/dist/kernels/gpujs/backend.test.js',
  ],
  ...['programs/programs.sim.test.js', 'groups/group.sim.test.js', 'lineage/lineage.sim.test.js', 'overlapping-passes.sim.test.js'],
  ...['rref-programs.sim.test.js', 'rref-model.sim.test.js', 'membership.sim.test.js', 'faulty-programs.sim.test.js'],
  ...[
    'cli.real.test.js',
    'char-lm/main.real.test.js',
    'on-threads/contexts.real.test.js',
    'membership.real.test.js',
    'main/ends.real.test.js',
  ],
  ...['data/dist/workers.real.test.js', 'bench/dist/main.real.test.js', 'gpujs/shapes.real.test.js', 'heap/turmoil.real.test.js'],
  ...['turmoil/turmoil.real.test.js', 'acceptance-ping-pong.real.test.js'],
].map((path) => path.replaceAll('/', sep))

const rank = ({ path }) => {
  const at = LONG.findIndex((end) => path.endsWith(end))
  return at < 0 ? LONG.length : at
}

const { default: Sequencer } = ofJest('jest-config')('@jest/test-sequencer')

export default class LongestFirst extends Sequencer {
  sort(tests) {
    const size = new Map(tests.map(({ path }) => [path, statSync(path).size]))
    return [...tests].sort((a, b) => rank(a) - rank(b) || size.get(b.path) - size.get(a.path))
  }
}
