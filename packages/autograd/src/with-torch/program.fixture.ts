/** Random programs (`builder.fixture.ts`): run by `run.fixture.ts` on postgrad and by `scripts/golden/random_graphs.py` on PyTorch. */
import { Builder, full, numel, type Program } from './builder.fixture.js'
import { COMPUTE, CUSTOM, FLAGS, hasHookedView, loss, PASSES, VIEWS, WRITES } from './steps.fixture.js'

/** Elements of what is written or viewed: a program is small. */
const SMALL = 24

/** How often a step is of each kind. */
const KINDS = [
  'compute',
  'compute',
  'compute',
  'view',
  'view',
  'view',
  'view',
  'write',
  'write',
  'write',
  'write',
  'flag',
  'custom',
  'pass',
]

function step(b: Builder): void {
  const kind = b.of(KINDS)
  if (kind === 'compute' || kind === 'custom' || kind === 'pass') {
    const table = { compute: COMPUTE, custom: CUSTOM, pass: PASSES }[kind]
    table[b.of(Object.keys(table))]!(b)
    return
  }
  // A leaf that requires grad refuses writes, and a program of refusals shows little.
  const later = kind === 'write' && !b.chance(6) && b.shapes.length > b.leaves.length
  const picked = b.pick((shape) => numel(shape) <= SMALL && (kind !== 'view' || full(shape)))
  if (picked === null) return
  const x = later ? Math.max(picked, b.leaves.length) : picked
  const table = kind === 'view' ? VIEWS : kind === 'write' ? WRITES : FLAGS
  if (kind === 'write' && hasHookedView(b)) return
  if (kind === 'flag' && b.quietViews.has(x)) return
  table[b.of(Object.keys(table))]!(b, x, b.shapes[x]!)
}

export function randomProgram(seed: number): Program {
  const b = new Builder(seed)
  for (let n = 1 + b.below(3); n > 0; n--) b.leaf()
  // Most begin with a result that may be written to.
  if (!b.chance(5)) b.step('mulNumber', [0], [1.5], [b.shapes[0]!], true)
  for (let n = 3 + b.below(12); n > 0; n--) step(b)
  for (let n = 1 + b.below(2); n > 0; n--) {
    loss(b, 2)
    b.step('backward', [b.shapes.length - 1], [{ gradient: false, retain: n > 1, create: b.chance(6) }], [], true)
  }
  return { seed, leaves: b.leaves, steps: b.steps }
}
