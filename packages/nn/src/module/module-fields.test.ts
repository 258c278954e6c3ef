/** Where a module's fields may hold its members, and errors for members in other places (Note [Fields] in `module.ts`). */
import { describe, expect, test } from '@jest/globals'
import { ones, type Tensor, zeros } from '@postgrad/tensor'
import { Linear, Module, ModuleList, parameter, Sequential, SGD } from '../index.js'

const layer = () => new Linear(1, 1, { bias: false })
const names = (module: Module) => module.namedParameters().map(([name]) => name)

/** An object with state that must not be trained along. */
class Holder {
  readonly layer = layer()
}

class Parts extends Module {
  readonly parts = { a: layer(), deep: { list: [layer(), { b: parameter(ones([1])) }], map: new Map([['k', layer()]]) } }
  readonly rows = [[layer()], [layer(), layer()]]
  readonly set = new Set([layer(), parameter(ones([2]))])
  readonly bare = Object.assign(Object.create(null), { c: layer() }) as { c: Linear }
  readonly mean = this.registerBuffer('mean', zeros([1]))
  // None of these is the module's.
  readonly settings = { lr: 0.1, shape: [1, 2], name: 'x', nothing: null, plain: ones([1]) }
  readonly holder = new Holder()
  readonly target = () => layer()
}

describe('collections in fields', () => {
  test('plain objects, arrays, Maps and Sets to any depth, under the path of fields and keys', () => {
    const module = new Parts()
    expect(names(module)).toEqual([
      'parts.deep.list.1.b',
      'set.1',
      'parts.a.weight',
      'parts.deep.list.0.weight',
      'parts.deep.map.k.weight',
      'rows.0.0.weight',
      'rows.1.0.weight',
      'rows.1.1.weight',
      'set.0.weight',
      'bare.c.weight',
    ])
    expect(module.getSubmodule('parts.deep.map.k')).toBeInstanceOf(Linear)
    expect(module.namedChildren().map(([name]) => name)).toContain('rows.1.1')
    expect(new Set(module.parameters())).toEqual(new Set(module.namedParameters().map(([, p]) => p)))
  })

  test('train, to, stateDict and loadStateDict reach them', () => {
    const module = new Parts().eval().to('float64')
    expect([module.parts.a.training, module.rows[1]![1]!.training]).toEqual([false, false])
    expect(module.namedParameters().map(([, p]) => p.dtype)).toEqual(new Array(10).fill('float64'))
    expect([...module.set].map((item) => (item instanceof Module ? 'module' : item.dtype))).toEqual(['module', 'float64'])
    expect(module.settings.plain.dtype).toBe('float32')
    const other = new Parts()
    other.loadStateDict(module.stateDict())
    expect(other.parts.a.weight.dataSync()[0]).toBe(Math.fround(module.parts.a.weight.dataSync()[0]!))
  })

  test('a collection that holds itself, or the module, ends every walk', () => {
    class Loop extends Module {
      readonly items: Record<string, unknown> = { layer: layer(), owner: this }
    }
    const module = new Loop()
    module.items.self = module.items
    expect(names(module)).toEqual(['items.layer.weight'])
    expect(module.to('float64').parameters()[0]!.dtype).toBe('float64')
  })
})

test('a graph of plain objects is walked once, though it has more paths than a walk can end', () => {
  const nodes = Array.from({ length: 30 }, () => ({ next: [] as unknown[], own: null as Linear | null }))
  for (const node of nodes) node.next.push(...nodes)
  nodes[3]!.own = layer()
  class Graph extends Module {
    readonly nodes = nodes
  }
  const module = new Graph()
  expect(names(module)).toEqual(['nodes.0.next.1.next.2.next.3.own.weight'])
  expect(module.to('float64').parameters()[0]!.dtype).toBe('float64')
  const other = new Graph()
  other.loadStateDict(module.stateDict())
})

