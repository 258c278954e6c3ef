/** Functions that `compile` made, next to what they were made of: values, gradients, hooks and errors have the same bits. */
import { expect, test } from '@jest/globals'
import { compile, randn, type Tensor } from '@postgrad/tensor'
import { isPending, Storage, threadHeap, withChainsFrom, withHeapFrom, withHeapLimit } from '@postgrad/tensor/internal'
import { grad } from '../index.js'
import type { Program } from '../with-torch/builder.fixture.js'
import { randomProgram } from '../with-torch/program.fixture.js'
import { runUnseen } from '../with-torch/run.fixture.js'

/** Half of the programs compute in float32, whose chains are computed in registers. */
function programOf(seed: number): Program {
  const program = randomProgram(seed)
  return seed % 2 === 0 ? program : { ...program, leaves: program.leaves.map((leaf) => ({ ...leaf, dtype: 'float32' as const })) }
}

const PLACES: Readonly<Record<string, <T>(fn: () => T) => T>> = {
  'where they lie by themselves': (fn) => fn(),
  'in managed memory': (fn) => withHeapLimit(0, fn),
  'in the heap': (fn) => withHeapFrom(1, fn),
}

const GROUP = 100
test.each([
  ...[1, 101, 201, 301, 401].map((first) => ['where they lie by themselves', 1, first] as const),
  ...Object.keys(PLACES).map((place, i) => [place, 10, 501 + i * GROUP] as const),
  ['in managed memory', 1, 801],
  ['in the heap', 1, 901],
] as const)(
  'CHAIN-1 random graphs, tensors %s, steps from %d elements on, seeds from %d on: compiled, they have the same values, gradients, hooks and errors',
  (place, from, first) => {
    const wrong: string[] = []
    for (let seed = first; seed < first + GROUP; seed++) {
      const program = programOf(seed)
      const expected = runUnseen(program)
      const found = PLACES[place]!(() => withChainsFrom(from, () => compile(runUnseen)(program)))
      try {
        expect(found).toStrictEqual(expected)
      } catch (error) {
        wrong.push(`seed ${seed}: ${String(error)}`)
      }
    }
    expect(wrong).toEqual([])
  },
)

/** How many tensors of `n` elements are written. */
function written(n: number, fn: () => void): number {
  const { uninitialized } = Storage
  let results = 0
  Storage.uninitialized = (dtype, length, memory) => {
    if (length === n) results++
    return uninitialized.call(Storage, dtype, length, memory)
  }
  try {
    fn()
  } finally {
    Storage.uninitialized = uninitialized
  }
  return results
}

const gelu = (x: Tensor) => x.mul(x).mul(x).mul(0.044715).add(x).mul(0.7978845608).tanh().add(1).mul(x).mul(0.5)

test('CHAIN-6 a backward pass over a chain computes nothing but the gradients of the leaves; the forward pass keeps the polynomial', () => {
  const [x, scale] = [randn([50, 60]).requiresGrad_(), randn([50, 60]).requiresGrad_()]
  withChainsFrom(1, () => {
    const forward = compile(() => gelu(x).mul(scale))
    const made: Tensor[] = []
    // The result, and tanh's, which the graph saved.
    expect(written(3000, () => made.push(forward()))).toBe(2)
    const loss = made[0]!.sum()
    expect(written(3000, () => loss.backward())).toBe(2)
  })
  expect([x.grad, scale.grad].map((g) => isPending(g!))).toEqual([false, false])
  const [a, b] = [x.detach().requiresGrad_(), scale.detach().requiresGrad_()]
  gelu(a).mul(b).sum().backward()
  expect(x.grad!.dataSync()).toEqual(a.grad!.dataSync())
  expect(scale.grad!.dataSync()).toEqual(b.grad!.dataSync())
})

test('CHAIN-6 second derivatives, and a graph that is kept for several passes', () => {
  const x = randn([500])
  const [plain, chained] = [gelu, compile(gelu)].map((f) =>
    withChainsFrom(1, () => {
      const leaf = x.clone().requiresGrad_()
      const [g] = grad(f(leaf).sum(), [leaf], { createGraph: true })
      const second = [1, 2].map(() => grad(g!.mul(g!).sum(), [leaf], { retainGraph: true })[0]!.dataSync())
      return [g!.dataSync(), ...second]
    }),
  )
  expect(chained).toEqual(plain)
})

test('CHAIN-6 the temporaries of a formula that computes them are given back when it ends', () => {
  withHeapFrom(1, () => {
    const [s, b] = [0, 1].map(() => randn([70]).requiresGrad_())
    const x = randn([90, 70])
    const left = [(fn: () => Tensor) => fn(), (fn: () => Tensor) => withChainsFrom(1, () => compile(fn)())].map((call) => {
      const y = call(() => x.mul(s!).add(b!).mul(s!).add(b!))
      const loss = y.sum()
      const before = threadHeap().heldBytes
      withChainsFrom(1, () => loss.backward())
      return threadHeap().heldBytes - before
    })
    expect(left[1]).toBeLessThanOrEqual(left[0]! + 4 * 70 * 90)
  })
})

test('CHAIN-6 layers that need sums of their gradients: the forward pass writes every eighth product, the backward pass those half-way between', () => {
  const LAYERS = 12
  const weights = Array.from({ length: LAYERS }, () => randn([60]).requiresGrad_())
  const x = randn([50, 60])
  const run = () => weights.reduce((h, w) => h.mul(w), x)
  run().sum().backward()
  const expected = weights.map((w) => w.grad!.dataSync())
  for (const w of weights) w.grad = null
  withChainsFrom(1, () => {
    let results = 0
    const { receive } = Storage.prototype
    Storage.prototype.receive = function (other) {
      results++
      receive.call(this, other)
    }
    try {
      compile(run)().sum().backward()
    } finally {
      Storage.prototype.receive = receive
    }
    // The result, the eighth product and the fourth; a gradient for each layer, and two of those that pass through the layers.
    expect(results).toBe(LAYERS + 5)
  })
  expect(weights.map((w) => w.grad!.dataSync())).toEqual(expected)
})
