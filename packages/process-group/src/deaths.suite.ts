/** A rank dies at any point of any algorithm: programs of three ranks, and what must be true of the two that live. */
import { expect } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { full, ones, type Tensor, zeros } from '@postgrad/tensor'
import {
  allGather,
  allReduce,
  allToAll,
  barrier,
  broadcast,
  gather,
  initProcessGroup,
  monitoredBarrier,
  newGroup,
  type ProcessGroup,
  recv,
  reduce,
  reduceScatter,
  scatter,
  send,
} from './index.js'
import { failure, Ranks, runWithCrash } from './sim-ranks.suite.js'

/** So that only what is meant ends a wait. */
export const NEVER = { timeoutMs: 0 }
export const three = (value = 0): Tensor[] => [0, 1, 2].map(() => full([1], value))

type Program = (rank: number, group: ProcessGroup) => Promise<unknown>

/** Each algorithm once. */
export const PROGRAMS: readonly (readonly [string, Program])[] = [
  ['allReduce', () => allReduce(ones([3]))],
  [
    'allReduce by slices',
    (_rank, group) => {
      group.limits = { oneStepBytes: 0, rootBytes: 0, pieceBytes: 64 }
      return allReduce(ones([100]))
    },
  ],
  [
    'allReduce by slices from heap to heap',
    (_rank, group) => {
      group.limits = { oneStepBytes: 0, rootBytes: 0, pieceBytes: 64 }
      group.heaps = [0, 0, 2]
      return allReduce(ones([40]))
    },
  ],
  [
    'allReduce by a root',
    (_rank, group) => {
      group.limits = { oneStepBytes: 0, rootBytes: 1e9, pieceBytes: 64 }
      return allReduce(ones([4]))
    },
  ],
  ['two at once', () => Promise.all([allReduce(ones([2])), allGather(three(), ones([1]))])],
  ['broadcast', () => broadcast(ones([2]), 1)],
  [
    'allGather by relays',
    (_rank, group) => {
      group.limits = { oneStepBytes: 0, rootBytes: 0, pieceBytes: 64 }
      group.heaps = [0, 1, 1]
      return allGather(three(), ones([1]))
    },
  ],
  ['reduce', () => reduce(ones([2]), 1)],
  ['gather', (rank) => gather(ones([1]), rank === 1 ? { dst: 1, gatherList: three() } : { dst: 1 })],
  ['scatter', (rank) => scatter(zeros([1]), rank === 1 ? { src: 1, scatterList: three(1) } : { src: 1 })],
  ['reduceScatter', () => reduceScatter(zeros([1]), three(1))],
  ['allToAll', () => allToAll(three(), three(1))],
  ['barrier', () => barrier()],
  ['monitoredBarrier', () => monitoredBarrier()],
  [
    'newGroup',
    async () => {
      const group = await newGroup([0, 1])
      if (group.rank >= 0) await allReduce(ones([1]), { group })
    },
  ],
  ['a ring', (rank) => Promise.all([send(ones([1]), (rank + 1) % 3), recv(zeros([1]), (rank + 2) % 3)])],
  [
    'sends that wait for room',
    async (rank, group) => {
      group.direct.window = { tensorsMax: 2, bytesMax: 1e9 }
      await barrier()
      if (rank === 2) return
      const works = [1, 2, 3, 4, 5].map((n) => send(full([1], n), 1 - rank))
      for (let n = 0; n < 5; n++) await recv(zeros([1]), 1 - rank)
      await Promise.all(works)
    },
  ],
  ['recv from anybody', (rank) => (rank === 0 ? Promise.all([recv(zeros([1])), recv(zeros([1]))]) : send(ones([1]), 0))],
]

/** Each of three ranks dies before each `stride`-th step of a run. Gives how many runs had a death. */
export async function diesAtPoints(
  program: Program,
  { seed, stride }: { readonly seed: number; readonly stride: number },
): Promise<number> {
  let deaths = 0
  for (const victim of [0, 1, 2]) {
    for (let step = victim % stride; await diesAt(program, seed + step, victim, step); step += stride) deaths++
  }
  return deaths
}

/** False: the run had ended before. */
async function diesAt(program: Program, seed: number, victim: number, step: number): Promise<boolean> {
  const at = { seed, victim, step }
  const ranks = new Ranks(seed, 3)
  const living = [0, 1, 2].filter((rank) => rank !== victim)
  const formed = new Set<number>()
  const run = async (rank: number): Promise<null> => {
    const group = await initProcessGroup(NEVER)
    formed.add(rank)
    await program(rank, group)
    // A rank that comes here has ended well, as have those that it meets.
    await barrier()
    return null
  }
  const ends = new Map<number, PostgradError | null>()
  const runs = ranks.workers.map((worker, rank) => worker.run(async () => void ends.set(rank, await run(rank).catch((error) => error))))
  const { outcome, crashed } = await runWithCrash(ranks, Promise.all(living.map((rank) => runs[rank])), `worker${victim}`, step)
  expect({ ...at, outcome }).toEqual({ ...at, outcome: 'value' })
  if (!crashed) return false
  for (const rank of living) {
    const end = ends.get(rank)!
    if (end === null) continue
    const expected = formed.has(rank) ? /^GROUP_BROKEN$/ : /^(WORKER_DIED|UNKNOWN_WORKER)$/
    expect({ ...at, rank, code: end.code }).toEqual({ ...at, rank, code: expect.stringMatching(expected) })
    if (formed.has(rank))
      expect(await ranks.workers[rank]!.run(() => failure(allReduce(ones([1]))))).toMatchObject({ code: 'GROUP_BROKEN' })
  }
  expect(await ranks.leftovers({ except: [victim], letters: null })).toEqual([])
  return true
}
