/** Gradients that stay after a pass: `retainGrad`, hooks on `.grad`, nodes as users see them, `inputs` of a pass, `detach_`. */
import { describe, expect, test } from '@jest/globals'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import * as F from '../index.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })
const list = (t: Tensor | null) => (t === null ? null : Array.from(t.dataSync()))
const code = (code: string, op: string) => expect.objectContaining({ code, op }) as unknown as Error

describe('retainGrad', () => {
  test('.grad of a non-leaf is null without it, and grows with it; for a leaf there is nothing to do', () => {
    const x = leaf(1, 2)
    const h = x.mul(2)
    expect([h.retainsGrad, h.retainGrad().retainGrad().retainsGrad, x.retainGrad().retainsGrad]).toEqual([false, true, false])
    const y = h.mul(3)
    y.sum().backward(null, { retainGraph: true })
    y.sum().backward()
    expect([list(h.grad), y.grad, list(x.grad)]).toEqual([[6, 6], null, [12, 12]])
  })

  test('an expanded gradient that createGraph keeps takes the next pass', () => {
    const x = leaf(1, 2)
    x.mean(0).backward(null, { createGraph: true })
    x.mean(0).backward()
    expect(list(x.grad)).toEqual([1, 1])
  })

  test('what is kept is nobody else’s', () => {
    const x = leaf(1, 2)
    const h = x.mul(1).retainGrad()
    const given = ones([2])
    h.backward(given)
    h.grad!.fill_(7)
    expect([list(given), list(x.grad)]).toEqual([
      [1, 1],
      [1, 1],
    ])
  })

  test('hooks that replace the gradient: those registered before it have, later ones have not (as PyTorch 1.13)', () => {
    const h = leaf(1).mul(1)
    h.registerHook((g) => g.mul(2))
    h.retainGrad()
    h.registerHook((g) => g.mul(10))
    h.backward()
    expect(list(h.grad)).toEqual([2])
  })

  test('after an in-place operation it is the new value’s', () => {
    const x = leaf(1)
    const h = x.mul(2).retainGrad()
    h.mul_(3)
    h.sum().backward()
    expect([list(h.grad), list(x.grad), h.retainsGrad]).toEqual([[1], [6], true])
  })

  test('under createGraph it has a history', () => {
    const x = leaf(3)
    const h = x.mul(1).retainGrad()
    F.backward(h.pow(2), undefined, { createGraph: true })
    expect(list(F.grad(h.grad!, [x])[0]!)).toEqual([2])
  })

  test('RETAIN_GRAD_NEEDS_GRAD', () => {
    expect(() => ones([1]).retainGrad()).toThrow(code('RETAIN_GRAD_NEEDS_GRAD', 'retainGrad'))
  })
})

describe('registerPostAccumulateGradHook', () => {
  test('is called when .grad is complete, once per pass, with the leaf; an optimizer in it may step', () => {
    const x = leaf(1, 2)
    const seen: (number[] | null)[] = []
    const handle = x.registerPostAccumulateGradHook((p) => {
      seen.push(list(p.grad))
      F.noGrad(() => p.sub_(p.grad!, 0.5))
      p.grad = null
    })
    x.mul(2).add(x).sum().backward()
    F.grad(x.mul(2).sum(), [x])
    handle.remove()
    x.mul(2).sum().backward()
    expect([seen, list(x), list(x.grad)]).toEqual([[[3, 3]], [-0.5, 0.5], [2, 2]])
  })

  test('HOOK_NEEDS_LEAF', () => {
    for (const t of [leaf(1).mul(2), ones([1])]) {
      expect(() => t.registerPostAccumulateGradHook(() => {})).toThrow(code('HOOK_NEEDS_LEAF', 'registerPostAccumulateGradHook'))
    }
  })
})

test('nodes as users see them: names, next functions, hooks', () => {
  const [x, k] = [leaf(1), ones([1])]
  const y = x.exp().mul(k)
  const [first, second] = y.gradFn!.nextFunctions
  expect([y.gradFn!.name, first![0]!.name, first![1], second]).toEqual(['MulBackward', 'ExpBackward', 0, [null, 0]])
  expect(first![0]!.nextFunctions[0]![0]!.name).toBe('AccumulateGrad')
  const seen: (number | undefined)[] = []
  y.gradFn!.registerPreHook(([g]) => [g!.mul(2)])
  first![0]!.registerHook((inputs, outputs) => void seen.push(inputs[0]?.itemSync(), outputs[0]?.itemSync()))
  y.backward()
  expect(seen).toEqual([Math.fround(2 * Math.E), 2])
})

