/** A module reports members that it would lose: replaced ones, ones that no walk sees, ones whose name is taken (Note [Fields] in `module.ts`). */
import { describe, expect, test } from '@jest/globals'
import { defineFunction, noGrad } from '@postgrad/autograd'
import { ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import {
  Adam,
  BatchNorm1d,
  Conv1d,
  ConvTranspose2d,
  Embedding,
  EmbeddingBag,
  GRU,
  GroupNorm,
  InstanceNorm1d,
  LayerNorm,
  Linear,
  LSTM,
  LSTMCell,
  Module,
  ModuleList,
  MultiheadAttention,
  ParameterList,
  PReLU,
  parameter,
  Sequential,
  SGD,
} from '../index.js'

const error = (code: string, values?: object) => expect.objectContaining(values === undefined ? { code } : { code, values })
const replaced = (...paths: string[]) => error('MEMBER_REPLACED', { paths })
const set = (module: object, field: string, value: unknown) => Object.assign(module, { [field]: value })

class Scale extends Module {
  w = tensor([1], { requiresGrad: true })
  forward(x: Tensor): Tensor {
    return x.mul(this.w)
  }
}

describe('a field that held a parameter', () => {
  const slips: [string, (m: Scale) => unknown][] = [
    ['a plain tensor', () => tensor([5])],
    ['a result', (m) => m.w.mul(2)],
    ['a result without a history', (m) => noGrad(() => m.w.mul(2))],
    ['a number', () => 5],
    ['a function', () => () => ones([1])],
  ]
  test.each(slips)('and is given %s is refused by each call that needs parameters or state, with what to do', (_, make) => {
    const m = new Scale()
    const optimizer = new SGD(m.parameters(), { lr: 0.1 })
    const state = m.stateDict()
    m.w.sum().backward()
    const value = make(m)
    set(m, 'w', value)
    for (const use of [
      () => m.parameters(),
      () => m.namedParameters(),
      () => m.stateDict(),
      () => m.loadStateDict(state),
      () => m.zeroGrad(),
      () => m.requiresGrad_(),
      () => m.to('float64'),
      () => optimizer.step(),
      () => new Sequential(m as never).parameters(),
    ]) {
      expect(use).toThrow(replaced('w'))
    }
    expect(() => m.parameters()).toThrow(
      expect.objectContaining({
        message: expect.stringContaining("'w' of Scale held a parameter"),
        remedy: expect.stringContaining('module.w.copy_(values)'),
      }),
    )
    expect(String(m)).toBe('Scale()')
    // As the remedy says.
    m.w = parameter(tensor([7]))
    expect(m.parameters()).toEqual([m.w])
    optimizer.step()
  })

  test('may be given another parameter, null, a module, or a collection of parameters; or be removed', () => {
    for (const [value, count] of [
      [parameter(ones([2])), 1],
      [null, 0],
      [undefined, 0],
      [new Scale(), 1],
      [[parameter(ones([1])), parameter(ones([1]))], 2],
    ] as const) {
      const m = new Scale()
      m.parameters()
      set(m, 'w', value)
      expect(m.parameters()).toHaveLength(count)
    }
    const m = new Scale()
    m.parameters()
    delete (m as Partial<Scale>).w
    expect(m.parameters()).toEqual([])
    // Given up: what comes afterwards is a field as any other.
    set(m, 'w', ones([1]))
    expect(m.parameters()).toEqual([])
  })

  test('may keep a result when the parameter is under another name, as for a norm of weights', () => {
    const m = new Scale()
    m.parameters()
    const original = m.w
    Object.assign(m, { original, w: original.mul(2) })
    expect(m.namedParameters()).toEqual([['original', original]])
    set(m, 'w', original.mul(3))
    expect(m.parameters()).toEqual([original])
  })

  test('is known when the program has waited since the module was made, also without a walk; in the constructor everything may change', async () => {
    class Built extends Module {
      w: Tensor
      constructor() {
        super()
        this.w = tensor([1], { requiresGrad: true })
        this.w = this.w.mul(2)
      }
    }
    expect(new Built().parameters()).toEqual([])
    const m = new Scale()
    await null
    set(m, 'w', tensor([5]))
    expect(() => m.parameters()).toThrow(replaced('w'))
  })

  test('is not looked for while constructors run, however many modules they make', () => {
    class Many extends Module {
      w: Tensor = tensor([1], { requiresGrad: true })
      parts: Module[]
      constructor() {
        super()
        this.parts = Array.from({ length: 300 }, () => new Scale())
        this.w = this.w.mul(2)
      }
    }
    expect(new Many().parameters()).toHaveLength(300)
  })

  test('of the library’s layers is known at once', () => {
    const layers: [Module, string, string][] = [
      [new Linear(1, 1), 'weight', 'weight'],
      [new Linear(1, 1), 'bias', 'bias'],
      [new Conv1d(1, 1, 1), 'weight', 'weight'],
      [new ConvTranspose2d(1, 1, 1), 'bias', 'bias'],
      [new Embedding(1, 1), 'weight', 'weight'],
      [new EmbeddingBag(1, 1), 'weight', 'weight'],
      [new LayerNorm(2), 'weight', 'weight'],
      [new GroupNorm(1, 2), 'bias', 'bias'],
      [new InstanceNorm1d(2, { affine: true }), 'weight', 'weight'],
      [new BatchNorm1d(2), 'weight', 'weight'],
      [new PReLU(), 'weight', 'weight'],
      [new MultiheadAttention(2, 1), 'inProjWeight', 'in_proj_weight'],
      [new LSTMCell(1, 1), 'weightIh', 'weight_ih'],
    ]
    for (const [layer, field, path] of layers) {
      set(layer, field, ones([1, 1]))
      expect(() => layer.stateDict()).toThrow(replaced(path))
      expect(() => layer.stateDict()).toThrow(expect.objectContaining({ remedy: expect.stringContaining(`module.${field}.copy_(values)`) }))
    }
    const gru = new GRU(1, 1)
    gru.weights.set('bias_hh_l0', ones([3]))
    expect(() => gru.parameters()).toThrow(replaced('bias_hh_l0'))
    expect(() => gru.parameters()).not.toThrow(expect.objectContaining({ remedy: expect.stringContaining('module.') }))
  })

  test('is found missing by optimizers once no module has the parameter, in a field or in a collection', () => {
    const [a, b] = [new Scale(), new Scale()]
    b.w = a.w
    const list = new ParameterList([a.w])
    const model = new ModuleList([a, b, list])
    const optimizer = new Adam(model.parameters(), { lr: 0.1 })
    a.w.sum().backward()
    optimizer.step()
    const { w } = a
    set(a, 'w', w.mul(2))
    set(b, 'w', w.mul(2))
    // Whether a module that nobody needs any more is there yet must not matter.
    optimizer.step()
    list.items[0] = w.mul(2)
    expect(() => optimizer.step()).toThrow(replaced('w'))
    expect(optimizer.stepCount).toBe(2)
  })

  test('of many modules that came and went is let go of', () => {
    const w = parameter(ones([1]))
    const optimizer = new SGD([w], { lr: 0.1 })
    class Probe extends Module {
      w: Tensor = w
    }
    let derefs = 0
    const { deref } = WeakRef.prototype
    WeakRef.prototype.deref = function (this: WeakRef<object>) {
      derefs++
      // As if everything had been collected.
      return undefined
    }
    try {
      for (let n = 0; n < 100; n++) new Probe().parameters()
      derefs = 0
      optimizer.step()
      expect(derefs).toBeLessThan(40)
    } finally {
      WeakRef.prototype.deref = deref
    }
  })

  test('is named where it holds a view that says nothing of its history', () => {
    const m = new Scale()
    m.parameters()
    const base = parameter(ones([1])).mul(1)
    const same = defineFunction({ name: 'Same', forward: (_, x: Tensor) => x, backward: (_, g) => g })
    set(m, 'w', same(base))
    base.mul_(2)
    expect(() => m.parameters()).toThrow(replaced('w'))
  })

  test('is missed, too, where two items of a collection have one path', () => {
    class Keys extends Module {
      w: Tensor = parameter(ones([1]))
      readonly map = new Map<unknown, Tensor>([
        [1, parameter(ones([1]))],
        ['1', parameter(ones([1]))],
      ])
    }
    const m = new Keys()
    m.parameters()
    m.w = m.w.mul(2)
    expect(() => m.parameters()).toThrow(replaced('w'))
  })
})

describe('items of collections', () => {
  test('that held a parameter and hold a tensor that is none', () => {
    const list = new ParameterList([ones([1]), ones([1])])
    const optimizer = new SGD(list.parameters(), { lr: 0.1 })
    list.items[1] = list.items[1]!.mul(2)
    expect(() => list.parameters()).toThrow(replaced('1'))
    expect(() => optimizer.step()).toThrow(replaced('1'))
    const lstm = new LSTM(1, 1)
    lstm.parameters()
    lstm.weights.set('bias_hh_l0', zeros([4]))
    expect(() => lstm.stateDict()).toThrow(replaced('bias_hh_l0'))
  })

  test('may move, go, and be others', () => {
    class Items extends Module {
      items: unknown[] = [parameter(ones([1])), ones([1]), 'x', new Linear(1, 1)]
    }
    const m = new Items()
    m.parameters()
    m.items.unshift(zeros([1]))
    expect(m.parameters()).toHaveLength(3)
    m.items.splice(1, 2)
    expect(m.parameters()).toHaveLength(2)
    m.items = ['linear', () => 0, 3]
    expect(m.parameters()).toEqual([])
  })
})

test('a field that held a module and is given a tensor, a number, or a function is refused; another module and null are not', () => {
  class Net extends Module {
    lin: Module | null = new Linear(2, 2)
  }
  for (const value of [zeros([1]), 3, () => zeros([1])]) {
    const m = new Net()
    m.parameters()
    set(m, 'lin', value)
    expect(() => m.parameters()).toThrow(replaced('lin'))
    expect(() => m.stateDict()).toThrow(replaced('lin'))
    m.lin = new Linear(2, 2, { bias: false })
    expect(m.parameters()).toHaveLength(1)
    m.lin = null
    expect(m.parameters()).toEqual([])
  }
})

test('a field that is registered as a buffer and is given a number is refused; any tensor is a buffer then', () => {
  class Net extends Module {
    mean = this.registerBuffer('mean', zeros([1]))
  }
  const m = new Net()
  m.stateDict()
  m.mean = m.mean.add(parameter(ones([1])))
  expect(Object.keys(m.stateDict())).toEqual(['mean'])
  set(m, 'mean', 3)
  expect(() => m.stateDict()).toThrow(replaced('mean'))
})

describe('registerBuffer', () => {
  class Net extends Module {
    lin = new Linear(2, 2)
    w = parameter(ones([1]))
    plain = zeros([1])
    list = [1]
    count = 0
    forward(x: Tensor): Tensor {
      return this.lin.forward(x)
    }
  }
  const names = ['lin', 'w', 'plain', 'list', 'count', 'forward', 'training', 'toString', 'constructor', '__proto__', 'registerBuffer']
  test.each(names)('refuses the name %s, which is taken', (field) => {
    const net = new Net()
    expect(() => net.registerBuffer(field, zeros([1]))).toThrow(error('MEMBER_NAME_TAKEN', { name: field }))
    expect(Object.keys(net.stateDict())).toEqual(['w', 'lin.weight', 'lin.bias'])
  })

  test('refuses names that are no part of a path, and values that are no tensor', () => {
    const net = new Net()
    for (const field of ['a.b', '', 3, Symbol('x')])
      expect(() => net.registerBuffer(field as string, zeros([1]))).toThrow(error('INVALID_ARGUMENT'))
    for (const value of [3, undefined, [1], 'x'])
      expect(() => net.registerBuffer('mean', value as unknown as Tensor)).toThrow(error('INVALID_ARGUMENT'))
    expect(() => net.registerBuffer('mean', zeros([1]), { persistant: false } as never)).toThrow(error('INVALID_ARGUMENT'))
    expect('mean' in net).toBe(false)
    expect(net.buffers()).toEqual([])
  })

  test('takes a name that is free, is declared, has null, is a buffer already, or has this very tensor', () => {
    class Declared extends Module {
      mean: Tensor | undefined
      none: Tensor | null = null
      plain = zeros([1])
    }
    const net = new Declared()
    net.registerBuffer('mean', zeros([1]))
    net.registerBuffer('mean', ones([1]))
    net.registerBuffer('none', null)
    net.registerBuffer('none', zeros([1]), { persistent: false })
    net.registerBuffer('plain', net.plain)
    net.registerBuffer('other', zeros([1]))
    expect(Object.keys(net.stateDict())).toEqual(['mean', 'plain', 'other'])
  })
})

describe('what no walk sees', () => {
  test.each([
    ['under a symbol', (m: object, v: unknown) => set(m, Symbol('layer') as never, v), '[Symbol(layer)]'],
    ['not enumerable', (m: object, v: unknown) => Object.defineProperty(m, 'layer', { value: v, configurable: true }), 'layer'],
    [
      'in a collection under a symbol',
      (m: object, v: unknown) => set(m, 'parts', { a: [{ [Symbol('layer')]: v }] }),
      'parts.[Symbol(layer)]',
    ],
  ])('%s is refused as #private fields are', (_, hide, name) => {
    for (const [value, what] of [
      [new Linear(1, 1), 'Linear'],
      [parameter(ones([1])), 'a parameter'],
    ] as const) {
      const m = new Scale()
      hide(m, value)
      expect(() => m.parameters()).toThrow(error('MODULE_HIDDEN', { hidden: [`${name} of Scale (${what})`] }))
      expect(() => m.stateDict()).toThrow(error('MODULE_HIDDEN'))
      // Nothing is lost when it is also elsewhere.
      set(m, 'seen', value)
      expect(m.parameters().length).toBeGreaterThan(1)
    }
  })

  test('hooks, plain tensors, functions and what is above are no harm', () => {
    const m = new Scale()
    m.registerForwardHook(() => undefined)
    Object.defineProperty(m, 'parent', { value: new ModuleList([m]) })
    Object.defineProperty(m, 'scratch', { value: zeros([1]) })
    set(m, Symbol('f') as never, () => new Linear(1, 1))
    expect(m.parameters()).toEqual([m.w])
  })
})

test('two tensors of one path are refused by state dicts, which would have one of them', () => {
  class Keys extends Module {
    readonly map = new Map<unknown, Tensor>([[1, parameter(ones([1]))]])
  }
  const m = new Keys()
  const state = m.stateDict()
  m.map.set('1', parameter(zeros([1])))
  expect(() => m.stateDict()).toThrow(error('MEMBER_NAME_TAKEN', { name: 'map.1' }))
  expect(() => m.loadStateDict(state)).toThrow(error('MEMBER_NAME_TAKEN', { name: 'map.1' }))
  expect(m.parameters()).toHaveLength(2)
  m.map.set('1', m.map.get(1)!)
  expect(Object.keys(m.stateDict())).toEqual(['map.1'])
})

test('apply may be called by what it calls', () => {
  const seen: string[] = []
  new ModuleList([new Scale()]).apply((module) => {
    module.apply((each) => seen.push(`${module.constructor.name} ${each.constructor.name}`))
  })
  expect(seen).toEqual(['Scale Scale', 'ModuleList Scale', 'ModuleList ModuleList'])
})

test('a module that knows its parent ends apply and toString', () => {
  class Child extends Module {
    readonly parent: Module
    constructor(parent: Module) {
      super()
      this.parent = parent
    }
  }
  class Parent extends Module {
    readonly children2 = [new Child(this), new Child(this)]
  }
  const parent = new Parent()
  const seen: string[] = []
  parent.apply((module) => seen.push(module.constructor.name))
  expect(seen).toEqual(['Child', 'Child', 'Parent'])
  expect(String(parent)).toBe(
    'Parent(\n  (children2.0): Child(\n    (parent): Parent(…)\n  )\n  (children2.1): Child(\n    (parent): Parent(…)\n  )\n)',
  )
  // Also after one that threw.
  expect(() =>
    parent.apply(() => {
      throw new Error('no')
    }),
  ).toThrow('no')
  parent.apply((module) => seen.push(module.constructor.name))
  expect(seen).toHaveLength(6)
})
