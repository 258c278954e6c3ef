/**
 * Every row of derivatives against finite differences in float64, first and second derivative.
 *
 * To add an operation, add one line to CASES: a test fails without. A case is the shapes of its inputs and a function of them, as in
 * `matmul: [c('2,3; 3', F.matmul)]` (two inputs, [2, 3] and [3]; 'scalar' is []), with a domain if the function has kinks or ends. Helpers:
 * `everywhere` (one tensor), `broadcasting` (two). A row that is differentiable only once is `limited('why', cases)`, one that has no derivative to
 * check `limited('why')`.
 */
import { describe, expect, test } from '@jest/globals'
import { arange, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { entries } from '@postgrad/tensor/internal'
import * as F from '../index.js'
import { operations } from '../internal.js'
import { type Case, c, inputs, ints } from './cases.fixture.js'

/** Why no derivative, or no second one, is checked; null where both are. */
interface Entry {
  readonly cases: readonly Case[]
  readonly reason: string | null
}
const limited = (reason: string, cases: readonly Case[] = []): Entry => ({ cases, reason })
/** The one-tensor function on a matrix, a scalar, a strided view. */
const everywhere = (fn: (x: Tensor) => Tensor, domain?: Case['domain']): Case[] => [
  c([[2, 3]], fn, domain),
  c([[]], fn, domain),
  c([[3, 2]], (x) => fn(x.transpose(0, 1)), domain),
  c([[4, 3]], (x) => fn(x.narrow(0, 1, 2)), domain),
]
const positive = (x: number) => Math.abs(x) + 0.3
const within = (x: number) => x * 0.4
const awayFromZero = (x: number) => x + Math.sign(x) * 0.2

/** Equal shapes, broadcasting in both directions, a scalar, numbers on either side. */
const broadcasting = (fn: (a: Tensor | number, b: Tensor | number) => Tensor, domain?: Case['domain']): Case[] => [
  c(
    [
      [2, 3],
      [2, 3],
    ],
    fn,
    domain,
  ),
  c([[2, 3], [3]], fn, domain),
  c(
    [
      [2, 1],
      [1, 3],
    ],
    fn,
    domain,
  ),
  c([[3], [2, 1, 3]], fn, domain),
  c([[], [2, 2]], fn, domain),
  c([[], []], fn, domain),
  c([[2, 2]], (a) => fn(a, 1.7), domain),
  c([[2, 2]], (b) => fn(1.7, b), domain),
  c([[2, 2]], (a) => fn(a, a), domain),
]

const bools = (values: boolean[], shape: readonly number[]) => tensor(values).reshape(shape)

/** In-place operations record the first three (`../record/`); the sum is the engine's (`../engine/`), and the quotient is flat as `floorDivide`. */
const ELSEWHERE = ['fill', 'zero', 'copy', 'orderedSum', 'truncDivide']

const CASES: Readonly<Record<string, readonly Case[] | Entry>> = {
  neg: everywhere(F.neg),
  exp: everywhere(F.exp),
  log: everywhere(F.log, positive),
  sqrt: everywhere(F.sqrt, positive),
  sin: everywhere(F.sin),
  cos: everywhere(F.cos),
  tanh: everywhere(F.tanh),
  sigmoid: everywhere(F.sigmoid),
  relu: everywhere(F.relu, awayFromZero),
  abs: everywhere(F.abs, awayFromZero),
  sign: limited('piecewise constant: the gradient is 0 without a history, so there is no second one', everywhere(F.sign, awayFromZero)),
  clone: everywhere(F.clone),
  contiguous: everywhere(F.contiguous),
  to: everywhere((x) => F.to(F.to(x, 'float64'), 'float64')),
  pow: [
    ...[0, 1, 2, 3, -1, 0.5, -1.5].flatMap((e) => everywhere((x) => F.pow(x, e), positive)),
    ...[0, 1, 2, 3].map((e) => c([[5]], (x) => F.pow(x, e))),
    ...broadcasting(F.pow, positive),
  ],
  clamp: [
    ...everywhere((x) => F.clamp(x, -0.5, 0.7)),
    c([[5]], (x) => F.clamp(x, -0.5)),
    c([[5]], (x) => F.clamp(x, null, 0.7)),
    c([[5]], (x) => F.clamp(x, undefined, 0.7)),
  ],
  floor: everywhere(F.floor),
  ceil: everywhere(F.ceil),
  round: everywhere(F.round),
  trunc: everywhere(F.trunc),
  reciprocal: everywhere(F.reciprocal, positive),
  rsqrt: everywhere(F.rsqrt, positive),
  square: everywhere(F.square),
  log1p: everywhere(F.log1p, positive),
  expm1: everywhere(F.expm1),
  log2: everywhere(F.log2, positive),
  log10: everywhere(F.log10, positive),
  exp2: everywhere(F.exp2),
  tan: everywhere(F.tan, within),
  sinh: everywhere(F.sinh),
  cosh: everywhere(F.cosh),
  asin: everywhere(F.asin, within),
  acos: everywhere(F.acos, within),
  atan: everywhere(F.atan),
  erf: everywhere(F.erf),
  erfinv: everywhere(F.erfinv, within),
  silu: everywhere(F.silu),
  leakyRelu: [...everywhere(F.leakyRelu, awayFromZero), c('5', (x) => F.leakyRelu(x, 0.3), awayFromZero)],
  gelu: [...everywhere(F.gelu), ...everywhere((x) => F.gelu(x, { approximate: 'tanh' }))],
  softplus: [...everywhere(F.softplus), c('2,3', (x) => F.softplus(x, { beta: 2, threshold: 1 }), awayFromZero)],
  elu: [...everywhere(F.elu, awayFromZero), c('5', (x) => F.elu(x, 0.3), awayFromZero)],
  add: broadcasting(F.add),
  sub: broadcasting(F.sub),
  mul: broadcasting(F.mul),
  div: broadcasting(F.div, positive),
  floorDivide: broadcasting(F.floorDivide, positive),
  remainder: broadcasting(F.remainder, positive).filter(({ shapes }) => shapes.length === 2),
  fmod: broadcasting(F.fmod, positive).filter(({ shapes }) => shapes.length === 2),
  atan2: ['2,3; 2,3', '2,3; 3', 'scalar; 2'].map((shapes) => c(shapes, F.atan2, awayFromZero)),
  logaddexp: [...['2,3; 2,3', '2,3; 3', 'scalar; 2'].map((shapes) => c(shapes, F.logaddexp)), c('2,2', (a) => F.logaddexp(a, a))],
  maximum: broadcasting(F.maximum),
  minimum: broadcasting(F.minimum),
  matmul: [
    c([[3], [3]], F.matmul),
    c([[2, 3], [3]], F.matmul),
    c([[3], [3, 2]], F.matmul),
    c(
      [
        [2, 3],
        [3, 2],
      ],
      F.matmul,
    ),
    c(
      [
        [2, 2, 3],
        [3, 2],
      ],
      F.matmul,
    ),
    c(
      [
        [2, 3],
        [2, 3, 2],
      ],
      F.matmul,
    ),
    c(
      [
        [2, 1, 2, 3],
        [2, 3, 2],
      ],
      F.matmul,
    ),
    c([[2, 2, 3], [3]], F.matmul),
    c([[3], [2, 3, 2]], F.matmul),
    c(
      [
        [3, 2],
        [2, 3],
      ],
      (a, b) => F.matmul(a.T, b.T),
    ),
    c([[2, 2]], (a) => F.matmul(a, a)),
  ],
  bmm: [
    c(
      [
        [2, 2, 3],
        [2, 3, 2],
      ],
      F.bmm,
    ),
    c(
      [
        [2, 3, 2],
        [2, 3, 2],
      ],
      (a, b) => F.bmm(a.transpose(1, 2), b),
    ),
  ],
  where: [
    c(
      [
        [2, 2],
        [2, 2],
      ],
      (a, b) => F.where(bools([true, false, false, true], [2, 2]), a, b),
    ),
    c([[2], []], (a, b) => F.where(bools([true, false, false, true], [2, 2]), a, b)),
    c([[2, 1]], (a) => F.where(bools([true, false], [2]), a, 0.5)),
    c([[2]], (b) => F.where(bools([true, false], [2, 1]), 0.5, b)),
  ],
  sum: [
    c([[2, 3]], (x) => F.sum(x)),
    c([[]], (x) => F.sum(x)),
    c([[2, 3]], (x) => F.sum(x, 0)),
    c([[2, 3]], (x) => F.sum(x, -1, true)),
    c([[2, 3, 2]], (x) => F.sum(x, [0, 2])),
    c([[2, 3, 2]], (x) => F.sum(x, [0, -1], true)),
    c([[2, 3]], (x) => F.sum(x.T, 0)),
    c([[2, 3]], (x) => F.sum(x, 0, false, { dtype: 'float64' })),
  ],
  mean: [
    c([[2, 3]], (x) => F.mean(x)),
    c([[]], (x) => F.mean(x)),
    c([[2, 3]], (x) => F.mean(x, 1)),
    c([[2, 3, 2]], (x) => F.mean(x, [0, 2], true)),
    c([[2, 3]], (x) => F.mean(x.T, -1, true)),
  ],
  amax: [
    c([[2, 3]], (x) => F.amax(x)),
    c([[2, 3]], (x) => F.amax(x, 1)),
    c([[2, 3]], (x) => F.amax(x, 0, true)),
    c([[2, 3, 2]], (x) => F.amax(x, [0, 2])),
  ],
  prod: [
    ...['2,3', 'scalar', '1', '2,3,2'].map((shape) => c(shape, (x) => F.prod(x))),
    ...[0, 1, -1].map((dim) => c('2,3,2', (x) => F.prod(x, dim, dim === 0))),
    c('1,2,3', (x) => F.prod(x, 0)),
    c('2,3', (x) => F.prod(x.mul(tensor([1, 0, 1], { dtype: 'float64' })), 1)),
    c('3,2', (x) => F.prod(x.T, 1)),
  ],
  amin: [
    c('2,3', (x) => F.amin(x)),
    c('2,3', (x) => F.amin(x, 1)),
    c('2,3', (x) => F.amin(x, 0, true)),
    c('2,3,2', (x) => F.amin(x, [0, 2])),
  ],
  var: [
    c('2,3', (x) => F.var(x)),
    c('2,3', (x) => F.var(x, 1)),
    c('2,3,2', (x) => F.var(x, [0, 2], true)),
    c('2,3', (x) => F.var(x.T, 0, false, { correction: 0 })),
  ],
  std: [c('2,3', (x) => F.std(x)), c('2,3', (x) => F.std(x, 1, true)), c('2,3,2', (x) => F.std(x, [0, 2], false, { correction: 0 }))],
  logSumExp: [c('2,3', (x) => F.logSumExp(x)), c('2,3', (x) => F.logSumExp(x, 1)), c('2,3,2', (x) => F.logSumExp(x, [0, 2], true))],
  norm: [
    ...[2, 1, 3, 1.5, 0.5, Infinity, -Infinity, 0].map((p) => c('2,3', (x) => F.norm(x, p, 1), awayFromZero)),
    c('2,3', (x) => F.norm(x)),
    c('2,3,2', (x) => F.norm(x, 2, [0, 2], true)),
    c('scalar', (x) => F.norm(x)),
  ],
  cumsum: [c('5', (x) => F.cumsum(x, 0)), c('2,3', (x) => F.cumsum(x.T, 1)), c('scalar', (x) => F.cumsum(x, 0))],
  reverseCumsum: [c('2,3', (x) => operations.reverseCumsum(x, -1))],
  cumprod: [
    c('5', (x) => F.cumprod(x, 0)),
    c('2,3', (x) => F.cumprod(x.T, 0)),
    c('scalar', (x) => F.cumprod(x, 0)),
    c('4', (x) => F.cumprod(x.mul(tensor([1, 0, 1, 0], { dtype: 'float64' })), 0)),
  ],
  flip: [
    c('5', (x) => F.flip(x, 0)),
    c('2,3', (x) => F.flip(x, [0, -1])),
    c('2,3', (x) => F.flip(x.T, [])),
    c('scalar', (x) => F.flip(x, [])),
  ],
  tril: [c('3,2', (x) => F.tril(x)), c('2,3,3', (x) => F.tril(x.transpose(0, 1), -1))],
  triu: [c('2,3', (x) => F.triu(x)), c('2,3,3', (x) => F.triu(x.transpose(0, 1), 1))],
  view: [c([[2, 3]], (x) => F.view(x, [3, 2])), c([[]], (x) => F.view(x, [1, 1])), c([[4]], (x) => F.view(x, [2, -1]))],
  reshape: [c([[2, 3]], (x) => F.reshape(x.T, [6])), c([[2, 3]], (x) => F.reshape(x, [-1]))],
  transpose: [c([[2, 3]], (x) => F.transpose(x, 0, 1)), c([[2, 3, 2]], (x) => F.transpose(x, -1, 0))],
  permute: [c([[2, 3, 2]], (x) => F.permute(x, [2, 0, 1])), c([[2, 3, 1]], (x) => F.permute(x, [-1, 0, 1])), c([[2, 3]], (x) => x.T)],
  expand: [
    c([[1, 3]], (x) => F.expand(x, [2, 3])),
    c([[3]], (x) => F.expand(x, [2, -1])),
    c([[]], (x) => F.expand(x, [2, 2])),
    c([[2, 1]], (x) => F.expand(x, [2, 2, 3])),
  ],
  squeeze: [c([[1, 3, 1]], (x) => F.squeeze(x)), c([[1, 3, 1]], (x) => F.squeeze(x, 0)), c([[2, 3]], (x) => F.squeeze(x, 0))],
  unsqueeze: [c([[2, 3]], (x) => F.unsqueeze(x, 1)), c([[]], (x) => F.unsqueeze(x, 0)), c([[3]], (x) => F.unsqueeze(x, -1))],
  narrow: [
    c([[4]], (x) => F.narrow(x, 0, 1, 2)),
    c([[2, 4]], (x) => F.narrow(x, -1, 0, 3)),
    c([[3, 2]], (x) => F.narrow(x, 0, 2, 1)),
    c([[3, 2]], (x) => F.narrow(x, 0, 0, 3)),
  ],
  everyNth: [
    c('5', (x) => operations.everyNth(x, 0, 2)),
    c('2,4', (x) => operations.everyNth(x, -1, 3)),
    c('3,2', (x) => operations.everyNth(x.T, 1, 2)),
  ],
  diagonal: [
    c('3,3', (x) => F.diagonal(x)),
    c('2,4', (x) => F.diagonal(x, 1)),
    c('4,2', (x) => F.diagonal(x, -2)),
    c('2,3,2', (x) => F.diagonal(x, 0, -1, 1)),
    c('2,2', (x) => F.diagonal(x, 5).sum().add(x.sum())),
  ],
  select: [c([[3]], (x) => F.select(x, 0, 1)), c([[2, 3]], (x) => F.select(x, 1, -1)), c([[2, 3, 2]], (x) => F.select(x, -2, 0))],
  cat: [
    c(
      [
        [2, 3],
        [1, 3],
      ],
      (a, b) => F.cat([a, b]),
    ),
    c(
      [
        [2, 1],
        [2, 3],
        [2, 2],
      ],
      (a, b, d) => F.cat([a, b, d], -1),
    ),
    c([[2, 2]], (a) => F.cat([a, a], 1)),
  ],
  stack: [
    c([[2], [2]], (a, b) => F.stack([a, b])),
    c(
      [
        [2, 3],
        [2, 3],
      ],
      (a, b) => F.stack([a, b], 1),
    ),
    c([[2], [2]], (a, b) => F.stack([a, b], -1)),
    c([[], []], (a, b) => F.stack([a, b])),
  ],
  embedding: [
    c([[4, 2]], (w) => F.embedding(w, ints([1, 3, 1]))),
    c([[3, 2]], (w) => F.embedding(w, ints([0, 2, 2, 0], [2, 2]))),
    c([[3, 2]], (w) => F.embedding(w, ints([1], []))),
  ],
  embeddingBackward: [c('3,2', (g) => operations.embeddingBackward(g, ints([1, 3, 1]), 4))],
  softmax: [c([[2, 3]], (x) => F.softmax(x, 1)), c([[2, 3]], (x) => F.softmax(x, 0)), c([[2, 2, 2]], (x) => F.softmax(x, -2))],
  logSoftmax: [c([[2, 3]], (x) => F.logSoftmax(x, 1)), c([[2, 3]], (x) => F.logSoftmax(x, 0)), c([[2, 2, 2]], (x) => F.logSoftmax(x, -2))],
  nllLoss: (['mean', 'sum', 'none', undefined] as const).map((r) => c([[3, 4]], (x) => F.nllLoss(x, ints([3, 0, 3]), r))),
  crossEntropy: (['mean', 'sum', 'none', undefined] as const).map((r) => c([[3, 4]], (x) => F.crossEntropy(x, ints([3, 0, 3]), r))),
}

test('each operation with a row of one or two tensors, or of a list, has cases', () => {
  const nodes = entries.flatMap(({ how }) => (how.kind === 'primitive' && how.row !== null && !('grads' in how.row) ? [how.node] : []))
  expect(nodes.filter((node) => !Object.hasOwn(CASES, node) && !ELSEWHERE.includes(node))).toEqual([])
  expect(Object.keys(CASES).filter((name) => !nodes.includes(name))).toEqual([])
})

const ENTRIES: readonly (readonly [string, Entry])[] = Object.entries(CASES).map(([name, cases]) => [
  name,
  'reason' in cases ? cases : { cases, reason: null },
])

test.each(ENTRIES)('%s has cases, or a reason to have none', (_, { cases, reason }) => {
  expect(cases.length > 0 || (reason ?? '').length > 20).toBe(true)
})

describe.each(ENTRIES.filter(([, { cases }]) => cases.length > 0))('%s', (_, { cases, reason }) => {
  test.each(cases.map((each, i) => [i, each.shapes.map((s) => `[${s}]`).join(' '), each] as const))('case %d, %s', (_i, _shapes, each) => {
    expect(F.gradcheck(each.fn, inputs(each))).toBe(true)
    if (reason === null) expect(F.gradgradcheck(each.fn, inputs(each))).toBe(true)
  })
})

test.each(ENTRIES)('%s: under createGraph the gradient is the same, also where it is composed of other operations', (_, { cases }) => {
  for (const each of cases) {
    const xs = inputs(each)
    const loss = () => {
      const out = each.fn(...xs)
      return out
        .mul(
          arange(1, out.numel + 1, 1, { dtype: 'float64' })
            .sin()
            .reshape(out.shape),
        )
        .sum()
    }
    const plain = F.grad(loss(), xs, { allowUnused: true })
    const graph = F.grad(loss(), xs, { allowUnused: true, createGraph: true })
    for (const [i, g] of plain.entries()) {
      const values = graph[i]?.dataSync() ?? []
      for (const [j, x] of (g?.dataSync() ?? []).entries()) expect(values[j]).toBeCloseTo(x, 10)
    }
  }
})

test.each(ENTRIES)('%s: a gradient that was kept is nobody else’s', (_, { cases }) => {
  for (const each of cases) {
    const xs = inputs(each)
    const loss = each
      .fn(...xs)
      .mul(1.5)
      .sum()
    const values = () => F.grad(loss, xs, { retainGraph: true, allowUnused: true }).map((g) => g?.toArray())
    const before = values()
    F.backward(loss, undefined, { retainGraph: true })
    // If it were shared with something saved or still on its way, writing to it would be noticed, or show.
    for (const x of xs) x.grad?.fill_(7)
    expect(values()).toEqual(before)
  }
})

test('the check can fail: a wrong derivative is found', () => {
  const wrong = F.defineFunction({
    name: 'Wrong',
    forward: (_, x: Tensor) => x.mul(2),
    backward: (_, g) => g.mul(2.01),
  })
  expect(() => F.gradcheck(wrong, [tensor(Float64Array.of(1, 2)).requiresGrad_()])).toThrow(
    expect.objectContaining({ code: 'GRADCHECK_FAILED' }) as unknown as Error,
  )
})

describe('where the formula is a choice, PyTorch’s', () => {
  const at = (value: number, fn: (x: Tensor) => Tensor) => {
    const x = tensor(value, { requiresGrad: true })
    return F.grad(fn(x), [x])[0]!.itemSync()
  }
  test.each([
    ['relu at 0', 0, F.relu, 0],
    ['abs at 0', 0, F.abs, 0],
    ['clamp at its bound', 1, (x: Tensor) => x.clamp(0, 1), 1],
    ['maximum of equals', 2, (x: Tensor) => x.maximum(2), 0.5],
    ['minimum of equals', 2, (x: Tensor) => x.minimum(2), 0.5],
    ['pow 0 at 0', 0, (x: Tensor) => x.pow(0), 0],
    ['pow 1 at 0', 0, (x: Tensor) => x.pow(1), 1],
  ] as const)('%s', (_, value, fn, expected) => {
    expect(at(value, fn)).toBe(expected)
  })

  test('amax shares the gradient among equals', () => {
    const x = tensor([1, 3, 3, 2], { requiresGrad: true })
    F.backward(x.amax())
    expect(x.grad!.toArray()).toEqual([0, 0.5, 0.5, 0])
  })
})

test('a NaN does not swallow the gradient: relu, maximum and minimum let it through, as in PyTorch', () => {
  const x = tensor([Number.NaN, 1, -1, 0], { requiresGrad: true })
  expect([...F.grad(F.relu(x), [x], { gradOutputs: [ones([4])] })[0]!.dataSync()]).toEqual([1, 1, 0, 0])
  const [a, b] = [tensor([Number.NaN, 1], { requiresGrad: true }), tensor([0, Number.NaN], { requiresGrad: true })]
  for (const op of [F.maximum, F.minimum]) {
    for (const g of F.grad(op(a, b), [a, b], { gradOutputs: [ones([2])] })) expect([...g.dataSync()]).toEqual([1, 1])
  }
})

test('the gradient of a matrix that served all batches of a product over nothing is empty', () => {
  const w = zeros([0, 3], { requiresGrad: true })
  F.matmul(zeros([4, 5, 0]), w)
    .sum()
    .backward()
  expect(w.grad!.shape).toEqual([0, 3])
})

test('operations carry their names', () => {
  for (const { name, how, call, fn, raw } of entries) {
    const shown = how.kind === 'primitive' ? how.node : name
    expect([raw.name, call.name, fn.name]).toEqual([shown, shown, name])
  }
})

test('mixed dtypes: each gradient has the dtype of its tensor', () => {
  const a = tensor(Float32Array.of(1, 2), { requiresGrad: true })
  const b = tensor(Float64Array.of(3, 4), { requiresGrad: true })
  const i = tensor(Int32Array.of(5, 6))
  F.backward(a.mul(b).mul(i).sum())
  expect([a.grad!.dtype, b.grad!.dtype]).toEqual(['float32', 'float64'])
  expect([a.grad!.toArray(), b.grad!.toArray()]).toEqual([
    [15, 24],
    [5, 12],
  ])
})

test('what is not differentiable leaves no history', () => {
  const x = tensor([1, 2], { requiresGrad: true })
  expect([x.gt(1), x.argmax(), x.to('int32')].map((t) => t.requiresGrad)).toEqual([false, false, false])
})
