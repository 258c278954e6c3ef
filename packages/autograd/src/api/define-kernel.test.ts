/** Users' own kernels: their results on each device, their derivatives, and when and how they are refused. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { arange, type DeviceSpec, device, type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { gpujsDevice, residentDevice } from '@postgrad/tensor/suite'
import { defineKernel, grad, gradcheck, gradgradcheck, type KernelDefinition } from '../index.js'

const DEVICES: readonly DeviceSpec[] = ['js', 'wasm']

const SWISH = 'function (x) { const v = x[this.thread.x]; return v / (1 + Math.exp(-v)); }'
const swish = defineKernel({
  name: 'swish',
  inputs: ['x'],
  kernel: SWISH,
  derivative: (g, { x }) => {
    const s = x.sigmoid()
    return g.mul(s.add(x.mul(s).mul(s.neg().add(1))))
  },
})

/** The same with its derivative as a kernel. */
const swishByKernels = defineKernel({
  name: 'swishByKernels',
  inputs: ['x'],
  kernel: SWISH,
  derivative: {
    x: `function (g, x) {
      const v = x[this.thread.x];
      const s = 1 / (1 + Math.exp(-v));
      return g[this.thread.x] * (s + v * s * (1 - s));
    }`,
  },
})

/** x [m, k] · w [n, k] + shift: a shape rule, constants, an attribute, derivatives as kernels of other shapes than the result's. */
const DEFINITION = {
  name: 'project',
  inputs: ['x', 'w'],
  attributes: { shift: 0.5 },
  shape: ({ x, w }, _attributes) => [x[0]!, w[0]!],
  constants: ({ x, w }) => ({ m: x[0]!, k: x[1]!, n: w[0]! }),
  kernel: `function (x, w, shift) {
    const row = Math.floor(this.thread.x / this.constants.n);
    const column = this.thread.x - row * this.constants.n;
    let total = shift;
    for (let j = 0; j < this.constants.k; j++) { total += x[row * this.constants.k + j] * w[column * this.constants.k + j]; }
    return total;
  }`,
  derivative: {
    x: `function (g, x, w, shift) {
      const row = Math.floor(this.thread.x / this.constants.k);
      const j = this.thread.x - row * this.constants.k;
      let total = 0;
      for (let i = 0; i < this.constants.n; i++) { total += g[row * this.constants.n + i] * w[i * this.constants.k + j]; }
      return total;
    }`,
    w: `function (g, x, w, shift) {
      const row = Math.floor(this.thread.x / this.constants.k);
      const j = this.thread.x - row * this.constants.k;
      let total = 0;
      for (let i = 0; i < this.constants.m; i++) { total += g[i * this.constants.n + row] * x[i * this.constants.k + j]; }
      return total;
    }`,
  },
} as const satisfies KernelDefinition<readonly ['x', 'w'], { readonly shift: number }>
const project = defineKernel(DEFINITION)

function failure(run: () => unknown): PostgradError {
  try {
    run()
  } catch (error) {
    if (error instanceof PostgradError) return error
    throw error
  }
  throw new Error('it did not fail')
}

const near = (got: Tensor, want: readonly number[], digits = 5): void => {
  const data = got.dataSync()
  expect(data).toHaveLength(want.length)
  want.forEach((value, i) => {
    expect(data[i]).toBeCloseTo(value, digits)
  })
}
const swishOf = (v: number): number => v / (1 + Math.exp(-v))
const slopeOf = (v: number): number => {
  const s = 1 / (1 + Math.exp(-v))
  return s + v * s * (1 - s)
}
const VALUES = [-2, -0.5, 0, 1, 3.5, 20]

