/** The memory that a pass gives back to the heap, and all ways in which a gradient escapes and must stay. */
import { expect, test } from '@jest/globals'
import { type SparseTensor, type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { Storage, threadHeap, withHeapFrom } from '@postgrad/tensor/internal'
import { residentDevice } from '@postgrad/tensor/suite'
import { withPoisonedHeap } from '../engine/poisoned-heap.fixture.js'
import * as F from '../index.js'
import type { AccumulateGrad } from './accumulate-grad.js'
import { gradientEdge } from './variable.js'

const SHAPE = [2, 3]
const leaf = () =>
  tensor(Float64Array.of(1, -2, 3, -4, 5, -6))
    .reshape(SHAPE)
    .clone()
    .detach()
    .requiresGrad_()
const values = (t: Tensor | null | undefined) => Array.from(t!.dataSync())

/** The same with managed memory and in a heap that destroys what is given back. `fn` gives what the user has kept when all is over. */
function expectKept(fn: (x: Tensor) => readonly (Tensor | null)[]): number {
  const run = () => fn(leaf()).map(values)
  const expected = run()
  const { result, givenBack } = withPoisonedHeap(run)
  expect(result).toEqual(expected)
  return givenBack
}

/** Three steps of different kinds, so that gradients are new, views, and used twice. */
const chain = (x: Tensor) => x.mul(2).tanh().reshape([3, 2]).transpose(0, 1).mul(3)

test('gradients between operations go back while the pass runs, and so do the temporaries of formulas', () => {
  const gradOf = (f: (x: Tensor) => Tensor) => (x: Tensor) => {
    f(x).sum().backward()
    return [x.grad]
  }
  expect(expectKept(gradOf(chain))).toBeGreaterThanOrEqual(2)
  // g · cos a: the cosine is the formula's own.
  expect(expectKept(gradOf((x) => x.sin()))).toBeGreaterThanOrEqual(1)
})

test('what a pass gave back is closed: nothing reads it by mistake', () => {
  const seen: Storage[] = []
  const { close } = Storage.prototype
  Storage.prototype.close = function (this: Storage) {
    seen.push(this)
    close.call(this)
  }
  try {
    withPoisonedHeap(() => chain(leaf()).sum().backward())
  } finally {
    Storage.prototype.close = close
  }
  expect(seen.length).toBeGreaterThanOrEqual(2)
  expect(() => seen[0]!.host).toThrow(expect.objectContaining({ code: 'TENSOR_CLOSED' }))
})

test('a gradient that a tensor hook saw, at any place of the chain', () => {
  for (const place of [0, 1, 2, 3, 4]) {
    expectKept((x) => {
      const kept: Tensor[] = []
      const steps = [x.mul(2)]
      steps.push(steps[0]!.tanh())
      steps.push(steps[1]!.reshape([3, 2]))
      steps.push(steps[2]!.transpose(0, 1))
      steps.push(steps[3]!.mul(3))
      steps[place]!.registerHook((g) => {
        kept.push(g, g.reshape([-1]))
        return undefined
      })
      steps[4]!.sum().backward()
      return [...kept, x.grad]
    })
  }
})

test('what node hooks saw, before and after the node', () => {
  expectKept((x) => {
    const kept: (Tensor | null)[] = []
    const y = x.mul(2).tanh()
    const z = y.mul(y.exp())
    const node = y.gradFn as unknown as {
      registerPreHook(fn: (g: readonly Tensor[]) => undefined): void
      registerHook(fn: (i: readonly Tensor[], o: readonly Tensor[]) => undefined): void
    }
    node.registerPreHook((grads) => void kept.push(...grads))
    node.registerHook((gradInputs, gradOutputs) => void kept.push(...gradInputs, ...gradOutputs))
    z.sum().backward()
    return [...kept, x.grad]
  })
})

test('retainGrad of everything in between', () => {
  expectKept((x) => {
    const a = x.mul(2).retainGrad()
    const b = a.tanh().retainGrad()
    const c = b.reshape([3, 2]).retainGrad()
    const d = c.mul(3).retainGrad()
    d.sum().backward()
    return [a, b, c, d, x].map((t) => t.grad)
  })
})

test('what grad() returns, also in the middle of the graph', () => {
  const givenBack = expectKept((x) => {
    const a = x.mul(2)
    const b = a.tanh()
    const c = b.reshape([6])
    const d = c.mul(3).sin()
    return F.grad(d.sum(), [x, b, c, a])
  })
  expect(givenBack).toBeGreaterThan(0)
})

test('the gradient with which the caller began, and a second pass with it', () => {
  expectKept((x) => {
    const gradient = tensor(Float64Array.of(1, 2, 3, 4, 5, 6)).reshape(SHAPE)
    const y = x.mul(2).clone()
    y.backward(gradient, { retainGraph: true })
    y.backward(gradient)
    return [gradient, x.grad]
  })
})

test('a gradient that goes to two edges, and one that arrives over two', () => {
  expectKept((x) => {
    const y = x.mul(2)
    y.add(y).mul(y.exp()).add(y.tanh()).sum().backward()
    return [x.grad]
  })
  expectKept((x) => {
    const other = leaf()
    x.mul(2).add(other).sin().sum().backward()
    // Each has its own, though one gradient went to both.
    x.grad!.mul_(10)
    return [x.grad, other.grad]
  })
})

test('results that are views of one tensor, or of the gradient', () => {
  expectKept((x) => {
    const [a, b] = F.unbind(x.mul(2), 0) as [Tensor, Tensor]
    F.cat([a.tanh(), b, a.expand([3, 3]).reshape([9])])
      .sin()
      .sum()
      .backward()
    return [x.grad]
  })
  expectKept((x) => {
    F.stack([x.mul(2).narrow(0, 0, 1), x.exp().narrow(0, 1, 1)])
      .sin()
      .sum()
      .backward()
    return [x.grad]
  })
})

test('what a custom function put aside: what it was given, what it returned', () => {
  expectKept((x) => {
    const kept: Tensor[] = []
    const stash = F.defineFunction({
      name: 'Stash',
      forward: (_, t: Tensor) => t.mul(2),
      backward: (_, g) => {
        const result = g.reshape(SHAPE)
        kept.push(g, result, g.mul(2))
        return result
      },
    })
    stash(x.sin()).tanh().sum().backward()
    return [...kept, x.grad]
  })
})

test('.grad that grows, and what was read of it before', () => {
  expectKept((x) => {
    x.mul(2).sin().sum().backward()
    const first = x.grad
    const copy = x.grad!.clone()
    x.mul(3).sin().sum().backward()
    x.mul(3).transpose(0, 1).sin().sum().backward()
    return [first, copy, x.grad]
  })
})

test('createGraph: gradients are part of a graph', () => {
  expectKept((x) => {
    const [g] = F.grad(chain(x).sin().sum(), [x], { createGraph: true })
    const [h] = F.grad(g!.mul(g!).sum(), [x], { retainGraph: true })
    g!.sin().sum().backward()
    return [g!, h!, x.grad]
  })
})

test('activations that the user holds stay, though only the graph needed them', () => {
  expectKept((x) => {
    const a = x.mul(2)
    const b = a.sigmoid()
    const c = F.softmax(b.exp(), 1)
    c.mul(c).sum().backward()
    return [a, b, c, x.grad]
  })
})

test('a checkpoint runs users’ code in the middle of a formula: what it makes and keeps is its own', () => {
  expectKept((x) => {
    const kept: Tensor[] = []
    const inner = (t: Tensor) => {
      const u = t.sin()
      kept.push(u, u.exp().detach())
      return u.exp().mul(u)
    }
    const y = F.checkpoint(inner, x.mul(2))
    y.tanh().sum().backward(null, { retainGraph: true })
    y.tanh().sum().backward()
    return [...kept, x.grad]
  })
})

test('a hook that runs another backward, in the middle of a pass', () => {
  expectKept((x) => {
    const other = leaf()
    const y = x.mul(2)
    y.registerHook(() => F.enableGrad(() => void other.sin().mul(2).sum().backward()))
    y.sin().mul(y.cos()).sum().backward()
    return [x.grad, other.grad]
  })
})

test('the parts of a sparse gradient', () => {
  const run = () => {
    const table = tensor(Float64Array.of(1, 2, 3, 4, 5, 6))
      .reshape([3, 2])
      .requiresGrad_()
    const rows = F.embedding(table, tensor(Int32Array.of(2, 0, 2)), { sparse: true })
    rows.sin().mul(2).sum().backward()
    const grad = table.grad as SparseTensor
    expect(grad.isSparse).toBe(true)
    return [values(grad.indices()), values(grad.values())]
  }
  expect(withPoisonedHeap(run).result).toEqual(run())
})

test('written in place, into views: the gradients of base and view', () => {
  expectKept((x) => {
    const base = x.mul(2)
    base.narrow(0, 0, 1).mul_(base.narrow(0, 1, 1).exp())
    base.sin().sum().backward()
    return [x.grad]
  })
})

test('on a device with a memory of its own buffers go back, after what was queued before has read them', async () => {
  const device = residentDevice()
  const gradient = await withDevice(device, async () => {
    const x = leaf()
    const y = chain(x).sin().sum()
    await y.data()
    const { inUse } = device.memory()
    y.backward()
    const result = await x.grad!.data()
    // The pass leaves the gradient, and the 1 that it began with.
    expect(device.memory().inUse - inUse).toBe(8 * (x.numel + 1))
    return result
  })
  const x = leaf()
  withDevice('js', () => chain(x).sin().sum().backward())
  expect(Array.from(gradient)).toEqual(values(x.grad))
})

/** Bytes of heap that `fn` has given back when it ends. */
function givenBackBy(fn: () => void): number {
  const heap = threadHeap()
  const before = heap.heldBytes
  fn()
  return before - heap.heldBytes
}

test('HEAP-14 a gradient that nobody has read goes back when .grad becomes null', () => {
  withHeapFrom(1, () => {
    const x = leaf()
    for (let pass = 1; pass <= 2; pass++) {
      chain(x).sum().backward()
      expect(givenBackBy(() => (x.grad = null))).toBeGreaterThan(0)
    }
    // Two passes add up in one block.
    for (let pass = 1; pass <= 2; pass++) chain(x).sum().backward()
    expect(givenBackBy(() => (x.grad = null))).toBeGreaterThan(0)
    expect(givenBackBy(() => (x.grad = null))).toBe(0)
  })
})

test('HEAP-14 a gradient that code has read stays', () => {
  const seen: { readonly [how: string]: (x: Tensor) => (Tensor | null)[] } = {
    after: (x) => {
      chain(x).sum().backward()
      return [x.grad]
    },
    'between two passes, which add up in it': (x) => {
      chain(x).sum().backward()
      const { grad } = x
      chain(x).sum().backward()
      return [grad]
    },
    'a view of it': (x) => {
      chain(x).sum().backward()
      return [x.grad!.reshape([-1])]
    },
    'by a hook of the pass': (x) => {
      const kept: (Tensor | null)[] = []
      x.registerPostAccumulateGradHook((leaf) => void kept.push(leaf.grad))
      chain(x).sum().backward()
      return kept
    },
    'by a hook of the gradient': (x) => {
      const kept: Tensor[] = []
      x.registerHook((grad) => void kept.push(grad))
      chain(x).sum().backward()
      return kept
    },
    'by a hook of the leaf': (x) => {
      const kept: (Tensor | null)[] = []
      const { node } = gradientEdge(x)!
      ;(node as AccumulateGrad).addLeafHook((_, grad) => void kept.push(grad))
      chain(x).sum().backward()
      return kept
    },
    assigned: (x) => {
      x.grad = x.detach().mul(2)
      const { grad } = x
      chain(x).sum().backward()
      return [grad]
    },
    'by a graph of its own': (x) => {
      const y = chain(x)
      y.sum().backward(undefined, { createGraph: true })
      const twice = x.grad!.mul(2)
      return [twice, x.grad]
    },
    'by the caller, who gave it': (x) => {
      const grad = x.detach().mul(3)
      x.mul(1).reshape(SHAPE).backward(grad)
      return [grad]
    },
  }
  for (const how of Object.keys(seen)) {
    expectKept((x) => {
      const kept = seen[how]!(x)
      x.grad = null
      // Its block would be taken again.
      chain(x).sum().backward()
      return kept
    })
  }
})

test('HEAP-14 two leaves that get one gradient have one each', () => {
  expectKept((x) => {
    const y = leaf()
    x.add(y).sum().backward()
    x.grad = null
    return [y.grad]
  })
})
