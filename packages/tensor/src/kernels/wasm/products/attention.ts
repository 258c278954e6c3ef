/**
 * Attention of float32 in the wasm backend (KERNELS.md, rule ATTENTION). It takes as many queries at a time as make BLOCK scores, so that their scores stay in
 * the second-level cache, and nothing of the size of all scores is ever written. The way back computes the scores again. Products and softmax are those of
 * `products.ts` and `rows.ts`, on matrices that are used where they lie, or are staged.
 */
import type { Attention, AttentionBackward, Operand } from '../../table/operands.js'
import type { Matrix } from '../calls/external.js'
import { align, copyRun, type LazyInstance, type WasmInstance } from '../calls/instance.js'
import { always, by, type OwnCells } from '../calls/own.js'
import { workedElements } from '../calls/pause.js'
import { product, productScratch } from './products.js'

type MaskScores = (
  ...args: [rows: number, n: number, scores: number, kind: number, mask: number, maskRow: number, seen: number, none: number]
) => void
declare module '../calls/instance.js' {
  interface KernelExports {
    readonly mask_scores_f32: MaskScores
  }
}

/** Scores of the queries that are taken at a time. */
const BLOCK = 131_072
/** With isCausal so many queries at most: their block sees no key after its last query. */
const CAUSAL_ROWS = 64
/** The keys that a causal block sees are rounded up to this, so that sums of a row keep the order that they have over all keys. */
const CAUSAL_KEYS = 16

/** Keys up to which threads share heads, of which each is one unit. Of more keys, or of fewer heads than threads, they share the queries of a block. */
const KEYS_OF_HEADS = 2048

/** Sizes of one call, and the operands that its blocks read. */
interface Call {
  readonly instance: WasmInstance
  readonly q: Operand
  readonly k: Operand
  readonly v: Operand
  readonly mask: Operand | null
  readonly scale: number
  readonly isCausal: boolean
  readonly queries: number
  readonly keys: number
  /** Widths of a key and of a value. */
  readonly e: number
  readonly w: number
  /** Queries of a block. */
  readonly rows: number
}

function callOf(lazy: LazyInstance, q: Operand, k: Operand, v: Operand, mask: Operand | null, scale: number, isCausal: boolean): Call {
  const [queries, keys] = [q.shape[2]!, k.shape[2]!]
  const fitting = Math.max(1, Math.floor(BLOCK / keys))
  const rows = Math.min(queries, isCausal ? Math.min(fitting, CAUSAL_ROWS) : fitting)
  return { instance: lazy.get(), q, k, v, mask, scale, isCausal, queries, keys, e: q.shape[3]!, w: v.shape[3]!, rows }
}

/** Addresses in scratch, handed out by `begin`. */
interface Rooms {
  /** All of them, and their bytes; those of further threads follow. */
  readonly at: number
  readonly bytes: number
  /** `scale` and a zero, then the scaled queries of a block, and its scores. */
  readonly scale: number
  readonly scaled: number
  readonly scores: number
  /** For operands outside of the memory: queries of a block, all keys, all values, a block's mask. */
  readonly q: number
  readonly k: number
  readonly v: number
  readonly mask: number
  /** For products. */
  readonly product: number
  /** As many as were asked for. */
  readonly more: readonly number[]
}

const isStaged = (instance: WasmInstance, x: Operand): boolean => instance.direct(x.storage.host!, x.offset) < 0

/** Starts a kernel's call, with rooms of `more` bytes, and scratch for products of `productBytes`. Each of `threads` threads has rooms of its own. */
function begin(call: Call, productBytes: number, more: readonly number[], threads = 1): Rooms {
  const { instance, q, k, v, mask, keys, e, w, rows } = call
  const ifStaged = (x: Operand | null, elements: number): number => (x !== null && isStaged(instance, x) ? elements * 4 : 0)
  const scoring = productScratch(rows, keys, e, 4, k.strides[2]! * 4)
  const sizes = [
    ...[8, rows * e * 4, rows * keys * 4],
    ...[ifStaged(q, rows * e), ifStaged(k, keys * e), ifStaged(v, keys * w), ifStaged(mask, rows * keys)],
    ...[Math.max(scoring, productScratch(rows, keys, e, 4, e * 4), productBytes), ...more],
  ]
  const bytes = sizes.reduce((sum, size) => sum + align(size), 0)
  const first = instance.begin(threads * bytes)
  const at = sizes.map((size) => instance.take(size))
  const [scaleAt, scaled, scores, qAt, kAt, vAt, maskAt, productAt, ...rest] = at as [
    ...[number, number, number, number],
    ...[number, number, number, number, ...number[]],
  ]
  instance.f32[scaleAt / 4] = call.scale
  instance.f32[scaleAt / 4 + 1] = 0
  return { at: first, bytes, scale: scaleAt, scaled, scores, q: qAt, k: kAt, v: vAt, mask: maskAt, product: productAt, more: rest }
}