describe.each(DEVICES)('on device %s', (spec) => {
  test('it computes, and its gradient as well', () => {
    withDevice(spec, () => {
      const x = tensor(VALUES, { requiresGrad: true })
      for (const f of [swish, swishByKernels]) {
        const y = f(x)
        near(y, VALUES.map(swishOf))
        const [g] = grad([y.sum()], [x])
        near(g!, VALUES.map(slopeOf))
      }
    })
  })

  test('strided, 0-d, empty and offset inputs', () => {
    withDevice(spec, () => {
      const base = tensor([
        [1, 2, 3],
        [4, 5, 6],
      ])
      near(swish(base.transpose(0, 1)), [1, 4, 2, 5, 3, 6].map(swishOf))
      near(swish(base.narrow(0, 1, 1)), [4, 5, 6].map(swishOf))
      near(swish(tensor(2)), [swishOf(2)])
      expect(swish(tensor(2)).shape).toEqual([])
      expect(swish(tensor([]).reshape([0, 3])).shape).toEqual([0, 3])
    })
  })

  test('several inputs, an attribute, constants, a shape of its own', () => {
    withDevice(spec, () => {
      const x = arange(6).reshape([2, 3]).requiresGrad_()
      const w = arange(12).reshape([4, 3]).div(4).requiresGrad_()
      const y = project(x, w)
      const want = x.matmul(w.transpose(0, 1)).add(0.5)
      near(y, [...want.dataSync()])
      expect(y.shape).toEqual([2, 4])
      near(project(x, w, { shift: -1 }), [...want.sub(1.5).dataSync()])
      const weights = arange(8).reshape([2, 4])
      const got = grad([y.mul(weights).sum()], [x, w])
      const expected = grad([want.mul(weights).sum()], [x, w])
      got.forEach((g, i) => {
        near(g!, [...expected[i]!.dataSync()], 4)
      })
    })
  })

  test('which code runs', () => {
    const variant = 'gpu.js cpu'
    expect(swish.kernelFor(device(spec))).toEqual({ device: spec, variant })
    expect(withDevice(spec, () => swish.kernelFor())).toEqual({ device: spec, variant })
  })

  test('loops go to their end, whatever their bound is', () => {
    const count = (loop: string) =>
      defineKernel({ name: 'count', inputs: ['x'], attributes: { n: 0 }, kernel: `function (x, n) { let t = 0; ${loop} return t; }` })
    withDevice(spec, () => {
      for (const loop of ['for (let i = 0; i < n; i++) { t += 1; }', 'while (t < n) { t += 1; }', 'do { t += 1; } while (t < n);']) {
        expect(count(loop)(tensor(0), { n: 4321 }).itemSync()).toBe(4321)
      }
    })
  })
})

test('on a device with a memory of its own it waits like any kernel', async () => {
  await withDevice(residentDevice(), async () => {
    const x = tensor(VALUES, { requiresGrad: true })
    const [g] = grad([swishByKernels(x).sum()], [x])
    const data = await g!.data()
    VALUES.forEach((v, i) => {
      expect(data[i]).toBeCloseTo(slopeOf(v), 5)
    })
  })
})

test('the derivative agrees with finite differences, the second one as well', () => {
  const x = tensor([-2.1, -0.4, 0.3, 1.7], { dtype: 'float64', requiresGrad: true })
  for (const f of [swish, swishByKernels]) expect(gradcheck(f, [x])).toBe(true)
  expect(gradgradcheck(swish, [x])).toBe(true)
  const w = tensor([[0.5, -1.5]], { dtype: 'float64', requiresGrad: true })
  expect(gradcheck(project, [x.detach().reshape([2, 2]).requiresGrad_(), w])).toBe(true)
  const wrong = defineKernel({ name: 'wrong', inputs: ['x'], kernel: SWISH, derivative: (g) => g })
  expect(() => gradcheck(wrong, [x])).toThrow(expect.objectContaining({ code: 'GRADCHECK_FAILED' }))
})

test('without a shape rule inputs broadcast, and gradients are summed back', () => {
  const fma = defineKernel({
    name: 'fma',
    inputs: ['a', 'b', 'c'],
    kernel: 'function (a, b, c) { return a[this.thread.x] * b[this.thread.x] + c[this.thread.x]; }',
    derivative: (g, { a, b }) => [g.mul(b), g.mul(a), g],
  })
  const a = arange(6).reshape([2, 3]).requiresGrad_()
  const b = tensor([1, 2, 3], { requiresGrad: true })
  const c = tensor(10, { requiresGrad: true })
  const y = fma(a, b, c)
  expect(y.toArray()).toEqual([
    [10, 12, 16],
    [13, 18, 25],
  ])
  expect(grad([y.sum()], [a, b, c]).map((g) => g!.toArray())).toEqual([
    [
      [1, 2, 3],
      [1, 2, 3],
    ],
    [3, 5, 7],
    6,
  ])
  expect(failure(() => fma(a, tensor([1, 2]), c))).toMatchObject({ code: 'SHAPE_MISMATCH' })
})

