/** Autograd for users: backward, grad, hooks, grad mode, custom functions, saved variables, in-place operations, all refusals. */
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { withHeapLimit } from '@postgrad/tensor/internal'
import * as F from '../index.js'
import { gradientEdge, metaOf, type Node, validateRoots } from '../internal.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })
const list = (t: Tensor | null) => (t === null ? null : Array.from(t.dataSync()))

/** Its second argument, after the first was evaluated for its effect. */
const after = <T>(_: unknown, value: T): T => value

function refusal(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected it to throw')
}

describe('backward', () => {
  test('adds to .grad, which survives and grows', () => {
    const x = leaf(1, 2)
    x.mul(x).sum().backward()
    const first = x.grad
    x.mul(3).sum().backward()
    expect(list(x.grad)).toEqual([5, 7])
    expect(x.grad).toBe(first)
  })

  test('.grad is nobody else’s: two leaves, the root’s gradient, and a hook see no later sums', () => {
    const [x, y] = [leaf(1, 2), leaf(3, 4)]
    const given = ones([2])
    let seen: Tensor | null = null
    x.registerHook((g) => {
      seen = g
      return undefined
    })
    const run = () => F.backward([x.add(y)], [given])
    run()
    const early = seen as Tensor | null
    run()
    run()
    expect([list(x.grad), list(y.grad), list(given), list(early)]).toEqual([
      [3, 3],
      [3, 3],
      [1, 1],
      [1, 1],
    ])
  })

  test('.grad is nobody else’s under createGraph either', () => {
    const [x, y, given] = [leaf(1, 2), leaf(3, 4), ones([2])]
    F.backward([x.add(y)], [given], { createGraph: true })
    F.noGrad(() => x.grad!.zero_())
    expect([list(x.grad), list(y.grad), list(given)]).toEqual([
      [0, 0],
      [1, 1],
      [1, 1],
    ])
  })

  test('only a tensor of the same shape and dtype can be assigned to .grad', () => {
    const x = leaf(1, 2)
    for (const wrong of [ones([3]), ones([2], { dtype: 'float64' })]) {
      expect(refusal(() => (x.grad = wrong))).toMatchObject({ code: 'GRAD_MISMATCH', op: 'grad' })
    }
    x.grad = ones([2])
    expect(list(x.grad)).toEqual([1, 1])
  })

  test('.grad has no history without createGraph, even if the gradient that was passed in has', () => {
    const [x, given] = [leaf(1, 2), leaf(3, 4)]
    const run = () => F.backward([x.add(1)], [given.mul(2)])
    run()
    run()
    expect([list(x.grad), x.grad!.requiresGrad]).toEqual([[12, 16], false])
  })

  test('branches that the root does not use get nothing', () => {
    const [x, y] = [leaf(1), leaf(2)]
    const h = x.mul(2)
    h.mul(y)
    h.sum().backward()
    expect([list(x.grad), y.grad]).toEqual([[2], null])
  })

  test('several roots, one of them a leaf, meet in one sum', () => {
    const x = leaf(2)
    F.backward([x.mul(x), x, x.mul(5)])
    expect(list(x.grad)).toEqual([10])
  })

  test('the same tensor as root twice', () => {
    const x = leaf(1)
    const y = x.mul(4)
    F.backward([y, y])
    expect(list(x.grad)).toEqual([8])
  })

  test('tensors that require no gradient get no history, those made under noGrad neither', () => {
    const x = leaf(1)
    const y = F.noGrad(() => x.mul(2))
    expect([ones([1]).mul(2).gradFn, y.gradFn, y.isLeaf, y.requiresGrad]).toEqual([null, null, true, false])
    expect((x.mul(2).gradFn as Node).name).toBe('MulBackward')
  })

  test('a node saves only what its wanted gradients read', () => {
    const [x, y] = [leaf(1), ones([1])]
    const z = x.mul(y)
    F.noGrad(() => x.add_(1))
    z.sum().backward()
    expect(list(x.grad)).toEqual([1])
  })

  test('createGraph: the gradient of the gradient, through .grad too', () => {
    const x = leaf(3)
    F.backward(x.pow(3), undefined, { createGraph: true })
    expect(list(x.grad)).toEqual([27])
    expect(list(F.grad(x.grad!, [x])[0]!)).toEqual([18])
  })
})

