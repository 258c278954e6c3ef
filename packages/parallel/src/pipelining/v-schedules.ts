/**
 * Schedules along a V: each rank has two stages, one on the way down all ranks, half 0, and one on the way up again, half 1. So the first rank has the first stage and the last one, whose backward
 * can begin as soon as its forward ends. `generators.ts` gives them their names.
 *
 *     rank 0   stage 0 ─▸      ─▸ stage 2p − 1, loss
 *     rank 1      stage 1      stage 2p − 2
 *       …              ╲      ╱
 *     rank p − 1      p − 1 ─▸ p
 *
 * Sources: ZB-V (arXiv 2401.10241, section 6), DualPipeV (DeepSeek's DualPipe, 2412.19437, cut in half along its symmetry).
 */
import type { PipelineAction } from './action.js'

/** One rank's list, written in parts. */
class VList {
  readonly actions: PipelineAction[] = []
  private readonly stages: readonly [down: number, up: number]
  private readonly microbatches: number
  private readonly forwards: [number, number] = [0, 0]
  private readonly backwards: [number, number] = [0, 0]
  /** Weight parts that have not come yet. */
  private readonly waiting: { readonly half: 0 | 1; readonly microbatch: number }[] = []

  /** Micro-batches from `microbatches` on are counted, and left out. */
  constructor(rank: number, ranks: number, microbatches: number) {
    this.stages = [rank, 2 * ranks - 1 - rank]
    this.microbatches = microbatches
  }

  /** `F0 B1`: what, and on which half, each with that half's next micro-batch. `W1` is the weight part that has waited longest on that half, `W` on both. */
  add(what: string, times = 1): void {
    for (let i = 0; i < times; i++) for (const each of what.split(' ')) this.addOne(each[0]!, each[1])
  }

  private addOne(kind: string, at: string | undefined): void {
    if (kind === 'W') {
      const place = this.waiting.findIndex(({ half }) => at === undefined || half === Number(at))
      const [{ half, microbatch }] = this.waiting.splice(place, 1) as [{ half: 0 | 1; microbatch: number }]
      this.push('W', half, microbatch)
      return
    }
    const half = Number(at) as 0 | 1
    const microbatch = (kind === 'F' ? this.forwards : this.backwards)[half]++
    if (kind === 'I') this.waiting.push({ half, microbatch })
    this.push(kind as 'F' | 'B' | 'I', half, microbatch)
  }

  private push(kind: PipelineAction['kind'], half: 0 | 1, microbatch: number): void {
    if (microbatch < this.microbatches) this.actions.push({ stage: this.stages[half], kind, microbatch })
  }

  forwardsOf(half: 0 | 1): number {
    return this.forwards[half]
  }

  waitingOn(half: 0 | 1): number {
    return this.waiting.filter((each) => each.half === half).length
  }
}

/** By stage: the rank that has it. */
export function rankOfV(ranks: number): number[] {
  return Array.from({ length: 2 * ranks }, (_, stage) => Math.min(stage, 2 * ranks - 1 - stage))
}

/** For fewer micro-batches than fill the V it is that of so many, without those that are not there. */
export function zbv(rank: number, ranks: number, microbatches: number): PipelineAction[] {
  const all = Math.max(2 * ranks - 1, microbatches)
  const list = new VList(rank, ranks, microbatches)
  list.add('F0', 2 * (ranks - rank) - 1)
  list.add('F1 F0', rank)
  list.add('F1 I1 W1', ranks - rank)
  while (list.forwardsOf(0) < all) list.add('F0 I0 W0 F1 I1 W1')
  while (list.forwardsOf(1) < all) list.add('I0 W0 F1 I1 W1')
  list.add('I0 I1', rank)
  list.add('I0 W0', ranks - rank)
  list.add('W1', list.waitingOn(1))
  list.add('W0', list.waitingOn(0))
  return list.actions
}

/**
 * Of at least as many micro-batches as stages. In the middle forwards of one half alternate with backwards of the other; a device with room for two computes both at once, here one comes after the other. The
 * second half of the last backwards is in parts.
 */
export function dualPipeV(rank: number, ranks: number, microbatches: number): PipelineAction[] {
  const behind = ranks - 1 - rank
  const list = new VList(rank, ranks, microbatches)
  list.add('F0', 2 * behind)
  list.add('F0 F1', rank + 1)
  list.add('I1 W F1', behind)
  list.add('F0 B1 F1 B0', microbatches - 2 * ranks + rank + 1)
  list.add('B1 F1 B0', behind)
  for (let i = 0; i < 2 * (rank + 1); i++) list.add(`${i <= rank ? 'B' : 'I'}${(i + 1) % 2}`)
  list.add('W I0', behind)
  list.add('W', rank + 1)
  return list.actions
}