/** The rooms of the thread whose rooms are `at`, but for the scale. Operands are not staged. */
function roomsOf({ scaled, scores, product, more, ...rooms }: Rooms, at: number): Rooms {
  const by = at - rooms.at
  return { ...rooms, at, scaled: scaled + by, scores: scores + by, product: product + by, more: more.map((room) => room + by) }
}

/** `rows` rows of one of the matrices of x, from element `at` of its array on: where they lie, or staged at `room`. */
function matrixOf(instance: WasmInstance, x: Operand, at: number, rows: number, room: number): Matrix {
  const [row, width] = [x.strides[2]!, x.shape[3]!]
  const host = x.storage.host!
  const direct = instance.direct(host, at)
  if (direct >= 0) return { pointer: direct, row: row * 4, col: 4 }
  for (let r = 0; r < rows; r++) copyRun(width, host, at + r * row, instance.f32, room / 4 + r * width)
  return { pointer: room, row: width * 4, col: 4 }
}

const turned = ({ pointer, row, col }: Matrix): Matrix => ({ pointer, row: col, col: row })
const denseAt = (pointer: number, columns: number): Matrix => ({ pointer, row: columns * 4, col: 4 })

/** The first element of matrix [a, b] of x, or of its row `row`. */
const startOf = (x: Operand, a: number, b: number, row = 0): number =>
  x.offset + a * x.strides[0]! + b * x.strides[1]! + row * x.strides[2]!

/** How many keys the queries up to `end` see, at least. */
function keysFor({ isCausal, keys }: Call, end: number): number {
  return isCausal ? Math.min(keys, Math.ceil(end / CAUSAL_KEYS) * CAUSAL_KEYS) : keys
}

/** The shares of `count` queries from `from` on, dense [count, n] at `rooms.scores`; their scaled queries are at `rooms.scaled`. */
function sharesOf(call: Call, rooms: Rooms, a: number, b: number, from: number, count: number, n: number, keys: Matrix): void {
  const { instance, q, mask, e, isCausal } = call
  const { kernels } = instance
  const own = matrixOf(instance, q, startOf(q, a, b, from), count, rooms.q)
  kernels.mul_f32(count, e, own.pointer, own.row, 1, rooms.scale, 0, 0, rooms.scaled, e * 4)
  product(instance, 4, count, n, e, denseAt(rooms.scaled, e), turned(keys), rooms.scores, n * 4, rooms.product)
  if (mask !== null || isCausal) maskScores(call, rooms, mask, rooms.scores, a, b, from, count, n, Number.NEGATIVE_INFINITY)
  kernels.softmax_rows_f32(count, n, rooms.scores, rooms.scores)
  workedElements(count * n)
}

/** Masks the dense [count, n] at `scores`: with `none` where a query does not see a key, and by adding a mask of numbers. */
function maskScores(
  { instance, isCausal }: Call,
  rooms: Rooms,
  mask: Operand | null,
  scores: number,
  a: number,
  b: number,
  from: number,
  count: number,
  n: number,
  none: number,
): void {
  const kind = mask === null ? 0 : mask.dtype === 'bool' ? 1 : 2
  const masks = mask === null ? NO_MASK : maskOf(instance, mask, startOf(mask, a, b, from), count, n, rooms.mask)
  instance.kernels.mask_scores_f32(count, n, scores, kind, masks.pointer, masks.row, isCausal ? from + 1 : 0, none)
}

const NO_MASK = { pointer: 0, row: 0 }