describe('retainGraph', () => {
  test('with it a second pass works, without it the error names the node and the remedy', () => {
    const x = leaf(1, 2)
    const y = x.mul(x).sum()
    y.backward(null, { retainGraph: true })
    y.backward()
    expect(list(x.grad)).toEqual([4, 8])
    const error = refusal(() => y.backward())
    expect(error).toMatchObject({ code: 'GRAPH_FREED', op: 'MulBackward', remedy: expect.stringContaining('a hidden state, detach() it') })
    expect(error.message).toContain('retainGraph: true')
  })

  test('a graph that saved nothing can be walked again, as in PyTorch', () => {
    const x = leaf(1, 2)
    const y = x.add(1).sum()
    y.backward()
    y.backward()
    expect(list(x.grad)).toEqual([2, 2])
  })
})

describe('roots', () => {
  test.each([
    ['NO_ROOTS', () => F.backward([])],
    ['ROOT_REQUIRES_NO_GRAD', () => F.backward([ones([])])],
    ['ROOT_REQUIRES_NO_GRAD', () => F.backward([ones([2])])],
    ['ROOT_NOT_SCALAR', () => F.backward([leaf(1, 2).mul(2)])],
    ['ROOT_GRADIENT_MISMATCH', () => F.backward([leaf(1, 2).mul(2)], [ones([3])])],
    ['ROOT_GRADIENT_MISMATCH', () => F.backward([leaf(1)], [])],
    ['ROOT_NOT_SCALAR', () => F.grad([leaf(1, 2)], [leaf(1)])],
  ])('%s', (code, fn) => {
    const error = refusal(fn)
    expect(error).toMatchObject({ code })
    expect(error.remedy).toBeTruthy()
  })

  test('ROOT_HAS_NO_GRAD_FN, where the rules ask for one, after the other checks', () => {
    const codeOf = (...roots: Tensor[]) => refusal(() => validateRoots(roots, { op: 'distAutograd.backward', needGradFn: true })).code
    expect([codeOf(leaf(1)), codeOf(leaf(1, 2)), codeOf(ones([2]))]).toEqual([
      'ROOT_HAS_NO_GRAD_FN',
      'ROOT_NOT_SCALAR',
      'ROOT_REQUIRES_NO_GRAD',
    ])
    validateRoots([leaf(1).mul(2)], { needGradFn: true })
  })

  test('the messages say what to do', () => {
    expect(refusal(() => F.backward([leaf(1, 2).mul(2)])).message).toBe(
      'backward: expected root 0 to be a scalar, got shape [2]. Reduce it first, as in loss.sum(), or pass its gradient.',
    )
    expect(refusal(() => F.backward([])).message).toBe('backward: expected at least one root, got none. Pass the loss: backward([loss]).')
    expect(refusal(() => F.grad([], [leaf(1)])).message).toContain('Pass the outputs: grad([y], inputs).')
  })
})

