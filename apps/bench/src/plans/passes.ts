/** Rows of distributed passes: long chains, wide fans, many at once. `plots/sweeps.ts` measures the same over more lengths and widths. */
import { others, type PassStage } from '../pass-stage.js'
import { chains, concurrent, fans } from '../passes.js'
import type { LazyTorch } from '../peers/torch-peer.js'
import { type Contestant, type RowPlan, WARM_PASSES } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'
import { microseconds, type TorchWork } from './plan.js'

const HOPS = [10, 100, 1000, 10_000] as const
/** So many hops a turn: of short chains several. */
const HOPS_A_TURN = 1000
const WIDTHS = [2, 8, 32] as const
/** PyTorch's processes poll without rest; more of them than this say nothing but that. */
const TORCH_WIDTH_MAX = 8
const AT_ONCE = [1, 4, 16, 64] as const
/** So many passes, one after the other, users see before anything is compiled for good. */
const COLD_PASSES = [1, 100, 1000] as const
/** Each launches a cluster. */
const COLD_TURNS_MAX = 5
/** A turn of the longest chain takes PyTorch some eight seconds. */
const TURNS_MAX = 5

export function passRows(stage: PassStage, raw: ThreadPair, withTorch: TorchWork, wide: LazyTorch | null): RowPlan[] {
  return [
    ...HOPS.map(
      (hops): RowPlan => ({
        name: `backward of a chain of ${hops.toLocaleString('en-US')} calls, per call`,
        unit: 'µs',
        n: Math.max(1, HOPS_A_TURN / hops),
        turnsMax: TURNS_MAX,
        warm: WARM_PASSES / hops,
        figure: (seconds, n) => microseconds(seconds, n * hops),
        higherIsBetter: false,
        ours: stage.with(2, (worker0, n) => worker0.run(chains, n, hops)),
        limit: (n) => raw.roundTrip(n * hops),
        peers: withTorch('chains', 0.1, hops),
        aim: (limit) => 1.8 * limit,
      }),
    ),
    ...AT_ONCE.map(
      (count): RowPlan => ({
        name: `the design note's whole pass, ${count} at once, per pass`,
        unit: 'µs',
        n: 512,
        turnsMax: TURNS_MAX,
        warm: WARM_PASSES,
        figure: microseconds,
        higherIsBetter: false,
        ours: stage.with(2, (worker0, n) => worker0.run(concurrent, n, count)),
        limit: raw.roundTrip,
        peers: withTorch('concurrent', 0.25, count),
        aim: () => null,
      }),
    ),
    ...COLD_PASSES.map(
      (passes): RowPlan => ({
        name: `the design note's whole pass, the first ${passes} of a new cluster against warm ones`,
        unit: 'µs',
        n: passes,
        turnsMax: COLD_TURNS_MAX,
        warm: 0,
        figure: microseconds,
        higherIsBetter: false,
        ours: stage.fresh(2, (worker0, n) => worker0.run(concurrent, n, 1)),
        limit: warmPasses(stage),
        peers: {},
        aim: () => null,
      }),
    ),
    ...WIDTHS.map(
      (width): RowPlan => ({
        name: `backward of a fan over ${width} workers`,
        unit: 'µs',
        n: 50,
        turnsMax: TURNS_MAX,
        warm: WARM_PASSES,
        figure: microseconds,
        higherIsBetter: false,
        ours: stage.with(1 + width, (worker0, n) => worker0.run(fans, n, others(width))),
        limit: (n) => raw.pipelined(n * width),
        peers: wide === null || width > TORCH_WIDTH_MAX ? {} : { [wide.name]: { run: wide.work(1 + width, 'fans', width), share: 0.2 } },
        aim: () => null,
      }),
    ),
  ]
}

/** The same passes, when they have been done so often that they get no faster. */
function warmPasses(stage: PassStage): Contestant {
  let isWarm = false
  const passes = stage.with(2, (worker0, n) => worker0.run(concurrent, n, 1))
  return async (n) => {
    if (!isWarm) await passes(WARM_PASSES)
    isWarm = true
    return passes(n)
  }
}