test('a derivative reads the result; an input that was written to is noticed', () => {
  const root = defineKernel({
    name: 'root',
    inputs: ['x'],
    kernel: 'function (x) { return Math.sqrt(x[this.thread.x]); }',
    derivative: (g, _, { result }) => g.div(result.mul(2)),
  })
  const x = tensor([4, 16], { requiresGrad: true })
  expect(grad([root(x).sum()], [x])[0]!.toArray()).toEqual([0.25, 0.125])
  const twice = x.mul(2)
  const y = root(twice)
  twice.mul_(3)
  expect(failure(() => y.sum().backward())).toMatchObject({ code: 'SAVED_VARIABLE_MODIFIED' })
})

test('only gradients that are used are computed; null is none', () => {
  let asked: unknown
  const first = defineKernel({
    name: 'first',
    inputs: ['a', 'b'],
    kernel: 'function (a, b) { return a[this.thread.x] + 0 * b[this.thread.x]; }',
    derivative: (g, _, { needsInputGrad }) => {
      asked = needsInputGrad
      return [g, null]
    },
  })
  const a = tensor([1, 2], { requiresGrad: true })
  first(a, tensor([3, 4]))
    .sum()
    .backward()
  expect(asked).toEqual({ a: true, b: false })
  expect(a.grad!.toArray()).toEqual([1, 1])
})

test('a plain function is taken by its text', () => {
  const f = defineKernel({
    name: 'half',
    inputs: ['x'],
    kernel: function (x: Float32Array) {
      return x[this.thread.x]! / 2
    },
  })
  expect(f(tensor([1, 2, 5])).toArray()).toEqual([0.5, 1, 2.5])
  const method = defineKernel({
    name: 'third',
    inputs: ['x'],
    kernel(x: Float32Array) {
      return x[this.thread.x]! / 3
    },
  })
  expect(method(tensor([3])).toArray()).toEqual([1])
  const factor = 7
  const closure = defineKernel({
    name: 'closure',
    inputs: ['x'],
    kernel: function (x: Float32Array) {
      return x[this.thread.x]! * factor
    },
  })
  expect(failure(() => closure(tensor([1])))).toMatchObject({ code: 'KERNEL_COMPILE', op: 'closure' })
})

test('two kernels of one name are two', () => {
  const make = (factor: number) =>
    defineKernel({ name: 'same', inputs: ['x'], kernel: `function (x) { return x[this.thread.x] * ${factor}; }` })
  const [two, three] = [make(2), make(3)]
  const x = tensor([1])
  expect([two(x), three(x), two(x)].map((y) => y.itemSync())).toEqual([2, 3, 2])
})

test('it has its name, and nothing is recorded that needs no gradient', () => {
  expect(swish.name).toBe('swish')
  expect(swish(tensor([1])).requiresGrad).toBe(false)
  expect(swish(tensor([1], { requiresGrad: true })).gradFn?.name).toBe('swishBackward')
})

