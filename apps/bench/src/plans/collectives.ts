/** Rows of collectives: allReduce by size on two ranks, on more, and both between two processes, compared with a plain copy of as many bytes and PyTorch's gloo. */
import { allReduces } from '../collectives.js'
import type { PassStage } from '../pass-stage.js'
import { warmCopy } from '../peers/javascript.js'
import type { LazyTorch } from '../peers/torch-peer.js'
import type { Contestant, RowPlan } from '../row.js'
import { microseconds, type TorchWork, torchOf } from './plan.js'

const SIZES = [
  ['4 KiB', 1024, 0.1],
  ['64 KiB', 16_384, null],
  ['1 MiB', 262_144, null],
  ['16 MiB', 4_194_304, null],
  ['64 MiB', 16_777_216, 1 / 3],
] as const
const RANKS = [4, 8, 16] as const
/** Of these ranks, half are in each of two processes. */
const RANKS_APART = [4, 8] as const
/** PyTorch's processes poll without rest; more of them than this say nothing but that. */
const TORCH_RANKS_MAX = 4
/** A turn is some 25 ms of copying at most. */
const ELEMENTS_A_TURN = 2e7
const N_MAX = 200
const TURNS_MAX = 9

export function collectiveRows(stage: PassStage, between: PassStage, withTorch: TorchWork, wide: LazyTorch | null): RowPlan[] {
  const row = (name: string, length: number, ours: Contestant, peers: RowPlan['peers'], share: number | null): RowPlan => ({
    name,
    ...{ unit: 'µs', n: Math.max(1, Math.min(N_MAX, Math.round(ELEMENTS_A_TURN / length))), turnsMax: TURNS_MAX },
    ...{ figure: microseconds, higherIsBetter: false, ours, limit: warmCopy(length), peers },
    aim: (_limit, others) => {
      const torch = torchOf(others)
      return share === null || torch === null ? null : share * torch
    },
  })
  const reduces = (of: PassStage, ranks: number, length: number): Contestant =>
    of.with(ranks, (worker0, n) => worker0.run(allReduces, n, length))
  const torch = (ranks: number, length: number): RowPlan['peers'] =>
    wide === null || ranks > TORCH_RANKS_MAX ? {} : { [wide.name]: { run: wide.work(ranks, 'all_reduces', length), share: 0.5 } }
  return [
    ...SIZES.map(([size, length, share]) =>
      row(`allReduce of ${size}, 2 ranks`, length, reduces(stage, 2, length), withTorch('all_reduces', 0.5, length), share),
    ),
    ...RANKS.flatMap((ranks) =>
      SIZES.slice(0, 3).map(([size, length]) =>
        row(`allReduce of ${size}, ${ranks} ranks`, length, reduces(stage, ranks, length), torch(ranks, length), null),
      ),
    ),
    ...SIZES.map(([size, length]) =>
      row(`allReduce of ${size}, 2 ranks in 2 processes`, length, reduces(between, 2, length), withTorch('all_reduces', 0.5, length), null),
    ),
    ...RANKS_APART.flatMap((ranks) =>
      [SIZES[0], SIZES[2], SIZES[3]].map(([size, length]) =>
        row(`allReduce of ${size}, ${ranks} ranks in 2 processes`, length, reduces(between, ranks, length), torch(ranks, length), null),
      ),
    ),
  ]
}
