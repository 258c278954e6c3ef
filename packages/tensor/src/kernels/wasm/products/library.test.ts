/** Convolutions by a library: the columns that they write and the scratch that they take, whatever the dilation. Its products are counted, or computed by loops. */
import { expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { threadHeap } from '../../../heap/thread-heap.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { ConvGeometry } from '../../table/neural.js'
import type { Conv, Operand } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'
import type { ExternalProduct } from '../calls/external.js'
import type { KernelHeap } from '../calls/memory.js'
import { COLUMNS } from './columns.js'

/** A window of 3 × 3 with a stride of 1, whose padding keeps the size. */
function dilated(c: number, o: number, size: number, dilation: number): ConvGeometry {
  return {
    ...{ n: 1, c, h: size, w: size, o, kh: 3, kw: 3, oh: size, ow: size, groups: 1 },
    ...{ strideH: 1, strideW: 1, padH: dilation, padW: dilation, dilH: dilation, dilW: dilation },
  }
}

/** The heap of this thread; it notes the most scratch that a call took. */
function watched(): { readonly heap: KernelHeap; asked: number } {
  const heap = threadHeap()
  const watch = {
    asked: 0,
    heap: {
      memory: heap.memory,
      buffer: heap.buffer,
      scratch(bytes: number) {
        watch.asked = Math.max(watch.asked, bytes)
        return heap.scratch(bytes)
      },
      claimHelpers: (wanted: number, max: number) => heap.claimHelpers(wanted, max),
      helpersMax: () => heap.helpersMax(),
    },
  }
  return watch
}

function kernelsBy(heap: KernelHeap, product: ExternalProduct) {
  const { kernels } = createWasmBackend(() => heap, { name: 'blas', setThreads: () => {}, productIn: () => product })
  return (op: 'conv2d' | 'conv2dInput' | 'conv2dWeight', a: Operand, b: Operand, out: Operand, g: ConvGeometry) =>
    (kernels[op].float32 as Conv)(a, b, null, out, g)
}

function operandsOf(g: ConvGeometry, make: (n: number) => Float32Array) {
  const shapes = { x: [g.n, g.c, g.h, g.w], weight: [g.o, g.c, g.kh, g.kw], y: [g.n, g.o, g.oh, g.ow] }
  const of = (shape: readonly number[]) => operandOf(make(shape.reduce((a, b) => a * b, 1)), 0, shape)
  return { x: of(shapes.x), weight: of(shapes.weight), y: of(shapes.y) }
}

const SHAPES = [
  [512, 4, 64, 24],
  [1024, 8, 96, 36],
  [64, 64, 32, 2],
  [64, 64, 32, 4],
  [16, 8, 24, 12],
  [64, 64, 56, 1],
  [256, 8, 64, 1],
  [512, 8, 64, 1],
] as const

test.each(SHAPES)(
  'CONV of %i to %i channels, %i², dilation %i: no more columns than of the whole window, in blocks of a bounded size',
  (c, o, size, dilation) => {
    const g = dilated(c, o, size, dilation)
    const watch = watched()
    let columns = 0
    // The first tap of a block has `adds` false. Its columns are b of the forward product, and the result of the image's gradient.
    const forward: ExternalProduct = (bytes, _m, _n, k, _a, b, _out, _row, adds) => {
      if (adds === false) columns += (k * b.row) / bytes
      return true
    }
    const input: ExternalProduct = (bytes, m, _n, _k, _a, _b, _out, row, adds) => {
      if (adds === false) columns += (m * row) / bytes
      return true
    }
    const { x, weight, y } = operandsOf(g, (n) => new Float32Array(n))
    const window = g.c * g.kh * g.kw
    const operands = 4 * (x.numel + y.numel + 2 * weight.numel)
    const block = 4 * Math.max(2 * COLUMNS, window * g.ow)
    for (const [op, product, a, out] of [
      ['conv2d', forward, x, y],
      ['conv2dInput', input, y, x],
    ] as const) {
      columns = 0
      watch.asked = 0
      kernelsBy(watch.heap, product)(op, a, weight, out, g)
      expect(columns).toBeGreaterThan(0)
      expect(columns).toBeLessThanOrEqual(window * g.oh * g.ow)
      expect(watch.asked).toBeLessThanOrEqual(operands + block + 1024)
    }
  },
)

test('CONV taps share columns where the window is dense: a third more rows than the result has, not three times as many', () => {
  const g = dilated(64, 4, 32, 1)
  let columns = 0
  const { x, weight, y } = operandsOf(g, (n) => new Float32Array(n))
  kernelsBy(threadHeap(), (bytes, _m, _n, k, _a, b, _out, _row, adds) => {
    if (adds === false) columns += (k * b.row) / bytes
    return true
  })('conv2d', x, weight, y, g)
  expect(columns).toBeLessThanOrEqual((4 / 3) * g.c * g.kw * g.oh * g.ow)
})

const SEED = 36
test.each([
  [8, 4, 12, 1],
  [8, 4, 12, 3],
  [16, 8, 24, 11],
  [16, 8, 24, 12],
  [16, 8, 24, 25],
] as const)(`CONV of %i to %i channels, %i², dilation %i: the results of wasm, but for rounding (seed ${SEED})`, (c, o, size, dilation) => {
  const generator = xoroshiro128plus(SEED)
  const random = (n: number) => Float32Array.from({ length: n }, () => (generator.next() >>> 0) / 2 ** 32 - 0.5)
  const g = dilated(c, o, size, dilation)
  const heap = threadHeap()
  const memory = new Float32Array(heap.buffer)
  const product: ExternalProduct = (bytes, m, n, k, a, b, out, outRow, adds) => {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        const to = (out + i * outRow) / bytes + j
        let sum = adds === true ? memory[to]! : 0
        for (let l = 0; l < k; l++)
          sum += memory[(a.pointer + i * a.row + l * a.col) / bytes]! * memory[(b.pointer + l * b.row + j * b.col) / bytes]!
        memory[to] = sum
      }
    }
    return true
  }
  const { x, weight, y } = operandsOf(g, random)
  const right = createWasmBackend(() => heap).kernels
  for (const [op, a, b, like] of [
    ['conv2d', x, weight, y],
    ['conv2dInput', y, weight, x],
    ['conv2dWeight', x, y, weight],
  ] as const) {
    const [got, want] = [new Float32Array(like.numel), new Float32Array(like.numel)]
    kernelsBy(heap, product)(op, a, b, operandOf(got, 0, like.shape), g)
    ;(right[op].float32 as Conv)(a, b, null, operandOf(want, 0, like.shape), g)
    const scale = want.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const wrong = got.findIndex((value, i) => Math.abs(value - want[i]!) > 1e-5 * scale)
    expect([op, scale > 0, wrong]).toEqual([op, true, -1])
  }
})

test('a library that refuses a product of a convolution is a bug', () => {
  const g = dilated(16, 8, 24, 1)
  const { x, weight, y } = operandsOf(g, (n) => new Float32Array(n))
  const run = kernelsBy(threadHeap(), () => false)
  for (const [op, a, b, out] of [
    ['conv2d', x, weight, y],
    ['conv2dInput', y, weight, x],
    ['conv2dWeight', x, y, weight],
  ] as const)
    expect(() => run(op, a, b, out, g)).toThrow('a library refused a product')
})