/** As `matrixOf`, for the first `n` columns of a mask of either dtype. */
function maskOf(
  instance: WasmInstance,
  mask: Operand,
  at: number,
  rows: number,
  n: number,
  room: number,
): { pointer: number; row: number } {
  const host = mask.storage.host!
  const bytes = host.BYTES_PER_ELEMENT
  const row = mask.strides[2]!
  const direct = instance.direct(host, at)
  if (direct >= 0) return { pointer: direct, row: row * bytes }
  const memory = bytes === 1 ? instance.u8 : instance.f32
  for (let r = 0; r < rows; r++) copyRun(n, host, at + r * row, memory, room / bytes + r * n)
  return { pointer: room, row: n * bytes }
}

const attention =
  (lazy: LazyInstance): Attention =>
  (q, k, v, mask, out, scale, isCausal) => {
    if (out.numel === 0) return
    const call = callOf(lazy, q, k, v, mask, scale, isCausal)
    const { instance, queries, keys, e, w, rows } = call
    const [heads, work] = [q.shape[1]!, queries * keys * (e + w)]
    const shares = instance.sharesProduct(heads * work) && [q, k, v, out, mask].every((x) => x === null || !isStaged(instance, x))
    const room = isStaged(instance, out) ? rows * w * 4 : 0
    const rooms = begin(call, productScratch(rows, w, keys, 4, 4), [room], shares ? instance.threads : 1)
    const byRows = shares && (keys > KEYS_OF_HEADS || heads < instance.threads)
    const helpers = { at: rooms.at + rooms.bytes, stride: rooms.bytes }
    /** `count` queries of matrix [a, b] from `from` on, which see n keys. */
    const some = (a: number, b: number, from: number, count: number, n: number, forKeys: Matrix, values: Matrix, own: Rooms): void => {
      sharesOf(call, own, a, b, from, count, n, forKeys)
      const to = target(instance, out, startOf(out, a, b, from), own.more[0]!)
      product(instance, 4, count, w, n, denseAt(own.scores, n), values, to, w * 4, own.product)
      written(instance, to, out, startOf(out, a, b, from), count * w)
    }
    const one = (a: number, b: number, own: Rooms): void => {
      const forKeys = matrixOf(instance, k, startOf(k, a, b), keys, own.k)
      const values = matrixOf(instance, v, startOf(v, a, b), keys, own.v)
      for (let from = 0; from < queries; from += rows) {
        const count = Math.min(rows, queries - from)
        const n = keysFor(call, from + count)
        if (!byRows) some(a, b, from, count, n, forKeys, values, own)
        else {
          const part = Math.ceil(count / instance.threads / 8) * 8
          const unit = (i: number, at: number): void =>
            some(a, b, from + i * part, Math.min(part, count - i * part), n, forKeys, values, roomsOf(rooms, at))
          instance.share(Math.ceil(count / part), part * n * (e + w), unit, rooms.at, helpers)
        }
      }
    }
    if (!shares || byRows) eachMatrix(q, (a, b) => one(a, b, rooms))
    else for (let a = 0; a < q.shape[0]!; a++) instance.share(heads, work, (b, at) => one(a, b, roomsOf(rooms, at)), rooms.at, helpers)
  }

function eachMatrix({ shape }: Operand, run: (a: number, b: number) => void): void {
  for (let a = 0; a < shape[0]!; a++) for (let b = 0; b < shape[1]!; b++) run(a, b)
}

/** The address of element `at` of an output, or `room` where it is staged; `written` brings its elements home. */
function target(instance: WasmInstance, x: Operand, at: number, room: number): number {
  const direct = instance.direct(x.storage.host!, at)
  return direct < 0 ? room : direct
}
function written(instance: WasmInstance, from: number, x: Operand, at: number, n: number): void {
  const host = x.storage.host!
  if (instance.direct(host, at) < 0) copyRun(n, instance.f32, from / 4, host, at)
}