describe('grad', () => {
  test('of leaves and of what was computed; .grad stays empty', () => {
    const x = leaf(3)
    const h = x.mul(x)
    const y = h.mul(h)
    expect(F.grad(y, [h, x]).map(list)).toEqual([[18], [108]])
    expect(x.grad).toBeNull()
  })

  test('of an output itself, and of one input asked for twice', () => {
    const x = leaf(3)
    const y = x.mul(2)
    expect(F.grad(y, [y, x, x]).map(list)).toEqual([[1], [2], [2]])
  })

  test('runs only what leads to the inputs', () => {
    const [x, w] = [leaf(2), leaf(5)]
    let ran = 0
    const counted = F.defineFunction({ name: 'Counted', forward: (_, a: Tensor) => a.mul(1), backward: (_, g) => after(ran++, g) })
    const y = counted(w).mul(x)
    expect(F.grad(y, [x]).map(list)).toEqual([[5]])
    expect(ran).toBe(0)
  })

  test('what it gives is nobody else’s: neither another result, nor what was passed in', () => {
    const [x, y, given] = [leaf(1, 2), leaf(3, 4), ones([2])]
    const sum = x.add(y)
    const all = F.grad(sum, [sum, x, y, x], { gradOutputs: [given] })
    expect(new Set([given, ...all].map((g) => g.storage)).size).toBe(5)
  })

  test('what it gives may be expanded, as in PyTorch, and `.grad` is dense', () => {
    const x = leaf(1, 2, 3)
    const given = ones([])
    const [gradient] = F.grad(x.sum(), [x], { gradOutputs: [given] })
    expect([gradient!.strides, gradient!.storage.length]).toEqual([[0], 1])
    given.fill_(7)
    expect(list(gradient!)).toEqual([1, 1, 1])
    expect(refusal(() => gradient!.mul_(2)).code).toBe('INPLACE_OVERLAP')
    x.sum().backward()
    expect(x.grad!.isContiguous).toBe(true)
    const [ofMean] = F.grad(x.reshape([1, 3]).mean(1), [x], { gradOutputs: [tensor([6])] })
    expect([list(ofMean!), ofMean!.storage.length]).toEqual([[2, 2, 2], 1])
  })

  test('what it gives shares a block of the heap with what was passed in, until one of the two is written', () => {
    const n = 5000
    const [x, y] = [ones([n], { requiresGrad: true }), ones([n], { requiresGrad: true })]
    withHeapLimit(Number.POSITIVE_INFINITY, () => {
      const given = ones([2 * n])
      const [first, second] = F.grad(F.cat([x, y]), [x, y], { gradOutputs: [given] })
      const addresses = () => [given, first!, second!].map(({ storage }) => storage.host!.byteOffset)
      const [begin, ...shared] = addresses()
      expect(shared).toEqual([begin, begin! + 4 * n])
      given.fill_(2)
      second!.mul_(3)
      expect([given, first!, second!].map((t) => [t.dataSync()[0], t.dataSync()[n - 1]])).toEqual([
        [2, 2],
        [1, 1],
        [3, 3],
      ])
      expect(new Set(addresses()).size).toBe(3)
    })
  })

  test('UNUSED_INPUT, unless allowed; INPUT_REQUIRES_NO_GRAD', () => {
    const [x, y] = [leaf(1), leaf(2)]
    expect(refusal(() => F.grad(x.mul(2), [x, y])).code).toBe('UNUSED_INPUT')
    expect(F.grad(x.mul(2), [x, y], { allowUnused: true }).map(list)).toEqual([[2], null])
    expect(refusal(() => F.grad(x.mul(2), [ones([])])).code).toBe('INPUT_REQUIRES_NO_GRAD')
  })
})

