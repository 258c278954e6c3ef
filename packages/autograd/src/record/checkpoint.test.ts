/** Checkpoints: the same bits as without, nothing kept in between, and their possible contents. */
import { describe, expect, jest, test } from '@jest/globals'
import { withScope } from '@postgrad/base/internal'
import { Generator, manualSeed, rand, type Tensor, tensor } from '@postgrad/tensor'
import * as F from '../index.js'
import { type Node, SavedVariable } from '../internal.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })
const bits = (t: Tensor | null) => (t === null ? null : [...new Uint8Array(t.dataSync().slice().buffer)])
const code = (code: string) => expect.objectContaining({ code }) as unknown as Error

/** How many saved variables of the graph of `root` keep a tensor. */
function kept(root: Tensor): number {
  const seen = new Set<Node>()
  let count = 0
  const visit = (node: Node) => {
    if (seen.has(node)) return
    seen.add(node)
    for (const field of Object.values(node))
      for (const each of [field].flat()) if (each instanceof SavedVariable && each.keepsTensor) count++
    for (const edge of node.nextEdges) if (edge !== null) visit(edge.node)
  }
  visit(root.gradFn as unknown as Node)
  return count
}

const parameters = () => {
  const values = (n: number, k: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * k + 1))
  const make = (shape: number[], k: number) =>
    tensor(values(shape[0]! * shape[1]!, k))
      .view(shape)
      .requiresGrad_()
  return { x: make([4, 3], 1.3), w1: make([3, 5], 2.1), w2: make([5, 3], 0.7) }
}
type Parameters = ReturnType<typeof parameters>

/** Gradients of a loss of all parameters, as bits; `run` says how a layer is called. */
function gradients(net: (p: Parameters) => Tensor): unknown {
  const p = parameters()
  withScope({ generator: new Generator(5) }, () => net(p).backward())
  return [p.x, p.w1, p.w2].map(({ grad }) => bits(grad))
}

const dropout = (x: Tensor) => x.mul(rand(x.shape).gt(0.4))
const layer = (p: Parameters) => (x: Tensor) => dropout(x.matmul(p.w1).tanh()).matmul(p.w2).sigmoid()

describe('the same bits as without a checkpoint', () => {
  test('captured parameters, dropout, several in a row, one within another', () => {
    const plain = gradients((p) =>
      dropout(layer(p)(layer(p)(p.x)))
        .mul(p.x)
        .sum(),
    )
    const row = gradients((p) =>
      dropout(F.checkpoint(layer(p), F.checkpoint(layer(p), p.x)))
        .mul(p.x)
        .sum(),
    )
    expect(row).toEqual(plain)
    const within = gradients((p) =>
      F.checkpoint(
        (x: Tensor) =>
          dropout(
            F.checkpoint(
              layer(p),
              F.checkpoint((y: Tensor) => layer(p)(y), x),
            ),
          ),
        p.x,
      )
        .mul(p.x)
        .sum(),
    )
    expect(within).toEqual(plain)
  })

  test('several inputs and outputs, arguments that are no tensors, in-place operations inside', () => {
    const both = (x: Tensor, factor: number, y: Tensor) => {
      const h = x.mul(y).exp().add(1)
      h.select(0, 0).mul_(factor)
      return { first: h, rest: [x.sin().mul(h), y.mul(factor)] }
    }
    const sum = ({ first, rest }: ReturnType<typeof both>) => first.sum().add(rest[0]!.mul(rest[1]!).sum())
    const through = (call: typeof both) => gradients(({ x, w1, w2 }) => sum(call(x, 1.5, w1.matmul(w2).sum())))
    expect(through((x, k, y) => F.checkpoint(both, x, k, y))).toEqual(through(both))
  })

  test('checkpointSequential, for every number of segments', () => {
    const net = (p: Parameters) => [layer(p), (x: Tensor) => x.mul(2).sin(), layer(p), dropout, (x: Tensor) => x.exp()]
    const plain = gradients((p) =>
      net(p)
        .reduce((x, fn) => fn(x), p.x)
        .sum(),
    )
    for (const segments of [1, 2, 3, 5]) expect(gradients((p) => F.checkpointSequential(net(p), segments, p.x).sum())).toEqual(plain)
    for (const segments of [0, 6, 1.5]) {
      expect(() => F.checkpointSequential(net(parameters()), segments, parameters().x)).toThrow(code('INVALID_ARGUMENT'))
    }
  })

  test('grad, second derivatives, a retained graph', () => {
    const fn = (x: Tensor) => x.exp().mul(x).tanh()
    const run = (call: (x: Tensor) => Tensor) => {
      const x = leaf(0.1, -0.4)
      const y = call(x.mul(2)).sum()
      const first = F.grad(y, [x], { retainGraph: true })[0]!
      const again = F.grad(y, [x], { createGraph: true })[0]!
      return [first, again, F.grad(again.mul(again).sum(), [x])[0]!].map(bits)
    }
    expect(run((x) => F.checkpoint(fn, x))).toEqual(run(fn))
    expect(run((x) => F.checkpoint((y: Tensor) => F.checkpoint(fn, y.mul(1)), x))).toEqual(run((x) => fn(x.mul(1))))
  })
})