const attentionBackward =
  (lazy: LazyInstance): AttentionBackward =>
  (grad, q, k, v, mask, dq, dk, dv, scale, isCausal) => {
    if (grad.numel === 0) return
    const call = callOf(lazy, q, k, v, mask, scale, isCausal)
    const { instance, queries, keys, e, w, rows } = call
    const { kernels } = instance
    const products = Math.max(
      ...[
        productScratch(rows, keys, w, 4, v.strides[2]! * 4),
        productScratch(rows, keys, w, 4, w * 4),
        productScratch(rows, e, keys, 4, 4),
      ],
      ...[productScratch(keys, w, rows, 4, 4), productScratch(keys, e, rows, 4, 4)],
    )
    const [heads, work] = [q.shape[1]!, queries * keys * (3 * e + 2 * w)]
    const shares =
      instance.sharesProduct(heads * work) && [q, k, v, mask, grad, dq, dk, dv].every((x) => x === null || !isStaged(instance, x))
    const room = (x: Operand | null, elements: number): number => (x !== null && isStaged(instance, x) ? elements * 4 : 0)
    const rooms = begin(
      call,
      products,
      [
        ...[room(grad, rows * w), rows * keys * 4],
        ...[room(dq, rows * e), room(dk, keys * e), room(dv, keys * w), keys * Math.max(e, w) * 4],
      ],
      shares ? instance.threads : 1,
    )
    /** Adds xᵀ y, x [count, n] and y [count, width], to the n first rows of `sum`; what is there first does not count. */
    const gather = (x: number, y: Matrix, count: number, n: number, width: number, sum: number, isFirst: boolean, own: Rooms): void => {
      const isWhole = isFirst && n === keys
      const part = own.more[5]!
      if (isFirst && !isWhole) kernels.move_32(1, keys * width, own.scale + 4, 0, 0, sum, 0, 4)
      product(instance, 4, n, width, count, turned(denseAt(x, n)), y, isWhole ? sum : part, width * 4, own.product)
      if (!isWhole) kernels.add_f32(1, n * width, sum, 0, 1, part, 0, 1, sum, 0)
    }
    const one = (a: number, b: number, own: Rooms): void => {
      const [gradRoom, slopes, dqRoom, dkRoom, dvRoom] = own.more as [number, number, number, number, number]
      const forKeys = matrixOf(instance, k, startOf(k, a, b), keys, own.k)
      const values = matrixOf(instance, v, startOf(v, a, b), keys, own.v)
      const dkAt = dk === null ? 0 : target(instance, dk, startOf(dk, a, b), dkRoom)
      const dvAt = dv === null ? 0 : target(instance, dv, startOf(dv, a, b), dvRoom)
      for (let from = 0; from < queries; from += rows) {
        const count = Math.min(rows, queries - from)
        const n = keysFor(call, from + count)
        const g = matrixOf(instance, grad, startOf(grad, a, b, from), count, gradRoom)
        sharesOf(call, own, a, b, from, count, n, forKeys)
        if (dv !== null) gather(own.scores, g, count, n, w, dvAt, from === 0, own)
        if (dq === null && dk === null) continue
        product(instance, 4, count, n, w, g, turned(values), slopes, n * 4, own.product)
        kernels.softmax_backward_rows_f32(count, n, slopes, own.scores, slopes)
        // A row that sees no key has NaN, which must not reach the gradients of the keys.
        const limits = mask?.dtype === 'bool' ? mask : null
        if (limits !== null || isCausal) maskScores(call, own, limits, slopes, a, b, from, count, n, 0)
        workedElements(count * n)
        if (dk !== null) gather(slopes, denseAt(own.scaled, e), count, n, e, dkAt, from === 0, own)
        if (dq === null) continue
        const place = startOf(dq, a, b, from)
        const dqAt = target(instance, dq, place, dqRoom)
        product(instance, 4, count, e, n, denseAt(slopes, n), forKeys, dqAt, e * 4, own.product)
        kernels.mul_f32(1, count * e, dqAt, 0, 1, own.scale, 0, 0, dqAt, 0)
        written(instance, dqAt, dq, place, count * e)
      }
      if (dk !== null) written(instance, dkAt, dk, startOf(dk, a, b), keys * e)
      if (dv !== null) written(instance, dvAt, dv, startOf(dv, a, b), keys * w)
    }
    if (!shares) {
      eachMatrix(q, (a, b) => one(a, b, rooms))
      return
    }
    const helpers = { at: rooms.at + rooms.bytes, stride: rooms.bytes }
    for (let a = 0; a < q.shape[0]!; a++) instance.share(heads, work, (b, at) => one(a, b, roomsOf(rooms, at)), rooms.at, helpers)
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  attention: by(always, { float32: attention(instance) }),
  attentionBackward: by(always, { float32: attentionBackward(instance) }),
})