describe('hooks', () => {
  test('in PyTorch’s order: tensor, node pre, node post; each may replace', () => {
    const log: string[] = []
    const note = (what: string, g: Tensor | null | undefined) => log.push(`${what} ${g!.itemSync()}`)
    const x = leaf(1)
    const h = x.mul(2)
    const y = h.mul(3)
    const node = h.gradFn as Node
    node.registerHook((inputs, outputs) => {
      note('post in', inputs[0])
      note('post out', outputs[0])
      return inputs.map((g) => g?.mul(10) ?? null)
    })
    node.registerPreHook((grads) => {
      note('pre', grads[0])
      return grads.map((g) => g?.add(1) ?? null)
    })
    h.registerHook((g) => {
      note('tensor', g)
      return g.mul(2)
    })
    h.registerHook((g) => {
      note('tensor again', g)
      return undefined
    })
    x.registerHook((g) => {
      note('leaf', g)
      return g.neg()
    })
    y.sum().backward()
    expect(log).toEqual(['tensor 3', 'tensor again 6', 'pre 6', 'post in 14', 'post out 7', 'leaf 140'])
    expect(list(x.grad)).toEqual([-140])
  })

  test('a removed hook is not called, one registered twice is called twice, removing is idempotent', () => {
    const x = leaf(1)
    let calls = 0
    const hook = () => {
      calls++
      return undefined
    }
    const [first] = [x.registerHook(hook), x.registerHook(hook)]
    x.mul(1).sum().backward()
    expect(calls).toBe(2)
    first!.remove()
    first!.remove()
    x.mul(1).sum().backward()
    expect(calls).toBe(3)
  })

  test('a hook that writes into its gradient changes that of its tensor alone', () => {
    for (const isLeaf of [true, false]) {
      for (const hook of [(g: Tensor) => void g.mul_(100), (g: Tensor) => g.mul_(100)]) {
        for (const which of [0, 1]) {
          const [x, y] = [leaf(1, 2), leaf(3, 4)]
          const terms = isLeaf ? [x, y] : [x.mul(1), y.mul(1)]
          let seen: Tensor | null = null
          terms[which]!.registerHook(hook)
          terms[1 - which]!.registerHook((g) => {
            seen = g
            return undefined
          })
          terms[0]!
            .add(terms[1]!)
            .mul(tensor([1, 2]))
            .sum()
            .backward()
          expect([x, y].map(({ grad }) => list(grad))[which]).toEqual([100, 200])
          expect([x, y].map(({ grad }) => list(grad))[1 - which]).toEqual([1, 2])
          expect(list(seen)).toEqual([1, 2])
        }
      }
    }
  })

  test('a hook of a node that writes into the gradients it is given changes those of its node alone', () => {
    type Register = (node: Node) => void
    const scale = (grads: readonly (Tensor | null)[]): undefined => {
      for (const g of grads) g?.mul_(100)
    }
    const cases: [what: string, factor: number, Register][] = [
      ['before', 100, (node) => node.registerPreHook((grads) => scale(grads))],
      ['before, and returned', 100, (node) => node.registerPreHook((grads) => after(scale(grads), grads))],
      ['after, what it returned', 100, (node) => node.registerHook((gradInputs) => scale(gradInputs))],
      ['after, what it returned, and returned', 100, (node) => node.registerHook((gradInputs) => after(scale(gradInputs), gradInputs))],
      ['after, what it was given', 1, (node) => node.registerHook((_, gradOutputs) => scale(gradOutputs))],
    ]
    for (const [what, factor, register] of cases) {
      for (const createGraph of [false, true]) {
        for (const which of [0, 1]) {
          const [x, y] = [leaf(1, 2), leaf(3, 4)]
          const terms = [x.reshape([2, 1]), y.reshape([2, 1])]
          let seen: Tensor | null = null
          register(terms[which]!.gradFn as Node)
          terms[1 - which]!.registerHook((g) => {
            seen = g
            return undefined
          })
          const sum = terms[0]!.add(terms[1]!)
          const loss = sum.mul(tensor([[1], [2]])).sum()
          const [ofSum, ofX, ofY] = F.grad(loss, [sum, x, y], { createGraph })
          expect([what, ...[ofX!, ofY!].map(list)][1 + which]).toEqual([factor, 2 * factor])
          expect([what, ...[ofX!, ofY!].map(list)][2 - which]).toEqual([1, 2])
          expect([list(ofSum!), list(seen)]).toEqual([
            [1, 2],
            [1, 2],
          ])
        }
      }
    }
  })

  test('a hook of a node that writes into one of two equal gradients leaves the other', () => {
    const [x, y] = [leaf(1, 2), leaf(3, 4)]
    const sum = x.add(y)
    ;(sum.gradFn as Node).registerHook(([first]) => void first!.mul_(100))
    sum
      .mul(tensor([1, 2]))
      .sum()
      .backward()
    expect([list(x.grad), list(y.grad)]).toEqual([
      [100, 200],
      [1, 2],
    ])
  })

  test('a hook of a node that only looks on leaves the gradients as they are', () => {
    const x = leaf(1, 2)
    const given = ones([2])
    const y = x.mul(1)
    ;(y.gradFn as Node).registerPreHook((grads) => grads)
    const later: Tensor[] = []
    ;(y.gradFn as Node).registerPreHook(([g]) => void later.push(g!))
    ;(y.gradFn as Node).registerHook((gradInputs, gradOutputs) => void later.push(gradInputs[0]!, gradOutputs[0]!))
    y.backward(given)
    for (const kept of later) kept.mul_(5)
    expect([list(x.grad), list(given)]).toEqual([
      [1, 1],
      [1, 1],
    ])
  })

  test('a hook may write into an expanded gradient', () => {
    const [x, w] = [leaf(1, 2), leaf(1, 2)]
    for (const each of [x.mul(1), w]) {
      each.registerHook((g) => g.mul_(100))
      each.mean().backward()
    }
    expect([list(x.grad), list(w.grad)]).toEqual([
      [50, 50],
      [50, 50],
    ])
  })

  test('a hook may change values, but neither shape nor dtype', () => {
    for (const wrong of [ones([3]), ones([2], { dtype: 'float64' })]) {
      const x = leaf(1, 2)
      x.registerHook(() => wrong)
      expect(refusal(() => x.mul(1).sum().backward())).toMatchObject({ code: 'INVALID_GRADIENT', op: 'hook of AccumulateGrad' })
    }
    const y = leaf(1, 2).mul(1)
    ;(y.gradFn as Node).registerPreHook((([g]: Tensor[]) => g) as never)
    expect(refusal(() => y.sum().backward())).toMatchObject({
      code: 'INVALID_GRADIENT',
      message: expect.stringContaining('expected an array of gradients'),
    })
  })

  test('a tensor hook sees the complete gradient, once', () => {
    const x = leaf(1)
    const h = x.mul(1)
    const seen: (number[] | null)[] = []
    h.registerHook((g) => {
      seen.push(list(g))
      return undefined
    })
    h.mul(2).add(h.mul(3)).sum().backward()
    expect(seen).toEqual([[5]])
  })

  test('HOOK_NEEDS_GRAD; a hook that changes the shape is refused', () => {
    expect(refusal(() => ones([1]).registerHook(() => undefined)).code).toBe('HOOK_NEEDS_GRAD')
    const x = leaf(1, 2)
    x.registerHook(() => zeros([3]))
    expect(refusal(() => x.sum().backward())).toMatchObject({ code: 'INVALID_GRADIENT', op: 'hook of AccumulateGrad' })
  })
})

