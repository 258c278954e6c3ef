/**
 * Random programs of collectives, from a seed that all ranks have: operations, reductions, dtypes, shapes, layouts, roots, subgroups, and how many are under way at once.
 * Each rank compares its outputs with the operation's formula, computed element by element in plain JavaScript from all ranks' inputs. This package's tests run them in
 * the simulation, cluster's on threads and processes.
 */
import assert from 'node:assert'
import { type DType, Tensor, tensor } from '@postgrad/tensor'
import { CPU, numelOf, raw } from '@postgrad/tensor/internal'
import { LIMITS } from './common/step.js'
import {
  allGather,
  allGatherCoalesced,
  allGatherIntoTensor,
  allGatherObject,
  allReduce,
  allReduceCoalesced,
  allToAll,
  allToAllSingle,
  barrier,
  broadcast,
  broadcastCoalesced,
  broadcastObjectList,
  gather,
  gatherObject,
  monitoredBarrier,
  newGroup,
  type ProcessGroup,
  ReduceOp,
  recv,
  reduce,
  reduceScatter,
  reduceScatterTensor,
  scatter,
  scatterObjectList,
  send,
} from './index.js'

/** Mulberry32: the same on every rank, whatever the worker's own generator has given. */
export class Draw {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  unit(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let t = this.state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  below(n: number): number {
    return Math.floor(this.unit() * n)
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }
}

/** As they are, and so that each of the other algorithms is taken. */
const EACH_WAY = [
  LIMITS,
  { oneStepBytes: 0, rootBytes: Number.POSITIVE_INFINITY, pieceBytes: 1 },
  { oneStepBytes: 0, rootBytes: 0, pieceBytes: Number.POSITIVE_INFINITY },
  { oneStepBytes: 0, rootBytes: 0, pieceBytes: 100 },
  { oneStepBytes: 0, rootBytes: 0, pieceBytes: 16 },
]
const DTYPES: readonly DType[] = ['float32', 'float64', 'int32', 'bool']
const REDUCTIONS = [
  ReduceOp.SUM,
  ReduceOp.AVG,
  ReduceOp.PRODUCT,
  ReduceOp.MIN,
  ReduceOp.MAX,
  ReduceOp.BAND,
  ReduceOp.BOR,
  ReduceOp.BXOR,
] as const
type Reduction = (typeof REDUCTIONS)[number]

/** Each rank in the heap of the one before it, in one of its own, or anywhere. */
function heapsOf(draw: Draw, size: number): number[] {
  const heaps: number[] = []
  for (let rank = 0; rank < size; rank++) heaps.push(rank > 0 && draw.below(5) < 3 ? heaps[rank - 1]! : draw.below(size))
  return heaps
}

function reductionFor(draw: Draw, dtype: DType): Reduction {
  for (;;) {
    const op = draw.pick(REDUCTIONS)
    const isBits = op === 'band' || op === 'bor' || op === 'bxor'
    if (!(isBits && dtype.startsWith('float')) && !(op === 'avg' && dtype === 'bool')) return op
  }
}

/** The elements that a rank puts in. No zeros: the sign of one says nothing. */
function elements(seed: number, dtype: DType, numel: number): number[] {
  const draw = new Draw(seed)
  return Array.from({ length: numel }, () => {
    if (dtype === 'bool') return draw.below(2)
    if (dtype === 'int32') return draw.below(8) === 0 ? draw.below(2 ** 31) : draw.below(40) + 1
    if (draw.below(40) === 0) return draw.pick([Number.NaN, Number.POSITIVE_INFINITY, -2.5])
    const value = (draw.unit() - 0.3) * 10 ** draw.below(6) + 1e-3
    return dtype === 'float32' ? Math.fround(value) : value
  })
}

/** Rule ORDER, of one element. */
export function formula(op: Reduction, dtype: DType, values: readonly number[]): number {
  const rounded = (x: number): number => (dtype === 'float32' ? Math.fround(x) : dtype === 'int32' ? x | 0 : x)
  const both = (a: number, b: number): number => {
    switch (op) {
      case 'sum':
      case 'avg':
        return dtype === 'bool' ? a | b : rounded(a + b)
      case 'product':
        return dtype === 'bool' ? a & b : dtype === 'int32' ? Math.imul(a, b) : rounded(a * b)
      case 'min':
        return Math.min(a, b)
      case 'max':
        return Math.max(a, b)
      case 'band':
        return a & b
      case 'bor':
        return a | b
      case 'bxor':
        return a ^ b
      default:
        return op satisfies never
    }
  }
  const sum = values.reduce(both)
  if (op !== 'avg') return sum
  return dtype === 'int32' ? Math.trunc(sum / values.length) : rounded(sum / values.length)
}

/** In one of several layouts: dense, with a place before it, every other element, transposed. */
function laid(draw: Draw, dtype: DType, shape: readonly number[], values: readonly number[]): Tensor {
  const dense = tensor(values.length === 0 ? [] : [...values], { dtype })
  const numel = numelOf(shape)
  switch (draw.below(5)) {
    case 0: {
      const longer = Tensor.empty(dtype, [numel + 3], CPU)
      const view = raw.narrow(longer, 0, 2, numel)
      raw.copy_(view, dense)
      return raw.view(view, [...shape])
    }
    case 1: {
      const wide = Tensor.empty(dtype, [...shape, 2], CPU)
      const view = raw.select(wide, shape.length, 1)
      raw.copy_(view, raw.reshape(dense, [...shape]))
      return view
    }
    case 2: {
      if (shape.length !== 2) break
      const turned = Tensor.empty(dtype, [shape[1]!, shape[0]!], CPU)
      const view = raw.transpose(turned, 0, 1)
      raw.copy_(view, raw.reshape(dense, [...shape]))
      return view
    }
  }
  return raw.reshape(dense, [...shape])
}

/** Its elements, row by row. */
function flatOf(x: Tensor): number[] {
  const { storage, offset, numel } = raw.contiguous(x)
  return Array.from(storage.host!.subarray(offset, offset + numel))
}

function expectSame(what: string, got: readonly number[], expected: readonly number[]): void {
  assert.equal(got.length, expected.length, `${what}: ${got.length} elements, expected ${expected.length}`)
  for (let i = 0; i < got.length; i++) {
    if (!Object.is(got[i], expected[i])) throw new Error(`${what}: element ${i} is ${got[i]}, expected ${expected[i]}`)
  }
}

/** One collective of a program: begun, and looked at when it has ended. */
interface Begun {
  readonly what: string
  readonly work: PromiseLike<unknown>
  check(value: unknown): void
}

export interface ProgramOptions {
  readonly steps?: number
  /** Elements at most, of most tensors. */
  readonly numelMax?: number
}

/** Gives a text of all that came of reductions on this rank, which is the same on all. @throws where a result is not that of the formula */
export async function runProgram(group: ProcessGroup, seed: number, { steps = 12, numelMax = 24 }: ProgramOptions = {}): Promise<string> {
  const draw = new Draw(seed)
  const digest: string[] = []
  const groups = [group]
  const open: Begun[] = []
  const settle = async (): Promise<void> => {
    const ends = new Draw(seed + open.length)
    while (open.length > 0) {
      const [one] = open.splice(ends.below(open.length), 1)
      one!.check(await one!.work)
    }
  }
  for (let step = 0; step < steps; step++) {
    if (group.size > 2 && draw.below(6) === 0) {
      const ranks = group.ranks.filter(() => draw.below(3) > 0)
      const made = await newGroup(ranks.length === 0 ? [0] : ranks)
      if (made.rank >= 0) groups.push(made)
      // A non-member draws on as the others do.
      else groups.push(made)
    }
    const at = groups[draw.below(groups.length)]!
    at.limits = draw.pick(EACH_WAY)
    // Where ranks are has no effect on any bit.
    if (draw.below(2) === 0) at.heaps = heapsOf(draw, at.size)
    const begun = begin(draw, at, seed * 1000 + step, numelMax, digest)
    if (begun !== null) open.push(begun)
    if (draw.below(3) === 0) await settle()
    if (draw.below(8) === 0) await barrier({ group })
    if (draw.below(12) === 0) await monitoredBarrier({ group })
  }
  await settle()
  await barrier({ group })
  return digest.join(';')
}

/** Draws and begins one collective; null if this rank is not a member, which makes the same draws all the same. */
function begin(draw: Draw, group: ProcessGroup, seed: number, numelMax: number, digest: string[]): Begun | null {
  const { size, rank, ranks } = group
  const dtype = draw.pick(DTYPES)
  const shape = draw.pick([[draw.below(numelMax)], [1 + draw.below(4), 1 + draw.below(6)], []])
  const numel = numelOf(shape)
  const op = reductionFor(draw, dtype)
  const root = draw.below(size)
  const kind = draw.below(18)
  const rows = Array.from({ length: size }, () => Array.from({ length: size }, () => draw.below(4)))
  const count = 1 + draw.below(3)
  if (rank < 0) return null
  const own = new Draw(seed * 31 + rank)
  const put = (of: number, index = 0, length = numel): number[] => elements(seed * 7919 + of * 101 + index, dtype, length)
  const input = (index = 0): Tensor => laid(own, dtype, shape, put(rank, index))
  const output = (like: readonly number[] = shape): Tensor => laid(own, dtype, like, new Array<number>(numelOf(like)).fill(0))
  const reduced = (index = 0): number[] => {
    const all = ranks.map((_, of) => put(of, index))
    return Array.from({ length: numel }, (_, i) =>
      formula(
        op,
        dtype,
        all.map((values) => values[i]!),
      ),
    )
  }
  const what = `seed ${seed}, rank ${rank} of ${size}, kind ${kind}, ${op}, ${dtype} [${shape}], root ${root}`
  const options = { group }
  const src = ranks[root]!
  const stacked = size * 1 > 0 && shape.length > 0
  switch (kind) {
    case 0:
    case 1:
    case 2: {
      const x = input()
      return {
        what,
        work: allReduce(x, { ...options, op }),
        check: (value) => {
          assert.equal(value, x)
          expectSame(what, flatOf(x), reduced())
          if (group.size > 0 && kind === 0) digest.push(flatOf(x).join())
        },
      }
    }
    case 3: {
      const xs = Array.from({ length: count }, (_, i) => input(i))
      return {
        what,
        work: allReduceCoalesced(xs, { ...options, op }),
        check: () => {
          for (const [i, x] of xs.entries()) expectSame(what, flatOf(x), reduced(i))
        },
      }
    }
    case 4: {
      const x = input()
      const before = flatOf(x)
      return {
        what,
        work: reduce(x, src, { ...options, op }),
        check: () => expectSame(what, flatOf(x), rank === root ? reduced() : before),
      }
    }
    case 5: {
      const x = input()
      return { what, work: broadcast(x, src, options), check: () => expectSame(what, flatOf(x), put(root)) }
    }
    case 6: {
      const xs = Array.from({ length: count }, (_, i) => input(i))
      return {
        what,
        work: broadcastCoalesced(xs, src, options),
        check: () => {
          for (const [i, x] of xs.entries()) expectSame(what, flatOf(x), put(root, i))
        },
      }
    }
    case 7: {
      const outs = ranks.map(() => output())
      return {
        what,
        work: allGather(outs, input(), options),
        check: () => {
          for (const [of, out] of outs.entries()) expectSame(what, flatOf(out), put(of))
        },
      }
    }
    case 8: {
      const isStacked = !stacked || own.below(2) === 0
      const out = output(isStacked ? [size, ...shape] : [size * shape[0]!, ...shape.slice(1)])
      return {
        what,
        work: allGatherIntoTensor(out, input(), options),
        check: () =>
          expectSame(
            what,
            flatOf(out),
            ranks.flatMap((_, of) => put(of)),
          ),
      }
    }
    case 9: {
      const lists = ranks.map(() => Array.from({ length: count }, () => output()))
      const xs = Array.from({ length: count }, (_, i) => input(i))
      return {
        what,
        work: allGatherCoalesced(lists, xs, options),
        check: () => {
          for (const [of, list] of lists.entries()) for (const [i, out] of list.entries()) expectSame(what, flatOf(out), put(of, i))
        },
      }
    }
    case 10: {
      const gatherList = rank === root ? ranks.map(() => output()) : undefined
      return {
        what,
        work: gather(input(), gatherList === undefined ? { ...options, dst: src } : { ...options, dst: src, gatherList }),
        check: () => {
          for (const [of, out] of (gatherList ?? []).entries()) expectSame(what, flatOf(out), put(of))
        },
      }
    }
    case 11: {
      const x = output()
      const list = rank === root ? ranks.map((_, to) => laid(own, dtype, shape, put(root, to))) : undefined
      return {
        what,
        work: scatter(x, list === undefined ? { ...options, src } : { ...options, src, scatterList: list }),
        check: () => expectSame(what, flatOf(x), put(root, rank)),
      }
    }
    case 12: {
      const x = output()
      const inputs = ranks.map((_, to) => input(to))
      return { what, work: reduceScatter(x, inputs, { ...options, op }), check: () => expectSame(what, flatOf(x), reduced(rank)) }
    }
    case 13: {
      const x = output()
      const isStacked = !stacked || own.below(2) === 0
      const large = isStacked ? [size, ...shape] : [size * shape[0]!, ...shape.slice(1)]
      const all = laid(
        own,
        dtype,
        large,
        ranks.flatMap((_, to) => put(rank, to)),
      )
      return { what, work: reduceScatterTensor(x, all, { ...options, op }), check: () => expectSame(what, flatOf(x), reduced(rank)) }
    }
    case 14: {
      const outs = ranks.map((_, from) => output([rows[from]![rank]!, 2]))
      const ins = ranks.map((_, to) => laid(own, dtype, [rows[rank]![to]!, 2], put(rank, to, rows[rank]![to]! * 2)))
      return {
        what,
        work: allToAll(outs, ins, options),
        check: () => {
          for (const [from, out] of outs.entries()) expectSame(what, flatOf(out), put(from, rank, rows[from]![rank]! * 2))
        },
      }
    }
    case 15: {
      const inputSplits = rows[rank]!
      const outputSplits = rows.map((row) => row[rank]!)
      const sum = (splits: readonly number[]): number => splits.reduce((a, b) => a + b, 0)
      const out = output([sum(outputSplits), 2])
      const all = laid(
        own,
        dtype,
        [sum(inputSplits), 2],
        inputSplits.flatMap((split, to) => put(rank, to, split * 2)),
      )
      return {
        what,
        work: allToAllSingle(out, all, { ...options, inputSplits, outputSplits }),
        check: () =>
          expectSame(
            what,
            flatOf(out),
            outputSplits.flatMap((split, from) => put(from, rank, split * 2)),
          ),
      }
    }
    case 16: {
      const value = { rank, text: `from ${rank}`, x: raw.clone(input()) }
      const list = rank === root ? [seed, 'two', { three: [root] }] : [null, null, null]
      const works = [
        allGatherObject(value, options),
        gatherObject(rank, { ...options, dst: src }),
        broadcastObjectList(list as unknown[], { ...options, src }),
        scatterObjectList(rank === root ? ranks.map((_, to) => [root, to]) : null, { ...options, src }),
      ] as const
      return {
        what,
        work: Promise.all(works),
        check: () => {
          for (const [of, each] of works[0].result().entries()) {
            assert.equal(each.text, `from ${of}`)
            expectSame(what, flatOf(each.x), put(of))
          }
          assert.deepEqual(works[1].result(), rank === root ? ranks.map((_, of) => of) : null)
          assert.deepEqual(works[2].result(), [seed, 'two', { three: [root] }])
          assert.deepEqual(works[3].result(), [root, rank])
        },
      }
    }
    default: {
      // Around the ring; of one rank there is none.
      if (size === 1) return { what, work: barrier(options), check: () => {} }
      const next = ranks[(rank + 1) % size]!
      const before = (rank + size - 1) % size
      const x = output()
      const tag = seed % 7
      send(input(), next, { ...options, tag })
      return {
        what,
        work: recv(x, size === 2 || own.below(2) === 0 ? ranks[before]! : undefined, { ...options, tag }),
        check: (from) => {
          assert.equal(from, ranks[before]!)
          expectSame(what, flatOf(x), put(before))
        },
      }
    }
  }
}