describe('backward with inputs', () => {
  test('only theirs grows, only what leads to them runs; a non-leaf retains', () => {
    const [x, w] = [leaf(2), leaf(5)]
    let ran = 0
    const h = x.mul(3)
    h.gradFn!.registerHook(() => void ran++)
    h.mul(w).backward(null, { inputs: [w], retainGraph: true })
    expect([x.grad, list(w.grad), ran]).toEqual([null, [6], 0])
    h.mul(w).backward(null, { inputs: [h] })
    expect([list(h.grad), x.grad, list(w.grad), ran]).toEqual([[5], null, [6], 0])
    F.backward(x.mul(w), null, { inputs: [x, leaf(1)] })
    expect([list(x.grad), list(w.grad)]).toEqual([[5], [6]])
  })

  test('NO_INPUTS, INPUT_REQUIRES_NO_GRAD', () => {
    expect(() => leaf(1).mul(1).backward(null, { inputs: [] })).toThrow(code('NO_INPUTS', 'backward'))
    expect(() =>
      leaf(1)
        .mul(1)
        .backward(null, { inputs: [ones([])] }),
    ).toThrow(code('INPUT_REQUIRES_NO_GRAD', 'backward'))
  })
})

describe('detach_', () => {
  test('a leaf without a gradient of its own; what was saved before keeps its history', () => {
    const x = leaf(3)
    const h = x.mul(2)
    const y = h.mul(h)
    expect([h.detach_().requiresGrad, h.isLeaf]).toEqual([false, true])
    const [g] = F.grad(y, [x], { createGraph: true })
    expect([list(g!), list(F.grad(g!, [x])[0]!)]).toEqual([[24], [8]])
    expect(ones([1]).detach_().requiresGrad).toBe(false)
  })

  test('of a leaf, and requiresGrad_() behind it: one leaf with one gradient, for graphs from before and after', () => {
    const build = () => {
      const x = leaf(1)
      const seen: unknown[] = []
      x.registerHook((g) => void seen.push(list(g)))
      const before = x.mul(2)
      x.detach_().requiresGrad_()
      return { x, seen, loss: before.add(x.mul(3)).sum() }
    }
    // PyTorch: 5, with one call of the hook, which sees 5.
    const { x, seen, loss } = build()
    loss.backward()
    expect([list(x.grad), seen]).toEqual([[5], [[5]]])
    const again = build()
    expect(list(F.grad(again.loss, [again.x])[0]!)).toEqual([5])
  })

  test('or requiresGrad_(false): the leaf gets no gradient from a graph from before', () => {
    for (const off of [(x: Tensor) => x.detach_(), (x: Tensor) => x.requiresGrad_(false)]) {
      const x = leaf(1)
      const loss = x.mul(2).sum()
      off(x)
      loss.backward()
      expect(x.grad).toBeNull()
    }
  })

  test('a leaf that became the result of an operation: LEAF_MODIFIED, and none once it is a leaf again', () => {
    const build = () => {
      const [x, w] = [leaf(1), leaf(5)]
      const before = x.mul(2).sum()
      x.requiresGrad_(false)
      x.mul_(w)
      return { x, before }
    }
    const { x, before } = build()
    // PyTorch: "leaf variable has been moved into the graph interior".
    expect(() => before.add(x.sum()).backward()).toThrow(code('LEAF_MODIFIED', 'backward'))
    const again = build()
    again.x.detach_().requiresGrad_()
    again.before.add(again.x.mul(3).sum()).backward()
    expect(list(again.x.grad)).toEqual([5])
  })

  test('DETACH_VIEW', () => {
    expect(() => leaf(1, 2).mul(2).narrow(0, 0, 1).detach_()).toThrow(code('DETACH_VIEW', 'detach_'))
  })
})

test('setGradEnabled', () => {
  expect([true, false].map((on) => F.setGradEnabled(on, () => leaf(1).mul(2).requiresGrad))).toEqual([true, false])
})