describe('grad mode', () => {
  test('follows awaits and does not leak into what interleaves', async () => {
    const x = leaf(1)
    const tick = () => new Promise((resolve) => setImmediate(resolve))
    const quiet = F.noGrad(async () => {
      await tick()
      return x.mul(2)
    })
    await tick()
    expect(x.mul(2).requiresGrad).toBe(true)
    expect((await quiet).requiresGrad).toBe(false)
  })

  test('enableGrad inside noGrad', () => {
    expect(F.noGrad(() => [F.isGradEnabled(), F.enableGrad(F.isGradEnabled), F.isGradEnabled()])).toEqual([false, true, false])
  })
})

describe('saved variables', () => {
  test('a write in between is noticed: op, versions, remedy', () => {
    const x = leaf(1, 2)
    const h = x.mul(1)
    const y = h.mul(h).sum()
    F.noGrad(() => h.add_(1))
    const error = refusal(() => y.backward())
    expect(error).toMatchObject({ code: 'SAVED_VARIABLE_MODIFIED', op: 'MulBackward', values: { expectedVersion: 0, foundVersion: 1 } })
    expect(error.message).toBe(
      'MulBackward: expected a tensor of shape [2] that it needs for its gradient at version 0, got version 1: add_ has written ' +
        'to it. Write to a clone() of the tensor, use the operation that is not in place, or write after backward.',
    )
  })

  test('also through a view, and for a saved result', () => {
    const x = leaf(1, 2)
    const y = x.exp()
    F.noGrad(() => y.narrow(0, 0, 1).fill_(0))
    expect(refusal(() => y.sum().backward())).toMatchObject({ code: 'SAVED_VARIABLE_MODIFIED', op: 'ExpBackward' })
  })

  test('after an error the next pass is clean', () => {
    const x = leaf(1)
    const bad = x.mul(1)
    const y = bad.mul(bad)
    F.noGrad(() => bad.add_(1))
    refusal(() => y.backward())
    x.grad = null
    x.mul(3).backward()
    expect(list(x.grad)).toEqual([3])
  })
})

