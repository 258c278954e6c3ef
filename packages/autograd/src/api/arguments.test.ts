/** Arguments of a wrong kind: each operation accepts any value in any place, or refuses it with a message, never with a TypeError from inside. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import {
  bernoulli,
  coalesce,
  fromTypedArray,
  full,
  isTensor,
  logspace,
  memoryScope,
  multinomial,
  normal,
  ones,
  rand,
  randperm,
  type Tensor,
  tensor,
  withDevice,
  zeros,
  zerosLike,
} from '@postgrad/tensor'
import { entries } from '@postgrad/tensor/internal'
import { decode, goldenCasesByOp } from '@postgrad/tensor/suite'
import * as F from '../index.js'

/** As users call them, the in-place forms as well. */
const operations = Object.fromEntries(entries.map(({ name, fn }) => [name, fn]))

type Call = (...args: unknown[]) => unknown

const WRONG: Readonly<Record<string, unknown>> = {
  ...{
    undefined,
    null: null,
    string: 'a',
    array: [1, 2],
    strings: ['a'],
    object: {},
    NaN: Number.NaN,
    half: 1.5,
    negative: -100,
    large: 1000,
  },
  ...{ function: () => 1, boolean: true, date: new Date(0), bigint: 3n, typedArray: new Float64Array(2), nested: [[1]], hole: [undefined] },
}

/** Which argument may also be true or false. */
const FILLING: Readonly<Record<string, number>> = { fill: 1, maskedFill: 2, indexFill: 3, indexPut: 2, scatter: 3 }

/** Only operations call them. */
const SKIPPED =
  /Backward$|^convolution|Planes$|^avgPoolSpread|^layerNormRows|^binaryCrossEntropy|^embeddingRows|^batchNormTraining|^constantPad|^sumToShape|^everyNth|^reverseCumsum/

const cases = [...goldenCasesByOp()].filter(([op]) => !SKIPPED.test(op))

function outcome(call: () => unknown): unknown {
  try {
    return { value: call() }
  } catch (error) {
    return error
  }
}