test('a list of plain objects may be linked, however long', () => {
  let last: { next: unknown; own: Linear | null } = { next: null, own: layer() }
  for (let i = 0; i < 20_000; i++) last = { next: last, own: null }
  class List extends Module {
    readonly first = last
  }
  expect(new List().to('float64').parameters()[0]!.dtype).toBe('float64')
})

test('collections that hold nothing to convert stay as they are, frozen ones too', () => {
  class Frozen extends Module {
    readonly sizes = Object.freeze([1, [2], Object.freeze({ a: 'x' }), new Set([1])])
    readonly layer = layer()
  }
  expect(new Frozen().to('float64').layer.weight.dtype).toBe('float64')
})

class Hidden extends Module {
  readonly seen = layer()
  readonly #layer = layer()
  forward(x: Tensor): Tensor {
    return this.#layer.forward(this.seen.forward(x))
  }
}

const refused = (...hidden: string[]) => expect.objectContaining({ code: 'MODULE_HIDDEN', values: { hidden } })

describe('#private fields', () => {
  test('with a layer are refused by each walk for parameters or state, with the field and what to do; forward and train are not', () => {
    const module = new Hidden()
    expect(module.train().forward(ones([1])).shape).toEqual([1])
    const message = expect.objectContaining({
      message: expect.stringContaining('#layer of Hidden (Linear)'),
      remedy: expect.stringContaining('#layer = () => layer'),
    })
    expect(() => module.parameters()).toThrow(message)
    expect(() => module.parameters()).toThrow(refused('#layer of Hidden (Linear)'))
    expect(() => module.namedParameters()).toThrow(refused('#layer of Hidden (Linear)'))
    expect(() => module.stateDict()).toThrow(refused('#layer of Hidden (Linear)'))
    expect(() => module.loadStateDict({})).toThrow(refused('#layer of Hidden (Linear)'))
  })

  test('of a base class, of modules below, in collections, and with parameters', () => {
    class Derived extends Hidden {
      readonly own = layer()
    }
    expect(() => new Sequential(layer(), new Derived()).parameters()).toThrow(refused('#layer of Derived (Linear)'))
    class Lists extends Module {
      readonly #lists = { a: [layer()] }
      readonly #weight = parameter(ones([1]))
      both() {
        return [this.#lists, this.#weight]
      }
    }
    expect(() => new Lists().stateDict()).toThrow(refused('#lists.a.0 of Lists (Linear)', '#weight of Lists (a parameter)'))
  })

  test('are no harm when they hold what is found elsewhere, what is above, functions, instances, buffers, plain values', () => {
    class Child extends Module {
      readonly #parent: Module
      readonly weight = parameter(ones([1]))
      readonly #alias = this.weight
      readonly #target = () => layer()
      readonly #holder = new Holder()
      readonly #scratch = zeros([2])
      readonly #count = 3
      constructor(parent: Module) {
        super()
        this.#parent = parent
      }
      all() {
        return [this.#parent, this.#alias, this.#target, this.#holder, this.#scratch, this.#count]
      }
    }
    class Parent extends Module {
      readonly child = new Child(this)
      readonly list = new ModuleList([layer()])
      readonly #first = this.list.at(0)
      first() {
        return this.#first
      }
    }
    const parent = new Parent()
    expect(names(parent)).toEqual(['child.weight', 'list.0.weight'])
    expect(names(parent.child)).toEqual(['weight'])
  })

  test('layers that a constructor made and dropped raise no alarm', () => {
    class Drops extends Module {
      readonly weight: Tensor
      readonly #note = '#'
      constructor() {
        super()
        this.weight = parameter(layer().weight)
      }
      note() {
        return this.#note
      }
    }
    expect(new SGD(new Drops().parameters(), { lr: 1 })).toBeDefined()
  })

  test('are looked at once', () => {
    class Model extends Module {
      readonly layer = layer()
      #late: Linear | null = null
      later() {
        this.#late = layer()
        return this.#late
      }
    }
    const model = new Model()
    model.parameters()
    model.later()
    expect(model.parameters()).toHaveLength(1)
  })
})
