/** Fused kernels have the bits of the operations that they are made of: modules and optimizers on the wasm device with them and without. */
import { describe, expect, test } from '@jest/globals'
import { grad, scaledDotProductAttention } from '@postgrad/autograd'
import { device, manualSeed, ones, rand, randn, type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { threadHeap } from '@postgrad/tensor/internal'
import { unfusedDevice } from '@postgrad/tensor/suite'
import {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  GRU,
  LSTM,
  MultiheadAttention,
  NAdam,
  type Optimizer,
  RAdam,
  RMSprop,
  SGD,
} from './index.js'

const unfused = unfusedDevice()

test('the two devices differ in fused kernels alone', () => {
  for (const op of ['adamStep', 'lstmCell', 'gruCellBackward', 'attention'] as const) {
    expect(device('wasm').kernelFor(op, 'float32').supported).toBe(true)
    expect(unfused.kernelFor(op, 'float32').supported).toBe(false)
  }
  expect(unfused.kernelFor('matmul', 'float32')).toMatchObject({
    supported: true,
    variant: device('wasm').kernelFor('matmul', 'float32').variant,
  })
})

const bytes = (tensors: readonly Tensor[]) => Buffer.concat(tensors.map((x) => Buffer.from(Float64Array.from(x.dataSync()).buffer)))

/** The results with fused kernels, and without. */
function both(compute: () => readonly Tensor[]): [readonly Tensor[], readonly Tensor[]] {
  const run = (target: Parameters<typeof withDevice>[0]) =>
    withDevice(target, () => {
      manualSeed(5)
      return compute()
    })
  return [run('wasm'), run(unfused)]
}

/** The same results, or from the one at `exact` on results that differ by their last bits at most. */
function expectSame(compute: () => readonly Tensor[], exact = Number.POSITIVE_INFINITY): void {
  const [fused, composed] = both(compute)
  expect(bytes(fused.slice(0, exact)).equals(bytes(composed.slice(0, exact)))).toBe(true)
  for (const [i, x] of fused.entries()) expect(x.allclose(composed[i]!, { rtol: 1e-5, atol: 1e-5 })).toBe(true)
}

const OPTIMIZERS: Readonly<Record<string, (params: Tensor[]) => Optimizer>> = {
  SGD: (p) => new SGD(p, { lr: 0.1, weightDecay: 0.01, maximize: true }),
  'SGD with momentum': (p) => new SGD(p, { lr: 0.1, momentum: 0.9, dampening: 0.2 }),
  'SGD with Nesterov': (p) => new SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
  Adam: (p) => new Adam(p, { weightDecay: 0.01 }),
  'Adam with amsgrad': (p) => new Adam(p, { amsgrad: true, maximize: true }),
  AdamW: (p) => new AdamW(p, { weightDecay: 0.1 }),
  NAdam: (p) => new NAdam(p, { weightDecay: 0.01 }),
  RAdam: (p) => new RAdam(p, { weightDecay: 0.01 }),
  Adamax: (p) => new Adamax(p, { weightDecay: 0.01, maximize: true }),
  Adadelta: (p) => new Adadelta(p, { weightDecay: 0.01 }),
  RMSprop: (p) => new RMSprop(p, { weightDecay: 0.01 }),
  'RMSprop, centered, with momentum': (p) => new RMSprop(p, { centered: true, momentum: 0.9, maximize: true }),
  Adagrad: (p) => new Adagrad(p, { lrDecay: 0.1, weightDecay: 0.01, initialAccumulatorValue: 0.1 }),
}

/** As parameters lie: few elements as an array, many in the heap, a strided one. */
const PARAMETERS: Readonly<Record<string, (values: Tensor) => Tensor>> = {
  '7 elements': (x) => x.narrow(0, 0, 7).clone(),
  '5,003 elements': (x) => x.clone(),
  'a transpose': (x) => x.narrow(0, 0, 5000).reshape([50, 100]).T,
}

describe.each(Object.entries(OPTIMIZERS))('%s', (_, make) => {
  test.each(Object.entries(PARAMETERS))('a parameter of %s', (_, form) => {
    for (const dtype of ['float32', 'float64'] as const) {
      expectSame(() => {
        const p = form(randn([5003], { dtype }))
          .detach()
          .requiresGrad_()
        const optimizer = make([p])
        const before = p.storage.version
        for (let step = 0; step < 8; step++) optimizer.step(new Map([[p, form(randn([5003], { dtype }))]]))
        // A graph that has saved the parameter must notice.
        expect(p.storage.version).toBeGreaterThan(before + 3)
        return [p, ...Object.values(optimizer.stateDict().state[0] ?? {}).filter((x) => typeof x !== 'number')]
      })
    }
  })
})

test('a gradient that is the parameter itself, and one that is one number repeated', () => {
  expectSame(() => {
    const [p, q] = [randn([30]).requiresGrad_(), randn([30]).requiresGrad_()]
    const optimizer = new Adam([p, q])
    optimizer.step(
      new Map([
        [p, p],
        [q, tensor(2).expand([30])],
      ]),
    )
    return [p, q]
  })
})

describe.each([
  ['LSTM', LSTM],
  ['GRU', GRU],
] as const)('%s', (_, Layer) => {
  test.each([
    [1, 1, 1, 1],
    [3, 2, 5, 7],
    [6, 16, 8, 64],
    [2, 40, 3, 350],
  ])('%s steps, batch %s, widths %s and %s', (length, batch, width, hidden) => {
    for (const dtype of ['float32', 'float64'] as const) {
      expectSame(() => {
        const layer = new Layer(width, hidden, { bidirectional: true, numLayers: 2, batchFirst: true, dtype })
        const x = randn([batch, length, width], { dtype }).requiresGrad_()
        const [output, state] = layer.forward(x)
        const outputs = [output, ...[state].flat()] as Tensor[]
        const gradOutputs = outputs.map((y) => randn(y.shape, { dtype }))
        return [...outputs, ...(grad(outputs, [x, ...layer.parameters()], { gradOutputs }) as Tensor[])]
      })
    }
  })
})

interface Attended {
  readonly q: readonly number[]
  readonly k: readonly number[]
  readonly v: readonly number[]
  readonly mask?: () => Tensor
  readonly isCausal?: true
  /** Operands broadcast to each other. */
  readonly isSpread?: true
}

const ATTENDED: Readonly<Record<string, Attended>> = {
  matrices: { q: [5, 3], k: [7, 3], v: [7, 2] },
  'heads, masked': { q: [2, 3, 17, 8], k: [2, 3, 21, 8], v: [2, 3, 21, 4], mask: () => rand([2, 1, 1, 21]).gt(0.3) },
  'keys shared by all queries': { q: [4, 1, 3, 5], k: [3, 6, 5], v: [1, 6, 70], mask: () => randn([6]), isSpread: true },
  'five dimensions, a mask for each query': {
    q: [2, 1, 2, 9, 4],
    k: [2, 3, 1, 9, 4],
    v: [9, 4],
    mask: () => randn([9, 1]),
    isSpread: true,
  },
  'one key': { q: [3, 40, 1], k: [3, 1, 1], v: [3, 1, 1] },
  'causal in one block': { q: [2, 50, 16], k: [2, 60, 16], v: [2, 60, 16], isCausal: true },
}

test.each(Object.entries(ATTENDED))('attention: %s', (_, { q, k, v, mask, isCausal = false, isSpread = false }) => {
  expectSame(
    () => {
      const inputs = [q, k, v].map((shape) => randn(shape).requiresGrad_()) as [Tensor, Tensor, Tensor]
      const output = scaledDotProductAttention(...inputs, { attnMask: mask?.() ?? null, isCausal })
      return [output, ...(grad(output, inputs, { gradOutputs: [randn(output.shape)] }) as Tensor[])]
      // Gradients of what was spread are added up after other roundings.
    },
    isSpread ? 1 : undefined,
  )
})

test.each([false, true])('attention in several blocks (causal: %s): gradients of keys and values are sums over blocks', (isCausal) => {
  expectSame(() => {
    const inputs = [0, 1, 2].map(() => randn([400, 8]).requiresGrad_()) as [Tensor, Tensor, Tensor]
    const output = scaledDotProductAttention(...inputs, { isCausal })
    return [output, ...(grad(output, inputs, { gradOutputs: [randn(output.shape)] }) as Tensor[])]
  }, 2)
})

test('second derivatives of attention', () => {
  expectSame(() => {
    const inputs = [0, 1, 2].map(() => randn([4, 3]).requiresGrad_()) as [Tensor, Tensor, Tensor]
    const [first] = grad(
      scaledDotProductAttention(...inputs)
        .square()
        .sum(),
      [inputs[0]],
      { createGraph: true },
    ) as [Tensor]
    return grad(first.square().sum(), inputs) as Tensor[]
  }, 0)
})

test.each([
  ['no mask', () => ({})],
  [
    'padding',
    () => ({
      keyPaddingMask: tensor([
        [false, false, true, true, false],
        [false, true, false, false, false],
      ]),
    }),
  ],
  [
    'both of bool',
    () => ({ keyPaddingMask: tensor([false, true, false, false, true]).expand([2, 5]), attnMask: rand([5, 5]).gt(0.5).triu(1) }),
  ],
  ['numbers and padding', () => ({ keyPaddingMask: tensor([false, true, false, false, true]).expand([2, 5]), attnMask: randn([4, 5, 5]) })],
  ['numbers twice', () => ({ keyPaddingMask: randn([2, 5]), attnMask: randn([5, 5]) })],
] as const)('MultiheadAttention without weights computes what it computes with them: %s', (_, masks) => {
  manualSeed(7)
  const attention = new MultiheadAttention(8, 2, { batchFirst: true })
  const x = randn([2, 5, 8]).requiresGrad_()
  const options = masks()
  const results = [true, false].map((needWeights) => {
    const [output, weights] = attention.forward(x, x, x, { ...options, needWeights })
    expect(weights === null).toBe(!needWeights)
    return bytes([output, ...(grad(output.square().sum(), [x, ...attention.parameters()]) as Tensor[])])
  })
  expect(results[0]!.equals(results[1]!)).toBe(true)
})

/** The largest tensor and the largest scratch, in bytes, that `compute` asks the heap for. */
function largestOf(compute: () => void): number {
  const heap = threadHeap()
  const { allocate, scratch } = heap
  let largest = 0
  const noted =
    <T>(take: (bytes: number) => T) =>
    (bytes: number): T => {
      largest = Math.max(largest, bytes)
      return take.call(heap, bytes)
    }
  heap.allocate = noted(allocate)
  heap.scratch = noted(scratch)
  try {
    compute()
  } finally {
    heap.allocate = allocate
    heap.scratch = scratch
  }
  return largest
}

test('attention keeps no scores: of 2,000 positions one tensor has 16 MB', () => {
  const train = () => {
    const inputs = [0, 1, 2].map(() => randn([2000, 8]).requiresGrad_()) as [Tensor, Tensor, Tensor]
    scaledDotProductAttention(...inputs)
      .sum()
      .backward()
  }
  const scoreBytes = 2000 * 2000 * 4
  expect(withDevice(unfused, () => largestOf(train))).toBeGreaterThanOrEqual(scoreBytes)
  expect(withDevice('wasm', () => largestOf(train))).toBeLessThan(scoreBytes / 4)
})

test.each(['wasm', 'js'] as const)('a query that sees no key gives no gradient to the keys that others see: %s', (device) => {
  withDevice(device, () => {
    const [q, k, v] = [rand([3, 4]).requiresGrad_(), rand([5, 4]).requiresGrad_(), rand([5, 4])]
    const attnMask = ones([3, 5], { dtype: 'bool' })
    attnMask.select(0, 1).fill_(0)
    const seen = scaledDotProductAttention(q, k, v, { attnMask }).index(tensor([0, 2], { dtype: 'int32' }))
    const [forQuery, forKey] = grad(seen.sum(), [q, k])
    expect([...forQuery!.select(0, 1).dataSync()]).toEqual([0, 0, 0, 0])
    expect([...forKey!.dataSync()].every(Number.isFinite)).toBe(true)
  })
})
