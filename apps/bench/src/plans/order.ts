/**
 * Rows of bit-exact sums: a pass with its gradients in causal order against the same with them as they arrive (the limit of these rows), its time and how many
 * gradients wait. Many calls of one leaf at once are the worst case, calls one after the other the usual one.
 */
import { orderedPasses, type Shape } from '../order.js'
import type { PassStage } from '../pass-stage.js'
import type { RowPlan } from '../row.js'
import { microseconds } from './plan.js'

const WORKERS = 3
const PASSES: readonly (readonly [shape: Shape, uses: number, width: number])[] = [
  ['fan', 32, 3],
  ['fan', 32, 128],
  ['chain', 100, 3],
  ['chain', 100, 128],
]
const CALLS: Readonly<Record<Shape, string>> = { fan: 'calls at once', chain: 'calls in a chain' }
/** Elements a turn, and passes at most. */
const ELEMENTS_A_TURN = 1e6
const N_MAX = 20
const TURNS_MAX = 7

export function orderRows(stage: PassStage): RowPlan[] {
  return PASSES.flatMap(([shape, uses, width]): RowPlan[] => {
    const of = (what: 'seconds' | 'heldBack', ordered: boolean) =>
      stage.with(WORKERS, async (worker0, n) => (await worker0.run(orderedPasses, n, shape, uses, width, ordered))[what])
    const about = `bit-exact against arrival order, ${uses} ${CALLS[shape]} of one ${width}×${width} leaf`
    const n = Math.max(1, Math.min(N_MAX, Math.round(ELEMENTS_A_TURN / (uses * width ** 2))))
    const shared = { n, turnsMax: TURNS_MAX, higherIsBetter: false, peers: {}, aim: () => null }
    return [
      {
        ...shared,
        name: `${about}: a backward pass`,
        unit: 'µs',
        figure: microseconds,
        ours: of('seconds', true),
        limit: of('seconds', false),
      },
      {
        ...shared,
        name: `${about}: gradients that wait at once`,
        unit: 'gradients',
        // A count is the same in cold code.
        warm: 1,
        figure: (heldBack) => heldBack,
        ours: of('heldBack', true),
        limit: of('heldBack', false),
      },
    ]
  })
}