describe('leaves', () => {
  test('requiresGrad_ is for floating point leaves; off again only for leaves', () => {
    const x = leaf(1)
    expect(refusal(() => tensor(Int32Array.of(1)).requiresGrad_()).code).toBe('REQUIRES_GRAD_NEEDS_FLOAT')
    expect(refusal(() => x.mul(2).requiresGrad_(false)).code).toBe('REQUIRES_GRAD_ON_NON_LEAF')
    expect(x.requiresGrad_(false).mul(2).requiresGrad).toBe(false)
    expect([x.isLeaf, x.mul(2).isLeaf]).toEqual([true, true])
  })

  test('detach shares the storage and has no history', () => {
    const x = leaf(1, 2)
    const h = x.mul(2)
    const d = h.detach()
    expect([d.storage === h.storage, d.requiresGrad, d.isLeaf]).toEqual([true, false, true])
    h.mul(d).sum().backward()
    expect(list(x.grad)).toEqual([4, 8])
  })

  test('a leaf has one AccumulateGrad, and a .grad that was assigned is added to', () => {
    const x = leaf(1, 2)
    x.grad = tensor([10, 20])
    x.mul(3).add(x).sum().backward()
    expect(list(x.grad)).toEqual([14, 24])
    expect(metaOf(x)!.accumulateGrad).toBe(gradientEdge(x)!.node)
  })
})