test('nothing is kept in between, and nothing afterwards', () => {
  const p = parameters()
  const plain = layer(p)(layer(p)(p.x)).sum()
  const y = F.checkpoint((x: Tensor) => F.checkpoint(layer(p), layer(p)(x)), p.x).sum()
  expect([kept(plain) > 8, kept(y)]).toEqual([true, 0])
  let runs = 0
  const counted = (x: Tensor) => {
    runs++
    return x.exp().sin()
  }
  const x = leaf(1)
  const z = F.checkpoint(counted, x)
  expect(runs).toBe(1)
  z.backward()
  expect(runs).toBe(2)
  expect(() => z.backward()).toThrow(code('GRAPH_FREED'))
})

test('the random numbers that follow are not disturbed by the second run', () => {
  const x = leaf(1, 2, 3)
  manualSeed(3)
  const y = F.checkpoint(dropout, x).sum()
  const next = rand([2])
  y.backward()
  const after = rand([2])
  manualSeed(3)
  dropout(x)
  expect([next, after].map(bits)).toEqual([rand([2]), rand([2])].map(bits))
})

test('under noGrad it is a call', () => {
  expect(F.noGrad(() => F.checkpoint((x: Tensor) => x.mul(2), leaf(1)).requiresGrad)).toBe(false)
})

test('one behind another under createGraph: a pass over the gradient frees nothing that it needs itself', () => {
  const gradients = (call: (fn: (v: Tensor) => Tensor, v: Tensor) => Tensor) => {
    const [w, x] = [leaf(2), leaf(3)]
    const squared = (v: Tensor) => v.mul(w).square()
    const [g] = F.grad(call(squared, call(squared, x)), [x], { createGraph: true })
    g!.sum().backward()
    return [bits(x.grad), bits(w.grad)]
  }
  expect(gradients((fn, v) => F.checkpoint(fn, v))).toEqual(gradients((fn, v) => fn(v)))
})

describe('refused', () => {
  test('what computes something else the second time', () => {
    for (const change of [(x: Tensor) => x.exp().exp(), (x: Tensor) => x, (x: Tensor) => x.expand([2, 2]).exp()]) {
      let runs = 0
      const y = F.checkpoint((x: Tensor) => (runs++ === 0 ? x.exp() : change(x)), leaf(1, 2))
      expect(() => y.sum().backward()).toThrow(code('CHECKPOINT_MISMATCH'))
    }
  })

  test('an asynchronous function; an input that was written to since', () => {
    expect(() => F.checkpoint(async (x: Tensor) => x.mul(2), leaf(1))).toThrow(code('CHECKPOINT_ASYNC'))
    // `checkpoint` handles the rejection: unhandled rejections end a process.
    const rejected = Promise.reject(new Error('no'))
    const then = jest.spyOn(rejected, 'then')
    expect(() => F.checkpoint((_: Tensor) => rejected, leaf(1))).toThrow(code('CHECKPOINT_ASYNC'))
    expect(then).toHaveBeenCalledWith(undefined, expect.any(Function))
    const h = leaf(1).mul(2)
    const y = F.checkpoint((x: Tensor) => x.exp(), h)
    h.add_(1)
    expect(() => y.backward()).toThrow(expect.objectContaining({ code: 'SAVED_VARIABLE_MODIFIED', op: 'checkpoint' }) as unknown as Error)
  })

  test('an error in the second run ends the pass and leaves nothing behind', () => {
    let runs = 0
    const x = leaf(1)
    const y = F.checkpoint((a: Tensor) => {
      if (runs++ > 0) throw new RangeError('second')
      return a.exp()
    }, x)
    expect(() => y.backward()).toThrow(RangeError)
    x.exp().backward()
    expect(x.grad!.itemSync()).toBe(Math.fround(Math.E))
  })
})
