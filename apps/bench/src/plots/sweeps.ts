/** How the cost of one pass grows: with hops, workers, the tensors' size, and other passes at the same time. */
import { others, type PassStage } from '../pass-stage.js'
import { chains, concurrent, fans, rings, sized } from '../passes.js'
import type { LazyTorch } from '../peers/torch-peer.js'
import { WARM_PASSES } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'
import type { Series, SweepPlan } from './sweep.js'

/** PyTorch's processes poll without rest, so more of them than cores mostly wait for each other. */
const TORCH_WORKERS_MAX = 8
const BYTES = 4
const warm = (): number => WARM_PASSES

export function sweepPlans(stage: PassStage, raw: ThreadPair, torch: LazyTorch | null): SweepPlan[] {
  const peer = (processes: (size: number) => number, name: string, more: Omit<Series, 'name' | 'at'> = {}): Series[] =>
    torch === null ? [] : [{ name: `PyTorch ${torch.version}`, at: (size) => torch.work(processes(size), name, size), ...more }]
  const workers = (work: typeof fans) => (size: number) => stage.with(1 + size, (worker0, n) => worker0.run(work, n, others(size)))
  const rawTrips = (name: string, trips: (size: number) => number, parts?: (size: number) => number): Series => ({
    name,
    at: (size) => (n) => raw.roundTrip(n * trips(size)),
    ...(parts === undefined ? {} : { parts }),
  })
  return [
    {
      id: 'hops',
      title: 'Backward of a chain of calls',
      x: 'calls to the other worker and back',
      y: 'time a call',
      base: 10,
      sizes: [1, 10, 100, 1000, 10_000],
      series: [
        {
          name: 'postgrad',
          at: (hops) => stage.with(2, (worker0, n) => worker0.run(chains, n, hops)),
          parts: (hops) => hops,
          warm: (hops) => WARM_PASSES / hops,
        },
        ...peer(() => 2, 'chains', { parts: (hops) => hops }),
        rawTrips(
          'a message there and back',
          (hops) => hops,
          (hops) => hops,
        ),
      ],
    },
    {
      id: 'at-once',
      title: "Passes of the design note's example at once, between two workers",
      x: 'passes at once',
      y: 'time a pass',
      base: 2,
      sizes: [1, 2, 4, 8, 16, 32, 64],
      series: [
        { name: 'postgrad', at: (count) => stage.with(2, (worker0, n) => worker0.run(concurrent, n, count)), warm },
        ...peer(() => 2, 'concurrent'),
      ],
    },
    {
      id: 'size',
      title: 'A pass with one tensor, there and back, and its gradient',
      x: 'size of the tensor in bytes',
      y: 'time a pass',
      base: 16,
      sizes: [4, 64, 1024, 16_384, 65_536, 262_144, 1_048_576, 4_194_304].map((elements) => elements * BYTES),
      series: [
        { name: 'postgrad', at: (bytes) => stage.with(2, (worker0, n) => worker0.run(sized, n, bytes / BYTES)), warm },
        ...(torch === null ? [] : [{ name: `PyTorch ${torch.version}`, at: (bytes: number) => torch.work(2, 'sized', bytes / BYTES) }]),
      ],
    },
    {
      id: 'fan',
      title: 'Backward of a fan: workers that were called at once',
      x: 'workers',
      y: 'time a pass',
      base: 2,
      sizes: [1, 2, 4, 8, 16, 32],
      series: [{ name: 'postgrad', at: workers(fans), warm }, ...peer((size) => 1 + size, 'fans', { max: TORCH_WORKERS_MAX })],
    },
    {
      id: 'ring',
      title: 'Backward of nested calls: each worker called the next',
      x: 'workers',
      y: 'time a pass',
      base: 2,
      sizes: [1, 2, 4, 8, 16, 32],
      series: [{ name: 'postgrad', at: workers(rings), warm }, ...peer((size) => 1 + size, 'rings', { max: TORCH_WORKERS_MAX })],
    },
  ]
}
