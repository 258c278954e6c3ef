/** Views after a write into their base: views that follow it, and views without a way back, whose history is refused. */
import { describe, expect, test } from '@jest/globals'
import { ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import * as F from '../index.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })
const list = (t: Tensor | null) => (t === null ? null : Array.from(t.dataSync()))
const refused = (op?: string) => expect.objectContaining({ code: 'INPLACE_ON_VIEW', ...(op && { op }) }) as unknown as Error
const padded = (g: Tensor) => F.cat([g, zeros([1])])
const repeated = (n: number, fn: (x: Tensor) => Tensor) => (x: Tensor) => Array.from({ length: n }).reduce<Tensor>(fn, x)

const same = F.defineFunction({ name: 'Same', forward: (_, x: Tensor) => x, backward: (_, g) => g })
const part = F.defineFunction({ name: 'Part', forward: (_, x: Tensor) => x.narrow(0, 0, 1), backward: (_, g) => padded(g) })
const halves = F.defineFunction({
  name: 'Halves',
  forward: (_, x: Tensor) => x.chunk(2),
  backward: (_, ...g: Tensor[]) => F.cat(g),
})
/** Returns a view of what it has captured, and what it has captured. */
const captured = (x: Tensor, fn: (x: Tensor) => Tensor) =>
  F.defineFunction({ name: 'Captured', forward: (_, __: Tensor) => fn(x), backward: (_, g) => g.sum().expand([3]) })(leaf(4, 5, 6))

/** Views that have no way back to x. The first function's result requires grad, the second's does not. */
const WITH_HISTORY: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'what a custom function returns as it came': same,
  'a view that a custom function returns': part,
  'the second of two': (x) => halves(x)[1]!,
  'a view of such a view': (x) => part(x).view([1]),
  'a view of a view of it': (x) =>
    same(x.view([2]))
      .narrow(0, 0, 1)
      .unsqueeze(0),
  'a captured tensor': (x) => captured(x, () => x),
  'a view of a captured tensor': (x) => captured(x, () => x.narrow(0, 0, 1)),
  'a captured view': (x) => captured(x, () => x.narrow(0, 0, 1)),
}
const WITHOUT: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'a view that was made under noGrad': (x) => F.noGrad(() => x.narrow(0, 0, 1)),
  'a view of one': (x) => F.noGrad(() => x.narrow(0, 0, 1)).view([1]),
  'a part of one': (x) => F.noGrad(() => x.view([2])).split(1)[1]!,
}
const WRITES: Readonly<Record<string, (x: Tensor) => unknown>> = {
  mul_: (x) => x.mul_(3),
  'copy_ of constants': (x) => x.copy_(tensor([7, 7])),
  'add_ of what requires grad': (x) => x.add_(leaf(1, 2)),
  'another view': (x) => x.narrow(0, 1, 1).mul_(3),
  'a view of a view': (x) => x.view([1, 2]).narrow(1, 0, 1).zero_(),
}