test.each(cases)('%s takes or refuses arguments of every kind', (op, [first]) => {
  const call = (operations as unknown as Readonly<Record<string, Call>>)[op] ?? (F as unknown as Readonly<Record<string, Call>>)[op]!
  for (const at of first!.args.keys()) {
    for (const [name, wrong] of Object.entries(WRONG)) {
      const args = first!.args.map((arg) => decode(arg, []))
      const wanted = args[at]
      if (wrong === wanted) continue
      args[at] = wrong
      const result = outcome(() => call(...args))
      const where = `${op} with ${name} as argument ${at}`
      const isError = isPostgradError(result)
      if (!isError && !Object.hasOwn(result as object, 'value')) throw new Error(`${where}: ${String(result)}`, { cause: result })
      if (typeof wrong === 'boolean' && FILLING[op.replace(/_$/, '')] === at) continue
      if (isTensor(wanted) && typeof wrong !== 'number' && wrong !== null && wrong !== undefined && !isError)
        throw new Error(`${where} was taken`)
      if (!isError) continue
      expect(result.message).toMatch(/^\w+: /)
      expect([where, result.message.replace(/got .*/s, '')]).not.toEqual([where, expect.stringMatching(/undefined|\[object/)])
    }
  }
})

const x = ones([2, 3])
const leaf = () => ones([2]).requiresGrad_()

test.each<[string, () => unknown]>([
  [
    'matmul: expected (tensor, tensor), got (an array of 1, 2, tensor [2, 3] of float32). Make a tensor of it',
    () => F.matmul([1, 2] as never, x),
  ],
  ['add: expected (tensor or number, tensor or number), got (undefined, tensor [2, 3] of float32)', () => F.add(undefined as never, x)],
  [
    'reshape: expected (tensor, number[]), got (tensor [2, 3] of float32, 2). Write [2, 3]',
    () => (x as never as { reshape: Call }).reshape(2, 3),
  ],
  ['cat: expected (tensor[], number or nothing), got (tensor [2, 3] of float32, tensor', () => F.cat(x as never, x as never)],
  ['cat: expected (tensor[], number or nothing), got (tensor [2, 3] of float32). Put the tensors into an array', () => F.cat(x as never)],
  ['stack: expected (tensor[], number or nothing), got ()', () => F.stack(undefined as never)],
  ['sum: expected (tensor, number or number[] or nothing, boolean or nothing', () => x.sum(0, { keepdim: true } as never)],
  ['maxPool2d: expected the options stride, padding, ceilMode, dilation, got strides', () => F.maxPool2d(x, 3, { strides: 2 } as never)],
  [
    'conv1d: expected the options stride, padding, dilation, groups, got outputPadding',
    () => F.conv1d(x, x, null, { outputPadding: 1 } as never),
  ],
  ['crossEntropy: expected the options reduction, weight, ignoreIndex', () => F.crossEntropy(x, x, { label_smoothing: 1 } as never)],
  ['dropout: expected the options training, generator, got train', () => F.dropout(x, 0.5, { train: false } as never)],
  ['div: expected the options roundingMode, got rounding_mode', () => x.div(2, { rounding_mode: 'floor' } as never)],
  ['nanToNum_: expected the options nan, posinf, neginf, got inf', () => (operations.nanToNum_ as Call)(x, { inf: 1 })],
  ['zeros: expected the options dtype, device, requiresGrad, got generator', () => zeros([2], { generator: 1 } as never)],
  [
    "zeros: expected the options dtype, device, requiresGrad, got devise. Write { dtype: 'float64', device: 'cpu', requiresGrad: true }",
    () => zeros([2], { devise: 'wasm' } as never),
  ],
  ['logspace: expected the options dtype, device, requiresGrad, base, got bas', () => logspace(0, 1, 2, { bas: 2 } as never)],
  ['fromTypedArray: expected the options requiresGrad', () => fromTypedArray(new Float32Array(1), [1], { dtype: 'float32' } as never)],
  ['rand: expected a Generator as generator, got 1', () => rand([2], { generator: 1 as never })],
  ['bernoulli: expected a Generator as generator, got an object', () => bernoulli(x.sigmoid(), { generator: {} as never })],
  ['bernoulli: expected the options generator, got seed', () => bernoulli(x.sigmoid(), { seed: 1 } as never)],
  ['multinomial: expected the options replacement, generator, got replace', () => multinomial(x.abs(), 1, { replace: true } as never)],
  ['normal: expected the options dtype, device, requiresGrad, generator, got gen', () => normal(0, 1, [2], { gen: 1 } as never)],
  ['randperm: expected an object with options (dtype, device, requiresGrad, generator), got null', () => randperm(3, null as never)],
  ['relu: expected (tensor), got (a Promise). Await the promise first', () => F.relu(Promise.resolve(x) as never)],
  ['exp_: expected (tensor), got (2)', () => (operations.exp_ as Call)(2)],
  ['detach: expected (tensor), got (null)', () => F.detach(null as never)],
  ['einsum: expected tensors as operands, got number', () => F.einsum('ij', 1 as never)],
  ['tensordot: expected a number of dimensions, or a list of them for each side', () => F.tensordot(x, x, [1, 2] as never)],
  ['backward: expected a tensor as root 0, got undefined', () => F.backward(undefined as never)],
  ['backward: expected a tensor as the gradient of root 0, got 1', () => F.backward(leaf().mul(2), 1 as never)],
  [
    'an object. Options come after the gradient, as in loss.backward(null, { retainGraph: true })',
    () =>
      leaf()
        .sum()
        .backward({ retain_graph: true } as never),
  ],
  [
    'backward: expected the options retainGraph, createGraph, inputs, got retain_graph',
    () =>
      leaf()
        .sum()
        .backward(null, { retain_graph: true } as never),
  ],
  ['grad: expected an array of tensors as the inputs, got tensor [2] of float32', () => F.grad(leaf().sum(), leaf() as never)],
  ['noGrad: expected a function as the code that it is for, got tensor', () => F.noGrad(x as never)],
  ['withAnomalyDetection: expected a function', () => F.withAnomalyDetection(undefined as never)],
  ['checkpoint: expected a function as the part to compute again, got tensor', () => F.checkpoint(x as never)],
  ['checkpointSequential: expected an array of functions, got undefined', () => F.checkpointSequential(undefined as never, 1, x)],
  ['registerHook: expected a function as the hook, got undefined', () => leaf().registerHook(undefined as never)],
  ['jacobian: expected an array of tensors as the inputs, got undefined', () => F.jacobian((y) => y, undefined as never)],
  ['vjp: expected an array of tensors as v, got 3', () => F.vjp((y: Tensor) => y, x, 3 as never)],
  ['jacobian: expected an array of tensors as the result of the function, got 3', () => F.jacobian((() => 3) as never, x)],
  ['gradcheck: expected a function', () => F.gradcheck(undefined as never, [])],
  ['defineFunction: expected a function as backward, got undefined', () => F.defineFunction({ name: 'f', forward: () => x } as never)],
  ['grad: expected a tensor or null, got number', () => Object.assign(leaf(), { grad: 3 })],
  ['zerosLike: expected a tensor as the model, got undefined', () => zerosLike(undefined as never)],
  ['full: expected a number or a boolean to fill it with, got undefined', () => full([2], undefined as never)],
  ['withDevice: expected a function', () => withDevice('cpu' as never, undefined as never)],
  ['memoryScope: expected a function', () => memoryScope(x as never)],
  ['coalesce: expected a sparse tensor, got tensor [2, 3]', () => coalesce(x as never)],
  ['bernoulli: expected a tensor as probabilities, got 0.5', () => bernoulli(0.5 as never)],
])('%s', (message, call) => {
  const error = outcome(call)
  if (!isPostgradError(error, 'INVALID_ARGUMENT')) throw new Error(`expected INVALID_ARGUMENT, got ${String(error)}`)
  expect(error.message).toContain(message)
})

test('a boolean as an operand is refused with the way to write it, which promotes as a boolean does in PyTorch', () => {
  const mask = tensor([true, false])
  for (const [call, value] of [
    [() => mask.add(true as never), true],
    [() => F.where(mask, false as never, true as never), false],
    [() => mask.clone().mul_(true as never), true],
  ] as const) {
    expect(outcome(call)).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining(`tensor(${value})`) })
  }
  // PyTorch 1.13: (x + True).dtype, torch.where(mask, x, True).dtype, x.add_(True).dtype
  for (const x of [mask, tensor(Int32Array.of(1, 2)), ones([2])]) {
    const dtypes = [x.add(tensor(true)), F.where(mask, x, tensor(true)), x.clone().add_(tensor(true))].map(({ dtype }) => dtype)
    expect(dtypes).toEqual([x.dtype, x.dtype, x.dtype])
  }
  expect(F.where(mask, tensor(true), tensor(false)).dtype).toBe('bool')
})