describe('what is refused', () => {
  const one = tensor([1])
  const OK = 'function (x) { return x[this.thread.x]; }'
  const define = (changes: object) => () => defineKernel({ name: 'k', inputs: ['x'], kernel: OK, ...changes } as never)

  test.each<[string, object, RegExp]>([
    ['an arrow function', { kernel: (x: Float32Array) => x[0] }, /Arrow functions have no `this`/],
    ['what is no function', { kernel: 'x[0]' }, /got x\[0\]/],
    ['a native function', { kernel: Math.max }, /as the text of a function/],
    ['other parameters', { inputs: ['x', 'y'] }, /'k' with 2 parameters.*\(x, y\), got \(x\)/],
    ['a write', { kernel: 'function (x) { x[this.thread.x] = 3; return 1; }' }, /an assignment to an element: \] =/],
    ['an increment', { kernel: 'function (x) { x[0]++; return 1; }' }, /an assignment to an element/],
    [
      'two indices in a row',
      { kernel: 'function (t) { return t[t[0]] [this.thread.x]; }' },
      /flat arrays, got t\[…\]\[…\]\. .*row-major: t\[row \*/,
    ],
    [
      'threads in two dimensions',
      { kernel: 'function (x) { return x[this.thread.y * 3 + this.thread.x]; }' },
      /do not have: this\.thread\.y/,
    ],
    ['random numbers', { kernel: 'function (x) { return Math.random(); }' }, /no seed repeats/],
    ['no inputs', { inputs: [], kernel: 'function () { return 1; }' }, /at least one input/],
    ['a name that is none', { name: 'a kernel' }, /names that are identifiers, got a kernel/],
    ['one name twice', { inputs: ['x', 'x'], kernel: 'function (x, y) { return 1; }' }, /x twice/],
    ['an attribute that is no number', { attributes: { a: '1' }, kernel: 'function (x, a) { return 1; }' }, /number as the default of a/],
    ['derivatives of other inputs', { derivative: { y: OK } }, /derivatives of 'k' for x, got y/],
  ])('by the definition: %s', (_, changes, words) => {
    const error = failure(define(changes))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'defineKernel' })
    expect(error.message).toMatch(words)
  })

  test('comparisons and comments are no writes', () => {
    const f = defineKernel({
      name: 'fine',
      inputs: ['x'],
      kernel: `function (x) {
        // y[i] = x[i]
        let t = 0;
        if (x[0] == 1 && x[0] <= 1 && x[0] >= 1 && x[0] != 2) { t = 1; }
        return t;
      }`,
    })
    expect(f(one).itemSync()).toBe(1)
  })

  test('by a call: other dtypes, what is no tensor, attributes that it does not have', () => {
    expect(failure(() => swish(tensor([1], { dtype: 'int32' })))).toMatchObject({
      code: 'DTYPE_MISMATCH',
      op: 'swish',
      message: expect.stringContaining('expected float32 or float64 for x, got int32'),
    })
    expect(failure(() => project(one.reshape([1, 1]), one.reshape([1, 1]).to('float64')))).toMatchObject({
      code: 'DTYPE_MISMATCH',
      message: expect.stringContaining('expected float32 for w, as for the inputs before it, got float64'),
    })
    expect(failure(() => swish(3 as never))).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('a tensor as x') })
    expect(failure(() => swish(one, { slope: 1 } as never)).message).toMatch('attributes among none, got slope')
    expect(failure(() => swish(one, one as never)).code).toBe('INVALID_ARGUMENT')
    expect(failure(() => project(one, one, { shift: '3' } as never)).message).toMatch('a number as shift')
    expect(failure(() => (swish as (...args: unknown[]) => Tensor)(one, {}, {})).message).toMatch('more arguments')
  })

  test('rules that give no shapes, constants that are no integers', () => {
    const rule = (shape: unknown) => define({ shape: () => shape })()
    for (const shape of [[1.5], [-1], 3, undefined]) {
      expect(failure(() => rule(shape)(one))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'k' })
    }
    expect(failure(() => define({ constants: () => ({ half: 0.5 }) })()(one)).message).toMatch('integers of 32 bits, got half = 0.5')
  })

  test('what gpu.js does not compile, in its words', () => {
    const broken = (kernel: string) => failure(() => define({ name: 'broken', kernel })()(one))
    expect(broken('function (x) { return other[this.thread.x]; }')).toMatchObject({
      code: 'KERNEL_COMPILE',
      op: 'broken',
      message: expect.stringMatching(/could not build this kernel in mode 'cpu': .*other|Identifier/s),
    })
    expect(broken('function (x) { return x[; }').message).toMatch('Unexpected token')
    expect(broken('function (x) { return this.constants.k; }').message).toMatch('constant "k"')
    expect(broken('function (x) { return [1, 2]; }')).toMatchObject({
      code: 'KERNEL_RESULT',
      message: expect.stringContaining('2 numbers from each'),
    })
    const fallsThrough = broken('function (x) { let t = x[0]; }')
    expect(['KERNEL_COMPILE', 'KERNEL_MODE']).toContain(fallsThrough.code)
  })

  test('reads outside of an input, before gpu.js gives NaN or 0 for them: with argument, index, length and thread', () => {
    const reading = (index: string) => define({ name: 'reader', kernel: `function (x) { /* x[9] */ return x[${index}] + 0; }` })()
    for (const spec of DEVICES) {
      withDevice(spec, () => {
        expect(failure(() => reading('this.thread.x + 1')(tensor([1, 2, 3])))).toMatchObject({
          code: 'KERNEL_OUT_OF_RANGE',
          op: 'reader',
          message: expect.stringContaining('reader: expected reads of x[0] … x[2], got x[3] in thread 2'),
          values: { argument: 'x', index: '3', length: 3, thread: 2 },
        })
        expect(failure(() => reading('this.thread.x - 1')(one))).toMatchObject({ values: { index: '-1', thread: 0 } })
        expect(failure(() => reading('this.thread.x / 2')(tensor([1, 2])))).toMatchObject({ remedy: expect.stringContaining('Math.floor') })
      })
    }
    expect(failure(() => reading('x[this.thread.x]')(tensor([0, 1, 3])))).toMatchObject({ values: { index: '3', thread: 2 } })
    expect(failure(() => reading('this.thread.x + 1')(tensor([1, 2], { dtype: 'float64' })))).toMatchObject({ code: 'KERNEL_OUT_OF_RANGE' })
    expect(failure(() => reading('this.thread.x + 1')(arange(5000)))).toMatchObject({ values: { index: '5000', thread: 4999 } })
  })

  test('reads that a condition keeps inside are fine, and so is a new size', () => {
    const left = define({ kernel: 'function (x) { return this.thread.x > 0 ? x[this.thread.x - 1] : 0; }' })()
    near(left(tensor([1, 2, 3])), [0, 1, 2])
    near(left(tensor([1, 2, 3], { dtype: 'float64' })), [0, 1, 2])
    const fixed = define({ kernel: 'function (x) { return x[2]; }' })()
    near(fixed(tensor([1, 2, 3])), [3, 3, 3])
    expect(failure(() => fixed(tensor([1, 2])))).toMatchObject({ code: 'KERNEL_OUT_OF_RANGE' })
  })

  test('float64 where there is none; a text that is no JavaScript, or returns no number, in float64', () => {
    const x = tensor([1], { dtype: 'float64' })
    expect(withDevice(gpujsDevice(), () => failure(() => swish(x)))).toMatchObject({ code: 'KERNEL_UNSUPPORTED', op: 'swish' })
    const broken = (kernel: string) => failure(() => define({ name: 'broken', kernel })()(x))
    expect(broken('function (x) { return other[this.thread.x]; }')).toMatchObject({ code: 'KERNEL_COMPILE', op: 'broken' })
    expect(broken('function (x) { return x[0] * this.constants.k; }').message).toMatch('constant "k"')
    expect(broken('function (x) { return [1, 2]; }').code).toBe('KERNEL_RESULT')
    expect(broken('function (x) { const y = x; return y[0]; }').message).toMatch('only be read')
  })

  test('a derivative that is missing, at the first backward or at the second', () => {
    const x = tensor([1], { requiresGrad: true })
    const plain = defineKernel({ name: 'plain', inputs: ['x'], kernel: OK })
    expect(failure(() => plain(x).sum().backward())).toMatchObject({ code: 'DERIVATIVE_MISSING', op: 'plainBackward' })
    const [g] = grad([swishByKernels(x).sum()], [x], { createGraph: true })
    near(g!, [slopeOf(1)])
    expect(failure(() => g!.sum().backward())).toMatchObject({ code: 'DERIVATIVE_MISSING', op: 'swishByKernels_xBackward' })
  })
})
