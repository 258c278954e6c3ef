/** In-place operations while recording: against PyTorch (`scripts/golden/autograd_inplace.py`), and every refusal. */
import { describe, expect, test } from '@jest/globals'
import { Generator, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { goldenSuite } from '../derivatives/golden.suite.js'
import * as F from '../index.js'
import { type Node, operations } from '../internal.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })
const list = (t: Tensor | null) => (t === null ? null : Array.from(t.dataSync()))
const zeros64 = (...shape: number[]) => zeros(shape, { dtype: 'float64' })

goldenSuite('inplace', {
  arithmetic: (x, y) => {
    const h = x!.mul(2)
    h.add_(y!, 0.5).mul_(y!).sub_(x!, -2).div_(y!.exp())
    return h.mul(h).sum()
  },
  functions: (x) => {
    const h = x!.mul(1.5).sin_().mul(1).exp_().add(1).sqrt_().mul(2).log_().neg_()
    const g = x!.add(1).tanh_().mul(2).sigmoid_().add(1)
    g.pow_(3)
    const relu = x!.sub(0.1).relu_().mul(h)
    return h.mul(g).add(relu).add(x!.mul(2).clamp_(-0.7, 0.9).abs_().mul(g)).add(x!.mul(3).cos_()).sum()
  },
  rows_of_zeros: (x, w) => {
    const out = zeros64(3, 2)
    for (let i = 0; i < 3; i++) {
      out.select(0, i).copy_(x!.select(0, i).mul(w!))
      out.select(0, i).mul_(w!)
    }
    return out.mul(out).sum()
  },
  view_of_result: (x, y) => {
    const h = x!.mul(x!)
    h.select(1, 1).mul_(y!)
    h.T.select(0, 2).copy_(y!.mul(y!))
    h.view([12]).narrow(0, 3, 2).zero_()
    return h.mul(x!).sum()
  },
  live_view: (x, y) => {
    const h = x!.mul(2)
    const [row, column] = [h.select(0, 0), h.T.select(0, 1)]
    h.mul_(y!)
    const before = row.mul(2).sum()
    row.add_(y!)
    h.exp_()
    return before.add(row.mul(y!).sum()).add(column.mul(column).sum()).add(h.sum())
  },
  chain_of_views: (x, y) => {
    const h = x!.sin()
    const v = h.view([2, 2]).T.unsqueeze(0).select(0, 0).select(0, 1)
    v.mul_(y!.narrow(0, 0, 2))
    v.narrow(0, 0, 1).sin_()
    return h.mul(y!).sum().add(v.pow(2).sum())
  },
  read_then_written: (x, y) => {
    const h = x!.mul(y!)
    const early = h.add(1)
    h.mul_(early)
    return h.mul(early).sum()
  },
  overwritten: (x) => {
    const h = x!.mul(2).fill_(3)
    const g = x!.mul(x!)
    g.narrow(0, 0, 2).fill_(5)
    return h.mul(x!).add(g.mul(x!)).sum()
  },
  copied_with_broadcast: (x, y) => {
    const h = x!.mul(2).copy_(y!)
    const k = x!.mul(3)
    k.select(0, 0).copy_(y!.select(0, 1))
    return h.mul(x!).sum().add(k.mul(k).sum())
  },
  detached_alias: (x, y) => {
    const h = x!.mul(2)
    h.detach().mul_(3)
    const g = zeros64(3)
    const view = g.narrow(0, 1, 2)
    g.add_(y!)
    return h
      .mul(y!)
      .sum()
      .add(
        view
          .mul(view)
          .mul(h.narrow(0, 1, 2))
          .sum(),
      )
  },
})

const code = (code: string, op?: string) => expect.objectContaining({ code, ...(op && { op }) }) as unknown as Error

describe('refused', () => {
  test('a leaf that requires grad, and a view of one; under noGrad they may be written to', () => {
    const x = leaf(1, 2)
    expect(() => x.add_(1)).toThrow(code('INPLACE_ON_LEAF', 'add_'))
    expect(() => x.narrow(0, 0, 1).zero_()).toThrow(code('INPLACE_ON_LEAF', 'zero_'))
    expect(() => x.add_(1)).toThrow('Write into it under noGrad(() => …), or use add, which makes a new tensor.')
    for (const write of [() => x.zero_(), () => x.fill_(1), () => x.copy_(ones([2]))]) {
      expect(write).toThrow('Write into it under noGrad(() => …), or write into a clone() of it.')
    }
    expect(() => x.narrow(0, 0, 1).add_(leaf(1))).toThrow(/a view of a leaf/)
    F.noGrad(() => x.narrow(0, 0, 1).sub_(ones([1]), 0.5))
    expect(list(x)).toEqual([0.5, 2])
  })

  test('a view whose base would not learn of it: made under noGrad, returned by a custom function', () => {
    const h = leaf(1, 2).mul(2)
    const quiet = F.noGrad(() => h.narrow(0, 0, 1))
    expect(quiet.requiresGrad).toBe(false)
    expect(() => quiet.mul_(2)).toThrow(code('INPLACE_ON_VIEW', 'mul_'))
    const first = F.defineFunction({
      name: 'First',
      forward: (_, x: Tensor) => x.narrow(0, 0, 1),
      backward: (_, g) => F.cat([g, zeros([1])]),
    })
    const v = first(h)
    expect(() => v.mul_(2)).toThrow(/returned by a custom function/)
    const plain = F.noGrad(() => zeros([2]).narrow(0, 0, 1))
    expect(list(plain.add_(1))).toEqual([1])
    expect(() => plain.add_(leaf(1))).toThrow(code('INPLACE_ON_VIEW', 'add_'))
  })

  test('results of another shape or of a wider category', () => {
    const [x, y] = [leaf(1), leaf(1, 2)]
    expect(() => x.mul(1).add_(y)).toThrow(code('SHAPE_MISMATCH', 'add_'))
    expect(() => tensor(Int32Array.of(1)).mul_(x)).toThrow(code('INPLACE_DTYPE', 'mul_'))
    expect(() => tensor(Int32Array.of(1)).exp_()).toThrow(code('INPLACE_DTYPE', 'exp_'))
    expect(() => x.mul(1).expand([3]).mul_(2)).toThrow(code('INPLACE_OVERLAP', 'mul_'))
  })

  test('what backward needs: the argument of mul_ that is the tensor itself, a result that was written to', () => {
    const h = leaf(1, 2).mul(2)
    h.mul_(h)
    expect(() => h.sum().backward()).toThrow(code('SAVED_VARIABLE_MODIFIED'))
    const e = leaf(1, 2).exp()
    e.add_(1)
    expect(() => e.sum().backward()).toThrow(code('SAVED_VARIABLE_MODIFIED', 'ExpBackward'))
    const k = leaf(1, 2).mul(1)
    const y = k.mul(k)
    k.detach().narrow(0, 0, 1).zero_()
    expect(() => y.sum().backward()).toThrow(code('SAVED_VARIABLE_MODIFIED', 'MulBackward'))
  })
})

describe('histories', () => {
  const name = (t: Tensor) => (t.gradFn as Node | null)?.name

  test('as PyTorch names them; the tensor stays the same object', () => {
    const x = leaf(1, 2)
    const h = x.mul(1)
    expect(h.relu_()).toBe(h)
    const b = zeros([2])
    const v = b.narrow(0, 0, 1)
    expect([v.requiresGrad, v.isLeaf]).toEqual([false, true])
    b.copy_(x)
    expect([name(h), name(b), name(v), v.requiresGrad, v.isLeaf]).toEqual(['ReluBackward', 'CopyBackward', 'NarrowBackward', true, false])
    v.mul_(2)
    expect([name(b), name(v), name(x.mul(1).zero_())]).toEqual(['CopySlices', 'NarrowBackward', 'ZeroBackward'])
  })

  test('what was overwritten gets zeros, and .grad of a written tensor stays', () => {
    const x = leaf(1, 2)
    x.mul(2).zero_().sum().backward()
    expect(list(x.grad)).toEqual([0, 0])
  })

  test('hooks stay with the value that they were registered for', () => {
    const h = leaf(1).mul(2)
    const seen: number[] = []
    h.registerHook((g) => void seen.push(g.itemSync()))
    h.mul_(3)
    h.registerHook((g) => void seen.push(g.itemSync() * 10))
    h.backward()
    expect(seen).toEqual([10, 3])
  })

  test('a write under noGrad changes values and no history, of views neither', () => {
    const x = leaf(1, 2)
    const h = x.mul(3)
    const v = h.narrow(0, 1, 1)
    F.noGrad(() => h.fill_(10))
    v.add(h.sum()).sum().backward()
    expect(list(x.grad)).toEqual([3, 6])
  })

  test('a mixed write keeps the dtype of what is written, each gradient its own', () => {
    const [x, y] = [leaf(1, 2), tensor(Float64Array.of(3, 4), { requiresGrad: true })]
    const h = x.mul(1).mul_(y)
    expect(h.dtype).toBe('float32')
    h.sum().backward()
    expect([x.grad!.dtype, list(x.grad), y.grad!.dtype, list(y.grad)]).toEqual(['float32', [3, 4], 'float64', [1, 2]])
  })

  test('after a mixed write the gradient of what was written has its dtype: kept, asked for, and in a hook', () => {
    for (const part of [(x: Tensor) => x, (x: Tensor) => x.narrow(0, 0, 1)]) {
      const x = leaf(1, 2).mul(1)
      part(x).mul_(tensor(Float64Array.of(3)))
      const seen: string[] = []
      x.registerHook((g) => void seen.push(g.dtype))
      const y = x.mul(5).sum()
      expect(F.grad(y, [x], { retainGraph: true })[0]!.dtype).toBe('float32')
      x.retainGrad()
      y.backward()
      expect([x.grad!.dtype, list(x.grad), seen.at(-1)]).toEqual(['float32', [5, 5], 'float32'])
    }
  })

  test('a result of indexPut under noGrad is no view', () => {
    const x = F.noGrad(() => zeros([2, 2]).indexPut([tensor(Int32Array.of(1))], 3))
    expect(list(x.mul_(leaf(2)))).toEqual([0, 0, 6, 6])
    expect(x.detach_().requiresGrad).toBe(false)
  })

  test('a view that became a leaf is a leaf', () => {
    const flat = zeros([4])
    const w = flat.narrow(0, 0, 2).requiresGrad_()
    expect(() => w.add_(1)).toThrow(code('INPLACE_ON_LEAF'))
    w.mul(2).sum().backward()
    expect([list(w.grad), flat.requiresGrad]).toEqual([[2, 2], false])
  })

  test('views of views in a loop hold on to nothing but the base', () => {
    let x = zeros([2, 3])
    for (let i = 0; i < 1000; i++) x = x.T
    expect(() => x.select(0, 0).add_(leaf(1, 2, 3))).toThrow(/very long chain/)
    x.fill_(1)
  })
})

test('every in-place operation has the gradients of the one that makes a new tensor', () => {
  const numbers = (...values: number[]) => tensor(Float64Array.from(values))
  const index = (...values: number[]) => tensor(Int32Array.from(values))
  const extra: Readonly<Record<string, readonly unknown[]>> = {
    ...{ pow_: [3], clamp_: [-0.5, 0.7], fill_: [2], add_: [1.5], sub_: [1.5], mul_: [1.5], div_: [1.5], elu_: [1.5], leakyRelu_: [0.1] },
    ...{ remainder_: [0.7], fmod_: [0.7], floorDivide_: [0.7], atan2_: [numbers(1, 2)], lerp_: [numbers(1, 2), 0.3] },
    ...{ addcmul_: [numbers(1, 2), numbers(3, 4)], addcdiv_: [numbers(1, 2), numbers(3, 4), { value: 2 }], copy_: [numbers(1, 2)] },
    ...{ cumsum_: [0], cumprod_: [1], tril_: [0], triu_: [0], indexFill_: [0, index(1), 2.5] },
    ...{ scatterAdd_: [1, index(1, 0).view([1, 2]), numbers(5, 6).view([1, 2])], scatter_: [0, index(1, 0).view([1, 2]), 7] },
    ...{ indexAdd_: [0, index(1), numbers(5, 6).view([1, 2])] },
    ...{ indexPut_: [[0], 3], maskedFill_: [tensor([true, false]), 3] },
  }
  const names = Object.keys(operations).filter((op) => op.endsWith('_'))
  expect(names.length).toBeGreaterThan(40)
  for (const op of names) {
    const values = Float64Array.from({ length: 6 }, (_, i) => 0.35 + 0.6 * Math.sin(1 + i) ** 2)
    const x = tensor(values).view([2, 3]).requiresGrad_()
    const call = (t: Tensor) => (operations as unknown as Record<string, (...args: unknown[]) => Tensor>)[op]!(t, ...(extra[op] ?? []))
    expect(F.gradcheck((a: Tensor) => call(a.narrow(1, 0, 2).mul(1)), [x])).toBe(true)
    const inPart = (a: Tensor) => {
      const h = a.mul(1)
      call(h.narrow(1, 1, 2))
      return h
    }
    expect(F.gradcheck(inPart, [x])).toBe(true)
    expect(F.gradgradcheck(inPart, [x])).toBe(true)
  }
})

/** A program of views and writes: of a base and of views of views, which live on while others are written to. */
function randomProgram(seed: number): (x: Tensor, y: Tensor) => Tensor {
  const random = new Generator(seed)
  const pick = (n: number) => random.integer(0, n)
  const steps = Array.from({ length: 4 + pick(8) }, () => [pick(9), pick(100), pick(100), pick(100)] as const)
  const view = (t: Tensor, a: number, b: number): Tensor => {
    if (t.ndim === 0) return t.unsqueeze(0)
    const d = a % t.ndim
    const extent = t.shape[d]!
    const ways = [
      () => t.select(d, b % extent),
      () => t.narrow(d, b % extent, 1 + ((a + b) % (extent - (b % extent)))),
      () => t.transpose(d, b % t.ndim),
      () => t.unsqueeze(d),
      () => t.reshape([-1]),
    ]
    return ways[b % ways.length]!()
  }
  return (x, y) => {
    // A base that needs no gradient until something is written into it, and one that has a history.
    const bases = [zeros64(2, 3), x.mul(1.5)]
    const views: Tensor[] = [...bases]
    for (const [what, a, b, k] of steps) {
      const t = views[a % views.length]!
      if (what < 4) {
        const v = view(t, b, k)
        if (bases.some((base) => base.storage === v.storage)) views.push(v)
      } else if (what === 4) t.mul_(y.sum())
      else if (what === 5) t.sin_()
      else if (what === 6) t.add_(x.mean().mul(y.select(0, k % 2)), 0.5)
      else if (what === 7) t.copy_(x.select(0, k % 2).sum())
      else t.sub_(views[k % views.length]!.mean())
    }
    return views
      .map((t, i) =>
        t
          .mul(t)
          .mean()
          .mul(i + 1),
      )
      .reduce((sum, each) => sum.add(each))
  }
}

/** `npm run soak -- --seeds 10000 record/in-place` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 25)

test('random programs of views and writes have the gradients of finite differences, first and second', () => {
  let written = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const program = randomProgram(seed)
    const inputs: [Tensor, Tensor] = [
      tensor(Float64Array.of(0.3, -0.7, 1.1, 0.2, -0.4, 0.9))
        .view([2, 3])
        .requiresGrad_(),
      tensor(Float64Array.of(0.6, -1.2)).requiresGrad_(),
    ]
    try {
      F.gradcheck(program, inputs)
      F.gradgradcheck(program, inputs)
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
    if (program(...inputs).requiresGrad) written++
  }
  expect(written).toBe(SEEDS)
})

describe('fill_ and zero_ of expanded tensors that have a history', () => {
  test.each([
    ['zero_', 0, (x: Tensor) => x.zero_()],
    ['fill_', 2, (x: Tensor) => x.fill_(2)],
  ] as const)('%s writes as without one, and the gradient of what was overwritten is 0', (_, value, write) => {
    const base = tensor(
      [
        [1, 2],
        [3, 4],
      ],
      { requiresGrad: true },
    )
    const copy = base.clone()
    const wide = copy.select(0, 0).expand([3, 2])
    write(wide)
    expect(wide.toArray()).toEqual(new Array(3).fill([value, value]))
    expect(copy.toArray()).toEqual([
      [value, value],
      [3, 4],
    ])
    F.add(
      wide
        .mul(
          tensor([
            [1, 2],
            [3, 4],
            [5, 6],
          ]),
        )
        .sum(),
      copy
        .mul(
          tensor([
            [10, 20],
            [30, 40],
          ]),
        )
        .sum(),
    ).backward()
    expect(base.grad!.toArray()).toEqual([
      [0, 0],
      [30, 40],
    ])
    // Earlier reads fail as always, and leaves are refused.
    const read = base.clone()
    const square = read.mul(read)
    write(read.select(0, 0).expand([3, 2]))
    expect(() => square.sum().backward()).toThrow(expect.objectContaining({ code: 'SAVED_VARIABLE_MODIFIED' }))
    expect(() => write(base.select(0, 0).expand([3, 2]))).toThrow(expect.objectContaining({ code: 'INPLACE_ON_LEAF' }))
  })
})

test('in-place operations of expanded tensors, of leaves and of other shapes are refused under their own names', () => {
  const mask = tensor([true, false])
  const at = tensor(Int32Array.of(0))
  const writes: [string, (x: Tensor) => unknown][] = [
    ['maskedFill_', (x) => x.maskedFill_(mask, 3)],
    ['indexFill_', (x) => x.indexFill_(1, at, 3)],
    ['indexPut_', (x) => x.indexPut_([at], 3)],
    ['indexPut_', (x) => x.indexPut_([':'], zeros([2]))],
    ['tril_', (x) => x.tril_()],
  ]
  for (const [op, write] of writes) {
    for (const requiresGrad of [false, true]) {
      const wide = tensor([[1, 2]], { requiresGrad })
        .clone()
        .expand([3, 2])
      expect(() => write(wide)).toThrow(expect.objectContaining({ code: 'INPLACE_OVERLAP', op }))
    }
  }
  expect(() => tensor([1, 2], { requiresGrad: true }).maskedFill_(mask, 3)).toThrow(
    expect.objectContaining({ code: 'INPLACE_ON_LEAF', op: 'maskedFill_' }),
  )
  expect(() => zeros([2]).maskedFill_(mask.expand([3, 2]), 3)).toThrow(
    expect.objectContaining({ code: 'SHAPE_MISMATCH', op: 'maskedFill_' }),
  )
})