test('the check keeps names, and lets through what may be left out', () => {
  expect(F.matmul.name).toBe('matmul')
  expect(operations.add_.name).toBe('add_')
  expect(F.clamp(tensor([1, 5]), null, 3).toArray()).toEqual([1, 3])
  expect(F.linear(x, x, null).toArray()).toEqual([
    [3, 3],
    [3, 3],
  ])
})

test('a hook that gives no tensor is refused where it ran', () => {
  const y = leaf()
  y.registerHook((() => 3) as never)
  expect(outcome(() => y.sum().backward())).toMatchObject({ code: 'INVALID_GRADIENT', op: 'hook of AccumulateGrad' })
})

test('what tensors have as methods is there as functions: index, indexPut, repeat', () => {
  const y = tensor([1, 2]).requiresGrad_()
  F.repeat(F.index(F.indexPut(y, [0], 5), ['::2']), [3])
    .sum()
    .backward()
  expect(y.grad!.toArray()).toEqual([0, 0])
  expect(F.index(tensor([1, 2]), [1]).itemSync()).toBe(2)
})

/** As a program without types may write it: [1, , 3]. */
function holed<T>(...items: T[]): T[] {
  const list = [...items]
  delete list[1]
  return list
}

test('holes in arrays are refused', () => {
  const x = zeros([2, 2])
  const w = ones([1], { requiresGrad: true })
  const calls: (() => unknown)[] = [
    () => tensor(holed(1, 2, 3)),
    () => tensor(holed([1, 2], [1, 2])),
    () => tensor([[1, 2], holed(1, 2)]),
    () => zeros(holed(2, 2)),
    () => x.permute(holed(0, 1)),
    () => x.sum(holed(1, 0)),
    () => x.flip(holed(1, 0)),
    () => x.reshape(holed(2, 2)),
    () => x.expand(holed(2, 2)),
    () => x.index(...holed<number>(0, 0)),
    () => F.cat(holed(x, x, x)),
    () => F.stack(holed(x, x)),
    () => F.pad(x, holed(1, 1)),
    () => F.avgPool2d(zeros([1, 1, 4, 4]), holed(2, 2) as never),
    () => F.tensordot(x, x, holed([1], [0]) as never),
    () => F.grad([w.sum()], holed(w, w)),
    () => F.einsum('i,i', ...holed(zeros([1]), zeros([1]))),
  ]
  for (const call of calls) expect(call).toThrow(expect.objectContaining({ name: 'PostgradError' }))
})
