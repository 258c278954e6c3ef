/**
 * allReduce of large tensors, chosen by `all-reduce.ts`: each rank reduces a slice of them, so that the work is shared and nothing is sent twice. `runs.ts` says
 * which ranks reduce together. With one run of all ranks it is reduce-scatter and all-gather, each by direct exchange. With several, a slice has an owner in each run:
 *
 *     run 0    ranks 0, 1     r0 ∘ r1 ──sum so far──▸ ┐          ┌ copy ◂──result── ┐
 *     run 1    ranks 2, 3                             ∘ r2 ∘ r3 ─┴─────────────────▸┘     (its owner has the result)
 *
 * The sum goes from owner to owner in the order of the runs, which is that of the ranks; the result goes back the same way. Within a run the owner gets the slices of the
 * others, and gives them the result. So between heaps each byte crosses once in each direction, however many ranks a heap has.
 *
 * Slices travel in pieces. A rank sends all its pieces at once, for later steps of the receivers, which reduce each piece and send it on as soon as it arrives. So
 * links carry the next pieces while ranks add up. Ranks of one heap send no bytes, and a slice goes as a whole. Steps of `pieces` each:
 *
 *     sums      from the run: their pieces; from the owner before: the sum so far. Reduced, and sent to the next owner
 *     results   from the next owner; sent on to the one before
 *     copies    from the owners of the run
 *     and one more, which says only that all was read
 *
 * Note [Slices that are lent]
 *
 * Within a process a message names the block of a slice, and its bytes are not copied; to another process they leave straight out of the block. A rank may write
 * slices into its own tensor while others still hold its block, since nobody reads a piece that another writes. Only the owner of a slice reads the parts that other ranks have of it,
 * and such a rank writes its part only after the owner has sent the result. Nobody else reads an owner's part of its own slice before the owner sends it. The owner rewrites a part sent as the sum
 * so far only when the result has come, which was made from that sum. Before the first step `prepareWrite` makes the block this rank's alone; later writes avoid the copy that
 * a shared block would cost. The last step's messages arrive after those that say that the blocks were read, so after the collective a rank's tensor is its own again.
 */
import type { Tensor } from '@postgrad/tensor'
import { copyInto, wrote } from '@postgrad/tensor/internal'
import type { Values } from '../common/protocol.js'
import { type Algorithm, EMPTY, type Place, type Received } from '../common/step.js'
import { combine, run } from './combine.js'
import { bytesOf, flat, release, tensorsOf, write } from './parts.js'
import type { ReduceName } from './reduce-op.js'
import type { Runs } from './runs.js'

/** Slices begin at multiples of so many elements: whole lines of a cache. */
const ALIGNED = 16

/** Where slice `index` of `count` begins, and how long it is. */
export function sliceOf(numel: number, index: number, count: number): readonly [start: number, length: number] {
  const each = Math.ceil(numel / count / ALIGNED) * ALIGNED
  const start = Math.min(numel, index * each)
  return [start, Math.min(numel, start + each) - start]
}

/** Part `index` of `count` of a slice, or of a piece. */
function cut(x: Tensor, index: number, count: number): Tensor {
  return count === 1 ? x : run(x, ...sliceOf(x.numel, index, count))
}

/** Which rank has which slice, as one rank sees it. */
class Slices {
  readonly run: readonly number[]
  readonly before: readonly number[] | null
  readonly next: readonly number[] | null
  /** How many slices there are: every rank has one at least. */
  readonly count: number
  /** Of this rank. */
  readonly mine: readonly number[]
  private readonly rank: number

  constructor(rank: number, runs: Runs) {
    const at = runs.findIndex((ranks) => ranks.includes(rank))
    this.rank = rank
    this.run = runs[at]!
    this.before = runs[at - 1] ?? null
    this.next = runs[at + 1] ?? null
    this.count = Math.max(...runs.map(({ length }) => length))
    this.mine = this.ownedBy(rank, this.run)
  }

  /** The others of this rank's run. */
  get near(): readonly number[] {
    return this.run.filter((rank) => rank !== this.rank)
  }

  ownedBy(rank: number, ranks: readonly number[]): number[] {
    const at = ranks.indexOf(rank)
    return Array.from({ length: this.count }, (_, slice) => slice).filter((slice) => slice % ranks.length === at)
  }

  /** The owners of this rank's slices in another run. */
  shared(ranks: readonly number[] | null): readonly (readonly [rank: number, slices: readonly number[]])[] {
    return (ranks ?? []).flatMap((rank) => {
      const slices = this.ownedBy(rank, ranks!).filter((slice) => this.mine.includes(slice))
      return slices.length === 0 ? [] : [[rank, slices] as const]
    })
  }
}