describe('a view without a way back, after a recorded write into its base', () => {
  describe.each(Object.entries({ ...WITH_HISTORY, ...WITHOUT }))('%s', (_, make) => {
    test.each(Object.entries(WRITES))('%s: its history is refused, its values are not', (_, write) => {
      const x = leaf(1, 2).mul(1)
      const y = make(x)
      write(x)
      expect(y.requiresGrad).toBe(true)
      for (const read of [() => y.sum(), () => y.gradFn, () => y.isLeaf, () => y.view([1, -1]), () => y.sum().backward()]) {
        expect(read).toThrow(refused())
      }
      const now = list(F.noGrad(() => x.add(0)))!
      expect(now).toEqual(expect.arrayContaining(list(y.detach())!))
      expect(list(F.noGrad(() => y.mul(1)))).toEqual(list(y.detach()))
      expect(String(y)).toContain('gradFn=<INPLACE_ON_VIEW>')
      // The base itself, and a view that is made now, are right.
      x.add(x.view([2]))
        .sum()
        .backward()
    })

    test('it may not be written to itself', () => {
      for (const write of [(y: Tensor) => y.mul_(2), (y: Tensor) => y.add_(leaf(1)), (y: Tensor) => y.view([-1]).zero_()]) {
        const y = make(leaf(1, 2).mul(1))
        expect(() => write(y)).toThrow(refused())
      }
    })
  })

  test.each(Object.entries(WITH_HISTORY))('%s: a write under noGrad, or to a detached alias, changes no history', (_, make) => {
    const writes = [
      (x: Tensor) => F.noGrad(() => x.mul_(3)),
      (x: Tensor) => x.detach().mul_(3),
      (x: Tensor) => x.detach().add_(leaf(1, 2)),
      (x: Tensor) => x.detach().narrow(0, 0, 1).copy_(leaf(1)),
    ]
    for (const write of writes) {
      const gradient = (late: (x: Tensor) => unknown) => {
        const start = leaf(1, 2)
        const x = start.mul(1)
        const y = make(x)
        late(x)
        y.sum().add(start.mul(0).sum()).backward()
        return list(start.grad)
      }
      expect(gradient(write)).toEqual(gradient(() => {}))
    }
  })

  test.each(Object.entries(WITHOUT))('%s stays without a gradient after a write under noGrad, as an optimizer makes', (_, make) => {
    const x = leaf(1, 2)
    const y = make(x)
    F.noGrad(() => x.sub_(ones([2])))
    expect([y.requiresGrad, y.isLeaf, list(x)!.includes(list(y)![0]!)]).toEqual([false, true, true])
  })

  test.each(Object.entries(WITHOUT))(
    '%s stays so after a recorded write to a detached alias, and one of the alias after a write to x',
    (_, make) => {
      const x = leaf(1, 2).mul(1)
      const alias = x.detach()
      const [y, z] = [make(x), make(alias)]
      alias.add_(leaf(1, 2))
      expect([y.requiresGrad, y.isLeaf, list(y.add(0))]).toEqual([false, true, list(y)])
      expect(() => z.sum()).toThrow(refused())
      const late = make(alias)
      x.add_(leaf(1, 2))
      expect([late.requiresGrad, late.isLeaf]).toEqual([false, true])
      expect(() => y.sum()).toThrow(refused())
    },
  )

  test('a write, then detach_ of the base: a view of a custom function has no history of the value that was', () => {
    for (const make of Object.values(WITH_HISTORY)) {
      const x = leaf(1, 2).mul(1)
      const y = make(x)
      x.mul_(3)
      x.detach_()
      expect(() => y.sum()).toThrow(refused())
    }
  })

  test('of a plain base: refused once a gradient has been written into it', () => {
    for (const make of [...Object.values(WITHOUT), same, part, repeated(101, (x) => x.view([2]))]) {
      const x = zeros([2])
      const y = make(x)
      x.mul_(2)
      expect([y.requiresGrad, y.isLeaf]).toEqual([false, true])
      if (y === x) continue
      x.copy_(leaf(1, 2))
      expect(() => y.sum()).toThrow(refused())
      x.detach_()
      expect(y.requiresGrad).toBe(false)
    }
  })

  test('a custom function refuses it before its forward writes into it', () => {
    const dirty = F.defineFunction({ name: 'Dirty', forward: (_, x: Tensor) => x.mul_(2).mul(1), backward: (_, g) => g.mul(2) })
    for (const make of [...Object.values(WITH_HISTORY).slice(0, 2), ...Object.values(WITHOUT)]) {
      const x = leaf(1, 2).mul(1)
      const y = make(x)
      x.add_(leaf(1, 2))
      expect(() => dirty(y)).toThrow(refused())
      expect(list(x)).toEqual([2, 4])
    }
  })

  test('the message says whose view it is, why, and what to do', () => {
    const x = leaf(1, 2).mul(1)
    const [a, b] = [same(x), F.noGrad(() => x.view([2]))]
    x.mul_(2)
    expect(() => a.sum()).toThrow(
      'SameBackward: expected a view whose base was not written to since the view was made, got a view that was returned by a custom function ' +
        'or by a module with a backward hook, of a base that an in-place operation has written to while recording',
    )
    expect(() => b.sum()).toThrow(/gradFn: .*made under noGrad/)
    expect(() => a.sum()).toThrow(expect.objectContaining({ remedy: expect.stringContaining('clone()') }) as unknown as Error)
  })
})

