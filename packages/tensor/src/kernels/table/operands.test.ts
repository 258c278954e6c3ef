/**
 * Kernels on operands of all forms: every family on views with offsets, gaps, transposes and repeated elements, without dimensions and without elements,
 * in place, against the same kernel on dense copies; they write nothing but the output.
 */
import { describe, expect, test } from '@jest/globals'
import { threadHeap } from '../../heap/thread-heap.js'
import { Tensor } from '../../tensor/tensor.js'
import { allocate, type DType } from '../../values/dtype.js'
import { contiguousStrides, numelOf, type Shape } from '../../values/shape.js'
import { hostUserKernels } from '../gpujs/user-kernels.js'
import { createJsBackend } from '../js/backend.js'
import { createWasmBackend } from '../wasm/backend.js'
import type { Backend } from './backend.js'
import type { KernelMap, Operand } from './operands.js'
import { isUnsupported, type KernelOp } from './table.js'

type Layout = 'dense' | 'offset' | 'gaps' | 'turned'
const LAYOUTS: readonly Layout[] = ['dense', 'offset', 'gaps', 'turned']
const SHAPES: readonly Shape[] = [[], [1], [5], [0], [2, 0, 3], [3, 4], [1, 7], [2, 3, 4], [3, 40]]
const RUBBISH = 77

function stridesOf(shape: Shape, layout: Layout): Shape {
  if (layout === 'gaps') return contiguousStrides(shape).map((step) => 2 * step)
  return layout === 'turned' ? contiguousStrides(shape.toReversed()).toReversed() : contiguousStrides(shape)
}

/** Where the elements of x lie in its storage, in row-major order. */
function places({ shape, strides, offset }: Operand): number[] {
  return shape.reduce((from, n, d) => from.flatMap((at) => Array.from({ length: n }, (_, i) => at + i * strides[d]!)), [offset])
}

const elements = (x: Operand): number[] => places(x).map((at) => x.storage.host![at]!)

/** These values among rubbish, but densely from 0 on for `dense`. */
function laid(values: readonly number[], dtype: DType, shape: Shape, layout: Layout): Tensor {
  const [before, after] = layout === 'dense' ? [0, 0] : [3, 2]
  const strides = stridesOf(shape, layout)
  const span = numelOf(shape) === 0 ? 0 : 1 + shape.reduce((sum, n, d) => sum + (n - 1) * strides[d]!, 0)
  const array = allocate(dtype, before + span + after).fill(dtype === 'bool' ? 1 : RUBBISH)
  const x = Tensor.view(Tensor.over(dtype, [array.length], array), shape, strides, before)
  places(x).forEach((at, i) => {
    array[at] = values[i]!
  })
  return x
}

let seed = 1
function numbers(n: number, dtype: DType): number[] {
  return Array.from({ length: n }, () => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31
    return dtype === 'bool' ? seed & 1 : ((seed >> 8) % 19) - 9
  })
}

/** x as it counts for an output of `shape`: densely, every repetition written out. */
function whole(x: Tensor, shape: Shape): Tensor {
  const strides = shape.map((n, d) => {
    const at = d - shape.length + x.shape.length
    return at < 0 || (x.shape[at] === 1 && n !== 1) ? 0 : x.strides[at]!
  })
  return laid(elements(Tensor.view(x, shape, strides, x.offset)), x.dtype, shape, 'dense')
}

/** Runs `call` on out, and on a dense copy of it with `plain`; compares the results, and what lies around out. */
function compare(what: string, out: Tensor, call: (out: Tensor) => void, plain: (out: Tensor) => void): void {
  const expected = laid(elements(out), out.dtype, out.shape, 'dense')
  const around = out.storage.host!.slice()
  call(out)
  plain(expected)
  const got = elements(out)
  const rest = out.storage.host!.slice()
  for (const at of places(out)) rest[at] = around[at]!
  expect([what, got, [...rest]]).toEqual([what, elements(expected), [...around]])
}

/** Shapes that broadcast to this one. */
const smaller = (shape: Shape): Shape[] => [shape, [], shape.map((n, d) => (d === 0 && n > 0 ? 1 : n)), shape.slice(1)]