export function* bySlices(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[], runs: Runs): Algorithm<void> {
  const { rank, size, heaps, limits } = place
  const slices = new Slices(rank, runs)
  const { run: ranks, near, mine } = slices
  const [before, next] = [slices.shared(slices.before), slices.shared(slices.next)]
  const isLast = slices.next === null
  const pieces = Math.max(1, Math.ceil(bytesOf(tensors) / slices.count / limits.pieceBytes))
  // Within a heap there is nothing to wait for but the word: the whole comes first, and goes last.
  const isNearInPieces = ranks.some((other) => heaps[other] !== heaps[rank])
  const nearPieces = isNearInPieces ? pieces : 1
  const own = tensors.map(flat)
  for (const { storage } of own) storage.prepareWrite()

  /** A piece of some slices, of all tensors: slice by slice. */
  const pieceOf = (of: readonly number[], piece: number, count: number): Tensor[] =>
    of.flatMap((slice) => own.map((x) => cut(cut(x, slice, slices.count), piece, count)))
  const steps = new Steps()
  /** The result of a piece is there: for the run before, and for those of the run. */
  const give = (piece: number): void => {
    for (const [to, shared] of before) steps.post(to, pieceOf(shared, piece, pieces), pieces + piece)
    if (!isNearInPieces && piece < pieces - 1) return
    for (const to of near) steps.post(to, pieceOf(mine, isNearInPieces ? piece : 0, nearPieces), 2 * pieces + piece)
  }

  for (const to of near) {
    for (let piece = 0; piece < nearPieces; piece++) steps.post(to, pieceOf(slices.ownedBy(to, ranks), piece, nearPieces), piece)
  }
  /** This rank's slices at others of the run. */
  const given = new Map<number, readonly Tensor[]>()
  for (let piece = 0; piece < pieces; piece++) {
    const givers = piece < nearPieces ? near : NOBODY
    const came = yield* steps.next([...givers, ...before.map(([from]) => from)])
    for (const from of givers) given.set(from, tensorsOf(came[from], pieceOf(mine, piece, nearPieces), from))
    const sums = before.map(([from, shared]) => [shared, tensorsOf(came[from], pieceOf(shared, piece, pieces), from)] as const)
    for (const [index, out] of pieceOf(mine, piece, pieces).entries()) {
      const slice = mine[Math.floor(index / own.length)]!
      const sum = sums.find(([shared]) => shared.includes(slice))
      const first = sum === undefined ? [] : [sum[1][sum[0].indexOf(slice) * own.length + (index % own.length)]!]
      const partOf = (from: number): Tensor => (isNearInPieces ? given.get(from)![index]! : cut(given.get(from)![index]!, piece, pieces))
      const parts = [...first, ...ranks.map((from) => (from === rank ? out : partOf(from)))]
      // The last run divides.
      if (isLast) combine(name, parts, out, size)
      else combine(name === 'avg' ? 'sum' : name, parts, out)
    }
    for (const [, each] of sums) release(each)
    if (isNearInPieces || piece === pieces - 1) for (const each of given.values()) release(each)
    for (const [to, shared] of next) steps.post(to, pieceOf(shared, piece, pieces), piece)
    if (isLast) give(piece)
  }

  for (let piece = 0; piece < pieces; piece++) {
    const came = yield* steps.next(next.map(([from]) => from))
    for (const [from, shared] of next) take(came, from, pieceOf(shared, piece, pieces))
    if (!isLast) give(piece)
  }

  for (let piece = 0; piece < pieces; piece++) {
    const givers = isNearInPieces || piece === pieces - 1 ? near : NOBODY
    const came = yield* steps.next(givers)
    for (const from of givers) take(came, from, pieceOf(slices.ownedBy(from, ranks), isNearInPieces ? piece : 0, nearPieces))
  }

  for (const [i, out] of tensors.entries()) {
    if (own[i]!.storage === out.storage) wrote(op, out)
    else write(op, own[i]!, out)
  }
  const all = [...near, ...before.map(([other]) => other), ...next.map(([other]) => other)]
  for (const to of all) steps.post(to, EMPTY(), 3 * pieces)
  yield* steps.next(all)
}

const NOBODY: readonly number[] = Object.freeze([])

/** Writes a rank's values to where they belong. */
function take(came: Received, from: number, into: readonly Tensor[]): void {
  const parts = tensorsOf(came[from], into, from)
  for (const [i, part] of parts.entries()) copyInto(part, into[i]!)
  release(parts)
}

/** Counts steps, so that what is sent can name the one in which it is taken. */
class Steps {
  private step = 0
  private due: (readonly [to: number, values: Values, at: number])[] = []

  /** Leaves with the next step, and is taken in the step `at`. */
  post(to: number, values: Values, at: number): void {
    this.due.push([to, values, at])
  }

  *next(from: readonly number[]): Algorithm<Received> {
    const send = this.due.map(([to, values, at]) => [to, values, at - this.step] as const)
    this.due = []
    this.step++
    return yield { send, from }
  }
}