describe('what a custom function has made itself', () => {
  test('a view of it may be written to, as nobody else sees the rest', () => {
    const twice = F.defineFunction({
      name: 'Twice',
      forward: (_, x: Tensor) => x.mul(2).view([2, 1]),
      backward: (_, g) => g.mul(2).view([2]),
    })
    const x = leaf(1, 2)
    twice(x).mul_(3).sum().backward()
    expect(list(x.grad)).toEqual([6, 6])
  })

  test('a result that was saved has its history in a second derivative, also if it is a view', () => {
    for (const shaped of [(y: Tensor) => y.view([2, 1]), (y: Tensor) => y.view([2, 1]).detach(), (y: Tensor) => y.unsqueeze(1)]) {
      const exp = F.defineFunction({
        name: 'Exp',
        forward: (ctx, x: Tensor) => {
          const y = shaped(x.exp())
          ctx.saveForBackward(y)
          return y
        },
        backward: (ctx, g) => g.mul(ctx.savedTensors[0]!).squeeze(1),
      })
      const x = tensor([0.3, 0.7], { dtype: 'float64', requiresGrad: true })
      expect([F.gradcheck(exp, [x]), F.gradgradcheck(exp, [x])]).toEqual([true, true])
    }
    const alias = F.defineFunction({
      name: 'Alias',
      forward: (ctx, x: Tensor) => {
        const y = x.detach()
        ctx.saveForBackward(y)
        return y
      },
      backward: (ctx, g) => g.mul(ctx.savedTensors[0]!),
    })
    const x = leaf(3)
    const [first] = F.grad(alias(x), [x], { createGraph: true })
    expect(list(F.grad(first!, [x])[0]!)).toEqual([3])
  })

  test('two results that share memory: a view among them does not outlive a write into the other', () => {
    const both = F.defineFunction({
      name: 'Both',
      forward: (_, x: Tensor) => {
        const y = x.mul(2)
        return [y, y.view([2, 1])]
      },
      backward: (_, g: Tensor, h: Tensor) => g.add(h.view([2])).mul(2),
    })
    const x = leaf(1, 2)
    const [a, b] = both(x) as [Tensor, Tensor]
    expect(() => b.mul_(2)).toThrow(refused('mul_'))
    a.add(b.view([2]))
      .sum()
      .backward()
    expect(list(x.grad)).toEqual([4, 4])
    a.mul_(3)
    expect(() => b.sum()).toThrow(refused('BothBackward'))
    a.sum().backward()
    expect(list(x.grad)).toEqual([10, 10])
  })

  test('a plain tensor that it has captured stays plain', () => {
    const buffer = zeros([2])
    const fill = F.defineFunction({ name: 'Fill', forward: (_, x: Tensor) => buffer.copy_(x), backward: (_, g) => g })
    const y = fill(leaf(1, 2))
    expect([y.requiresGrad, buffer.requiresGrad, list(buffer)]).toEqual([true, false, [1, 2]])
    buffer.copy_(leaf(3, 4))
    expect(() => y.sum()).toThrow(refused('FillBackward'))
  })
})

describe('views with a way back', () => {
  test.each<[string, (x: Tensor) => Tensor]>([
    ['split', (x) => x.split(1)[1]!],
    ['chunk', (x) => x.chunk(2)[1]!],
    ['unbind', (x) => x.unbind()[1]!],
    ['tensorSplit', (x) => x.tensorSplit(2)[1]!],
    ['index', (x) => x.index(1)],
    ['diagonal', (x) => x.view([2, 1]).expand([2, 2]).diagonal().narrow(0, 1, 1)],
    ['2,000 views', (x) => repeated(2000, (y) => y.view([2]))(x).select(0, 1)],
  ])('%s follows a write into its base, where PyTorch refuses several parts of one', (_, make) => {
    const x = leaf(1, 2)
    const h = x.mul(1)
    const y = make(h)
    h.mul_(3)
    y.sum().backward()
    expect(list(x.grad)).toEqual([0, 3])
  })

  test('a chain longer than the stack is followed, and written through', () => {
    const long = repeated(12_000, (y) => y.view([2]))
    const x = leaf(1, 2)
    const h = x.mul(1)
    const y = long(h)
    h.mul_(3)
    y.sum().backward()
    expect(list(x.grad)).toEqual([3, 3])
    y.mul_(2)
    expect(y.requiresGrad).toBe(true)
  })
})

describe('retainGrad of a view', () => {
  const WRITES: Readonly<Record<string, (x: Tensor, v: Tensor) => unknown>> = {
    'into itself': (_, v) => v.mul_(5),
    'into its base': (x) => x.mul_(5),
    'into another view of the same elements': (x) => x.view([1, 2]).narrow(1, 0, 1).mul_(5),
    'into other elements': (x) => x.narrow(0, 1, 1).mul_(5),
  }
  test.each(Object.entries(WRITES))('keeps the gradient of the value after a write %s', (_, write) => {
    for (const make of [(x: Tensor) => x.select(0, 0), (x: Tensor) => x.narrow(0, 0, 1).view([1])]) {
      const start = leaf(1, 2)
      const x = start.mul(1)
      const v = make(x)
      v.retainGrad()
      write(x, v)
      expect(v.retainsGrad).toBe(true)
      v.mul(2).sum().backward()
      expect(list(v.grad)).toEqual([2])
    }
  })
})