describe.each<[string, Backend]>([
  ['js', createJsBackend(hostUserKernels())],
  ['wasm', createWasmBackend(threadHeap)],
])('%s', (_, backend) => {
  function kernel<Op extends KernelOp>(op: Op, dtype: DType = 'float32'): KernelMap[Op] {
    const entry = backend.kernels[op][dtype]
    if (isUnsupported(entry)) throw new Error(entry.unsupported)
    return entry as KernelMap[Op]
  }
  const random = (shape: Shape, layout: Layout, dtype: DType = 'float32') => laid(numbers(numelOf(shape), dtype), dtype, shape, layout)

  test('of one operand', () => {
    const clamp = kernel('clamp')
    for (const shape of SHAPES) {
      for (const layout of LAYOUTS) {
        const x = random(shape, layout)
        const plain = whole(x, shape)
        for (const to of ['dense', 'offset'] as const) {
          compare(
            `[${shape}] ${layout}`,
            random(shape, to),
            (out) => clamp(x, out, -3, 4),
            (out) => clamp(plain, out, -3, 4),
          )
        }
        if (x.isContiguous)
          compare(
            `in place [${shape}] ${layout}`,
            x,
            (out) => clamp(out, out, -3, 4),
            (out) => clamp(plain, out, -3, 4),
          )
      }
    }
  })

  test.each(['sub', 'lt'] as const)('of two operands, which broadcast: %s', (op) => {
    const dtype = op === 'lt' ? 'bool' : 'float32'
    for (const shape of SHAPES) {
      for (const [aShape, bShape] of smaller(shape).flatMap((each): [Shape, Shape][] => [
        [shape, each],
        [each, shape],
      ])) {
        for (const layout of LAYOUTS) {
          const [a, b] = [random(aShape, layout), random(bShape, LAYOUTS[(LAYOUTS.indexOf(layout) + 1) % 4]!)]
          const [x, y] = [whole(a, shape), whole(b, shape)]
          for (const to of LAYOUTS) {
            const what = `[${aShape}] and [${bShape}] ${layout} to ${to}`
            compare(
              what,
              random(shape, to, dtype),
              (out) => kernel(op)(a, b, out),
              (out) => kernel(op)(x, y, out),
            )
          }
          if (op === 'sub' && aShape === shape) {
            compare(
              `in place [${shape}] ${layout}`,
              a,
              (out) => kernel(op)(out, b, out),
              (out) => kernel(op)(out, y, out),
            )
          }
        }
      }
    }
  })

  test('where', () => {
    for (const shape of SHAPES) {
      for (const each of smaller(shape)) {
        for (const layout of LAYOUTS) {
          for (const k of [0, 1, 2]) {
            const [cond, a, b] = [0, 1, 2].map((i) => random(i === k ? each : shape, layout, i === 0 ? 'bool' : 'float32'))
            const [c, x, y] = [whole(cond!, shape), whole(a!, shape), whole(b!, shape)]
            const what = `[${shape}], ${k} [${each}] ${layout}`
            compare(
              what,
              random(shape, 'offset'),
              (out) => kernel('where')(cond!, a!, b!, out),
              (out) => kernel('where')(c, x, y, out),
            )
          }
        }
      }
    }
  })

  test('axpy, copy (with conversion) and fill, into any strides', () => {
    for (const shape of SHAPES) {
      for (const to of LAYOUTS) {
        for (const each of smaller(shape)) {
          for (const layout of LAYOUTS) {
            const what = `[${each}] ${layout} to [${shape}] ${to}`
            const [x, i] = [random(each, layout), random(each, layout, 'int32')]
            const [dense, integers] = [whole(x, shape), whole(i, shape)]
            compare(
              what,
              random(shape, to),
              (out) => kernel('axpy')(2, x, out),
              (out) => kernel('axpy')(2, dense, out),
            )
            compare(
              what,
              random(shape, to),
              (out) => kernel('copy')(x, out),
              (out) => kernel('copy')(dense, out),
            )
            compare(
              what,
              random(shape, to),
              (out) => kernel('copy')(i, out),
              (out) => kernel('copy')(integers, out),
            )
          }
        }
        compare(
          `fill [${shape}] ${to}`,
          random(shape, to),
          (out) => kernel('fill')(5, out),
          (out) => kernel('fill')(5, out),
        )
      }
    }
    const x = random([4], 'offset')
    kernel('fill')(6, Tensor.view(x, [3, 4], [0, 1], x.offset))
    expect(elements(x)).toEqual([6, 6, 6, 6])
  })

  test('a gradient of one element is repeated, and may be the output otherwise', () => {
    for (const shape of SHAPES) {
      const [g, x] = [random(shape, 'offset'), random(shape, 'offset')]
      const one = random([], 'offset')
      const repeated = Tensor.view(
        one,
        shape,
        shape.map(() => 0),
        one.offset,
      )
      const back = kernel('leakyReluBackward')
      const [plainX, plainOne] = [whole(x, shape), whole(one, shape)]
      compare(
        `[${shape}]`,
        random(shape, 'offset'),
        (out) => back(repeated, x, out, 0.5, 0),
        (out) => back(plainOne, plainX, out, 0.5, 0),
      )
      compare(
        `in place [${shape}]`,
        g,
        (out) => back(out, x, out, 0.5, 0),
        (out) => back(out, plainX, out, 0.5, 0),
      )
    }
  })

  test('products, of batches that broadcast and of transposes', () => {
    const SIZES: readonly (readonly [Shape, Shape, Shape])[] = [
      ...([
        [[3], [3], []],
        [[2, 3], [3], [2]],
        [[3], [3, 4], [4]],
        [
          [2, 3],
          [3, 4],
          [2, 4],
        ],
        [
          [2, 0],
          [0, 3],
          [2, 3],
        ],
      ] as const),
      ...([
        [
          [5, 2, 3],
          [3, 4],
          [5, 2, 4],
        ],
        [
          [2, 3],
          [5, 3, 4],
          [5, 2, 4],
        ],
        [[3], [5, 3, 4], [5, 4]],
        [[5, 2, 3], [3], [5, 2]],
      ] as const),
      ...([
        [
          [5, 2, 3],
          [5, 3, 4],
          [5, 2, 4],
        ],
        [
          [2, 1, 2, 3],
          [5, 3, 4],
          [2, 5, 2, 4],
        ],
        [
          [0, 2, 3],
          [3, 4],
          [0, 2, 4],
        ],
        [
          [5, 1, 3],
          [3, 4],
          [5, 1, 4],
        ],
      ] as const),
    ]
    for (const [aShape, bShape, shape] of SIZES) {
      for (const aLayout of LAYOUTS) {
        for (const bLayout of LAYOUTS) {
          const [a, b] = [random(aShape, aLayout), random(bShape, bLayout)]
          const k = aShape.at(-1)!
          const rows = aShape.length === 1 ? 1 : aShape.at(-2)!
          const columns = bShape.length === 1 ? 1 : bShape.at(-1)!
          const batch = shape.slice(0, shape.length - Number(aShape.length > 1) - Number(bShape.length > 1))
          const x = elements(whole(a, [...batch, rows, k]))
          const y = elements(whole(bShape.length === 1 ? Tensor.view(b, [k, 1], [b.strides[0]!, 0], b.offset) : b, [...batch, k, columns]))
          const products = (out: Tensor): void => {
            for (let i = 0; i < out.numel; i++) {
              const [t, r, c] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns]
              let sum = 0
              for (let j = 0; j < k; j++) sum += x[(t * rows + r) * k + j]! * y[(t * k + j) * columns + c]!
              out.storage.host![i] = sum
            }
          }
          const what = `[${aShape}] ${aLayout} · [${bShape}] ${bLayout}`
          compare(what, random(shape, 'offset'), (out) => kernel('matmul')(a, b, out), products)
          if (bShape.length !== 2) continue
          const turned = Tensor.view(b, bShape.toReversed(), b.strides.toReversed(), b.offset)
          compare(`${what}, turned`, random(shape, 'offset'), (out) => kernel('matmul')(a, turned, out, true), products)
        }
      }
    }
  })

  /** Families of dense operands: from an offset as from 0. `call` makes its own calls of `x`, for operands, and writes `out`. */
  function dense(
    op: KernelOp,
    outShape: Shape,
    inputs: readonly Tensor[],
    call: (inputs: readonly Tensor[], out: Tensor) => void,
    dtype: DType = 'float32',
  ) {
    const plain = inputs.map((x) => laid(elements(x), x.dtype, x.shape, 'dense'))
    compare(
      op,
      random(outShape, 'offset', dtype),
      (out) => call(inputs, out),
      (out) => call(plain, out),
    )
  }
  const at = (shape: Shape, dtype: DType = 'float32') => random(shape, 'offset', dtype)
  const indices = (shape: Shape, below: number) =>
    laid(
      numbers(numelOf(shape), 'int32').map((v) => (v + 9) % below),
      'int32',
      shape,
      'offset',
    )

  test('rows', () => {
    for (const [n, k, inner] of [
      [2, 3, 4],
      [1, 90, 1],
      [2, 0, 3],
      [0, 2, 1],
    ] as const) {
      const shape = [n, k, inner]
      for (const op of ['sum', 'prod'] as const) dense(op, [n, inner], [at(shape)], ([x], out) => kernel(op)(x!, out, n, k, inner))
      for (const op of ['cumsum', 'softmax'] as const) dense(op, shape, [at(shape)], ([x], out) => kernel(op)(x!, out, n, k, inner))
      if (k > 0) dense('argmax', [n, inner], [at(shape)], ([x], out) => kernel('argmax')(x!, out, n, k, inner), 'int32')
      dense('argsort', shape, [at(shape)], ([x], out) => kernel('argsort')(x!, out, n, k, k, inner, true), 'int32')
      dense('flip', shape, [at(shape)], ([x], out) => kernel('flip')(x!, out, n, k, inner))
      dense('triu', shape, [at(shape)], ([x], out) => kernel('triu')(x!, out, n, k, inner, 1))
      dense('variance', [n, inner], [at(shape)], ([x], out) => kernel('variance')(x!, out, n, k, inner, 1, true))
      const back = kernel('softmaxBackward')
      dense('softmaxBackward', shape, [at(shape), at(shape)], ([g, y], out) => back(g!, y!, out, n, k, inner))
      dense('prodBackward', shape, [at([n, inner]), at(shape)], ([g, x], out) => kernel('prodBackward')(g!, x!, out, n, k, inner))
    }
  })

  test('indices and classes', () => {
    dense('firstOutside', [1], [indices([5], 4)], ([i], out) => kernel('firstOutside', 'int32')(i!, out, 2), 'int32')
    dense('indexSelect', [2, 5, 3], [at([2, 4, 3]), indices([5], 4)], ([x, i], out) => kernel('indexSelect')(x!, i!, out, 2, 4, 5, 3))
    dense('gather', [2, 5, 3], [at([2, 4, 3]), indices([2, 5, 3], 4)], ([x, i], out) => kernel('gather')(x!, i!, out, 2, 4, 5, 3))
    dense('indexAdd', [2, 4, 3], [at([2, 5, 3]), indices([5], 4)], ([x, i], out) => kernel('indexAdd')(x!, i!, out, 2, 4, 5, 3))
    dense('nll', [6], [at([6, 4]), indices([6], 4)], ([x, i], out) => kernel('nll')(x!, i!, out))
    for (const shape of [[6], []]) {
      dense('nllBackward', [6, 4], [at(shape), indices([6], 4)], ([g, i], out) => kernel('nllBackward')(g!, i!, out))
    }
    dense('nllBackward', [0, 4], [at([]), indices([0], 4)], ([g, i], out) => kernel('nllBackward')(g!, i!, out))
    dense('classLoss', [6], [at([6, 4]), indices([6], 4)], ([x, i], out) => kernel('classLoss')(x!, i!, out))
    const back = kernel('classLossBackward')
    for (const shape of [[6], []]) {
      dense('classLossBackward', [6, 4], [at(shape), at([6, 4]), indices([6], 4)], ([g, x, i], out) => back(g!, x!, i!, out))
    }
  })

  test('neural networks', () => {
    const window = { h: 4, w: 5, kh: 2, kw: 2, oh: 3, ow: 4, strideH: 1, strideW: 1, padH: 0, padW: 0, dilH: 1, dilW: 1 }
    const g = { ...window, n: 2, c: 2, o: 3, groups: 1 }
    const image = [at([2, 2, 4, 5]), at([3, 2, 2, 2])]
    dense('conv2d', [2, 3, 3, 4], image, ([x, w], out) => kernel('conv2d')(x!, w!, null, out, g))
    dense('conv2d', [2, 3, 3, 4], [...image, at([3])], ([x, w, bias], out) => kernel('conv2d')(x!, w!, bias!, out, g))
    const planes = { ...window, planes: 3, includePad: 1, divisor: 0 }
    dense('avgPool2d', [3, 3, 4], [at([3, 4, 5])], ([x], out) => kernel('avgPool2d')(x!, out, planes))
    const other = (shape: Shape, dtype: DType = 'float32') => at(shape, dtype)
    dense('maxPool2d', [3, 3, 4], [at([3, 4, 5])], ([x], out) => kernel('maxPool2d')(x!, out, other([3, 3, 4], 'int32'), planes))
    const pool = kernel('maxPool2d')
    dense('maxPool2d', [3, 3, 4], [at([3, 4, 5])], ([x], out) => pool(x!, other([3, 3, 4]), out, planes), 'int32')
    for (const [op, rows, d] of [
      ['layerNorm', 4, 6],
      ['channelNorm', 6, 4],
    ] as const) {
      // Of each, first the result, then what is saved of it.
      const shape = op === 'layerNorm' ? [rows, d] : [2, d, 3]
      const saved = [op === 'layerNorm' ? rows : d]
      const [forward, back] = [kernel(op), kernel(`${op}Backward`)]
      const inputs = [at(shape), at([d]), at([d])]
      dense(op, shape, inputs, ([x, w, b], out) => forward(x!, w!, b!, out, other(saved), other(saved), 0.5))
      dense(op, saved, inputs, ([x], out) => forward(x!, null, null, other(shape), out, other(saved), 0.5))
      dense(op, saved, inputs, ([x], out) => forward(x!, null, null, other(shape), other(saved), out, 0.5))
      const spread = laid(
        numbers(saved[0]!, 'bool').map((v) => v + 1),
        'float32',
        saved,
        'offset',
      )
      const passed = [at(shape), at(shape), at(saved), spread, at([d])]
      dense(`${op}Backward`, shape, passed, ([y, x, m, s, w], out) => back(y!, x!, m!, s!, w!, out, null, null, 0.5))
      dense(`${op}Backward`, [d], passed, ([y, x, m, s, w], out) => back(y!, x!, m!, s!, w!, other(shape), out, null, 0.5))
      dense(`${op}Backward`, [d], passed, ([y, x, m, s, w], out) => back(y!, x!, m!, s!, w!, other(shape), null, out, 0.5))
    }
  })

  test("users' kernels, which read nothing but their operands", () => {
    const { userKernels } = backend
    const kernelOf = (body: string) => ({ name: 'mine', source: `function (x, y) { return ${body}; }`, inputs: ['x', 'y'] })
    const [x, y, out] = [at([3], 'float64'), at([1], 'float64'), at([3], 'float64')]
    compare(
      'mine',
      out,
      () => userKernels.run(kernelOf('x[this.thread.x] * y[0]'), {}, [x, y], out),
      (plain) => {
        for (const [i, v] of elements(x).entries()) plain.storage.host![i] = v * elements(y)[0]!
      },
    )
    const beyond = kernelOf('x[this.thread.x + 1] + y[0]')
    expect(() => userKernels.run(beyond, {}, [x, y], out)).toThrow(expect.objectContaining({ code: 'KERNEL_OUT_OF_RANGE' }))
  })
})