describe('defineFunction', () => {
  const cube = F.defineFunction({
    name: 'Cube',
    forward: (ctx, x: Tensor) => {
      ctx.saveForBackward(x)
      return x.pow(3)
    },
    backward: (ctx, g) => g.mul(ctx.savedTensors[0]!.pow(2)).mul(3),
  })

  test('records itself under its name, also for second derivatives', () => {
    const x = tensor(Float64Array.of(2, -1), { requiresGrad: true })
    expect((cube(x).gradFn as Node).name).toBe('CubeBackward')
    expect(F.gradcheck(cube, [x])).toBe(true)
    const second = (a: Tensor) => F.grad(cube(a).sum(), [a], { createGraph: true })
    expect(F.gradcheck(second, [x])).toBe(true)
  })

  test('saves the tensors of one call only', () => {
    const twice = F.defineFunction({
      name: 'Twice',
      forward: (ctx, x: Tensor) => {
        ctx.saveForBackward(x)
        ctx.saveForBackward(x, x)
        return x.mul(2)
      },
      backward: (_, g) => g.mul(2),
    })
    expect(refusal(() => twice(tensor([1], { requiresGrad: true })))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      op: 'Twice: saveForBackward',
    })
  })

  test('several inputs and outputs, other arguments, an unused output, what needs no gradient', () => {
    const seen: boolean[][] = []
    const both = F.defineFunction({
      name: 'Both',
      forward: (ctx, a: Tensor, factor: number, b: Tensor) => {
        seen.push([...ctx.needsInputGrad])
        ctx.state = factor
        return [a.mul(factor), b.add(a)]
      },
      backward: (ctx: F.FunctionContext<number>, ga: Tensor, gb: Tensor) => [ga.mul(ctx.state!).add(gb), null, gb],
    })
    const [a, b] = [leaf(1, 2), leaf(3, 4)]
    const [first] = both(a, 10, b)
    first!.sum().backward()
    expect([list(a.grad), list(b.grad)]).toEqual([
      [10, 10],
      [0, 0],
    ])
    expect(both(a, 1, ones([2])).map((t) => t.requiresGrad)).toEqual([true, true])
    expect(seen).toEqual([
      [true, false, true],
      [true, false, false],
    ])
    expect(F.noGrad(() => both(a, 1, b)).map((t) => t.requiresGrad)).toEqual([false, false])
  })

  test('an input returned as it is becomes a tensor of its own', () => {
    const same = F.defineFunction({ name: 'Same', forward: (_, x: Tensor) => x, backward: (_, g) => g.mul(2) })
    const x = leaf(1)
    const y = same(x)
    expect(y).not.toBe(x)
    expect(x.isLeaf).toBe(true)
    y.sum().backward()
    expect(list(x.grad)).toEqual([2])
  })

  test('an argument that it gives back under noGrad has no history (as PyTorch), and without one is given back as it is', () => {
    const same = F.defineFunction({ name: 'Same', forward: (_, x: Tensor) => x, backward: (_, g) => g.mul(2) })
    const x = leaf(1, 2)
    for (const of of [x, x.mul(1)]) {
      const y = F.noGrad(() => same(of))
      expect([y.requiresGrad, y.storage === of.storage]).toEqual([false, true])
      expect(() => y.sum().backward()).toThrow(expect.objectContaining({ code: 'ROOT_REQUIRES_NO_GRAD' }))
    }
    const plain = ones([2])
    expect(same(plain)).toBe(plain)
  })

  test('where nothing is recorded, what is no tensor is given back as it is, and a tensor from elsewhere without its history', () => {
    const p = leaf(7)
    const make = (forward: () => unknown) =>
      F.defineFunction({ name: 'Odd', forward: forward as (ctx: object, x: Tensor) => Tensor, backward: (_, g) => g })
    const x = leaf(1, 2)
    for (const result of [null, undefined, 3, { a: 1 }]) {
      expect(F.noGrad(() => make(() => result)(x))).toBe(result)
      expect(F.noGrad(() => make(() => [x, result])(x) as unknown as unknown[])[1]).toBe(result)
    }
    expect(F.noGrad(() => make(() => p)(x)).requiresGrad).toBe(false)
    expect(make(() => p)(ones([1]))).toBe(p)
  })

  test('a tensor from elsewhere that is returned keeps its own history', () => {
    const p = leaf(7)
    const constant = F.defineFunction({ name: 'Constant', forward: (_, _x: Tensor) => p, backward: (_, g) => g })
    constant(leaf(1))
    expect(p.isLeaf).toBe(true)
  })

  test('an error in backward comes out as it was thrown', () => {
    const failing = F.defineFunction({
      name: 'Failing',
      forward: (_, x: Tensor) => x.mul(1),
      backward: () => {
        throw new RangeError('Simulate error on backward pass')
      },
    })
    const x = leaf(1)
    expect(refusal(() => failing(x.mul(2)).backward())).toBeInstanceOf(RangeError)
    expect(x.grad).toBeNull()
  })

  test('a backward that writes into its gradient is refused, since others have it too', () => {
    const times = (write: (grad: Tensor) => unknown) =>
      F.defineFunction({ name: 'Times', forward: (_, x: Tensor) => x.mul(1), backward: (_, grad) => after(write(grad), grad) })
    const [x, y] = [leaf(1, 2), leaf(3, 4)]
    const sum = (write: (grad: Tensor) => unknown) => times(write)(x).add(y)
    for (const write of [(grad: Tensor) => grad.zero_(), (grad: Tensor) => grad.reshape([2, 1]).mul_(2)]) {
      expect(
        refusal(() =>
          sum(write)
            .mul(ones([2]))
            .sum()
            .backward(),
        ),
      ).toMatchObject({
        code: 'GRADIENT_MODIFIED',
        message: expect.stringMatching(/^TimesBackward: expected .* clone\(\)/),
      })
    }
    sum((grad) => grad.clone().mul_(2))
      .sum()
      .backward()
    expect(list(x.grad)).toEqual([1, 1])
  })

  test('wrong numbers of gradients, a freed context', () => {
    const short = F.defineFunction({ name: 'Short', forward: (_, a: Tensor, b: Tensor) => a.add(b), backward: (_, g) => g })
    expect(refusal(() => short(leaf(1), leaf(2)).backward())).toMatchObject({ code: 'INVALID_GRADIENT', op: 'ShortBackward' })
    const y = cube(leaf(2))
    y.backward()
    expect(refusal(() => y.backward())).toMatchObject({ code: 'GRAPH_FREED', op: 'Cube' })
  })
})

describe('gradcheck', () => {
  const at = (...values: number[]) => tensor(Float64Array.from(values), { requiresGrad: true })
  const wrong = F.defineFunction({
    name: 'Wrong',
    forward: (_, x: Tensor) => x.mul(2),
    backward: (_, g) => g.mul(tensor(Float64Array.of(2, 2, 2.5, 2)).view([2, 2])),
  })

  test('names the element of a wrong derivative and both values; or answers false', () => {
    const fn = (x: Tensor) => [x.mul(1), wrong(x.view([2, 2]))]
    const error = refusal(() => F.gradcheck(fn, [at(1, 2, 3, 4)]))
    expect(error).toMatchObject({ code: 'GRADCHECK_FAILED', values: { output: 1, at: [1, 0], input: 0, by: [2], analytical: 2.5 } })
    expect(error.message).toContain('d output 1[1, 0] / d input 0[2] = ')
    expect(F.gradcheck(fn, [at(1, 2, 3, 4)], { raiseException: false })).toBe(false)
    expect(F.gradcheck(fn, [at(1, 2, 3, 4)], { atol: 0.6 })).toBe(true)
  })

  test('passes on what needs no gradient, leaves out integer outputs, needs float64', () => {
    const fn = (x: Tensor, n: number, k: Tensor) => [x.mul(n).mul(k), x.argmax(), x.gt(0)]
    expect(F.gradcheck(fn, [at(1, -2), 3, tensor([4, 5])])).toBe(true)
    expect(F.gradgradcheck((x: Tensor, n: number) => [x.pow(n), x.argmax()], [at(1, 2), 3])).toBe(true)
    for (const check of [F.gradcheck, F.gradgradcheck]) {
      expect(refusal(() => check((x: Tensor) => x.mul(2), [leaf(1)]))).toMatchObject({ code: 'GRADCHECK_NEEDS_FLOAT64', op: check.name })
    }
  })

  test('gradgradcheck of a function whose outputs require no grad fails with UNUSED_INPUT', () => {
    const error = refusal(() => F.gradgradcheck((x: Tensor) => x.detach(), [at(1, 2)]))
    expect(error).toMatchObject({ code: 'UNUSED_INPUT', op: 'gradgradcheck' })
    expect(error.message).toContain('none of the outputs requires grad')
  })

  test('a second derivative that is wrong is found by gradgradcheck alone, a backward that changes its mind by gradcheck', () => {
    const detached = F.defineFunction({
      name: 'Detached',
      forward: (ctx, x: Tensor) => after(ctx.saveForBackward(x), x.mul(x)),
      backward: (ctx, g) => g.mul(ctx.savedTensors[0]!.detach()).mul(2),
    })
    expect(F.gradcheck(detached, [at(1, 2)])).toBe(true)
    expect(refusal(() => F.gradgradcheck(detached, [at(1, 2)]))).toMatchObject({ code: 'GRADCHECK_FAILED', op: 'gradgradcheck' })
    let runs = 0
    const moody = F.defineFunction({ name: 'Moody', forward: (_, x: Tensor) => x.mul(2), backward: (_, g) => g.mul(2 + 1e-9 * runs++) })
    expect(refusal(() => F.gradcheck(moody, [at(1)])).message).toContain('in every backward pass')
    expect(F.gradcheck(moody, [at(1)], { nondetTol: 1e-6 })).toBe(true)
  })
})

test('a random graph of all tensors used everywhere gives the same bits every time', () => {
  const run = () => {
    const x = tensor(Float32Array.from({ length: 9 }, (_, i) => Math.sin(i * 7.3)))
      .reshape([3, 3])
      .requiresGrad_()
    let y = x
    const all = [x]
    for (let i = 0; i < 40; i++) {
      y = y
        .matmul(all[(i * 7) % all.length]!)
        .tanh()
        .add(all[(i * 3) % all.length]!)
      all.push(y)
    }
    y.sum().backward()
    return list(x.grad)
  }
  expect(run()).toEqual(run())
})
