/** A Module's tree and buffers, and hooks around forward. */
import { describe, expect, test } from '@jest/globals'
import { grad, noGrad } from '@postgrad/autograd'
import { full, isTensor, ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import {
  Dropout,
  Flatten,
  type FullBackwardHook,
  Identity,
  Linear,
  LSTM,
  Module,
  ModuleDict,
  ModuleList,
  ParameterList,
  parameter,
  ReLU,
  Sequential,
  type StateDict,
} from '../index.js'

const values = (t: Tensor | null) => Array.from(t!.dataSync())
const code = (expected: string) => expect.objectContaining({ code: expected })

class Plus extends Module {
  forward(x: Tensor, y: Tensor): Tensor {
    return x.add(y)
  }
}

class Normalized extends Module {
  readonly scale = parameter(ones([2]))
  readonly mean = this.registerBuffer('mean', zeros([2]))
  readonly scratch = this.registerBuffer('scratch', zeros([2]), { persistent: false })
  readonly constant = ones([2])
  readonly inner = new Linear(2, 2, { bias: false })

  forward(x: Tensor): Tensor {
    return this.inner.forward(x.sub(this.mean).mul(this.scale))
  }
}

describe('buffers', () => {
  test('are found by name, apart from parameters; those that do not persist are in no state dict', () => {
    const module = new Sequential(new Normalized())
    expect(module.namedBuffers().map(([name]) => name)).toEqual(['0.mean', '0.scratch'])
    expect(module.namedParameters().map(([name]) => name)).toEqual(['0.scale', '0.inner.weight'])
    expect(Object.keys(module.stateDict())).toEqual(['0.scale', '0.mean', '0.inner.weight'])
    expect(module.getBuffer('0.mean')).toBe((module.at(0) as Normalized).mean)
    module.loadStateDict({ '0.scale': ones([2]), '0.mean': full([2], 3), '0.inner.weight': ones([2, 2]) })
    expect(values(module.getBuffer('0.mean'))).toEqual([3, 3])
  })

  test('a field that gets another tensor is not remembered with the old one', () => {
    const module = new Normalized()
    const fresh = parameter(full([2], 5))
    Object.assign(module, { scale: fresh, mean: full([2], 7) })
    expect(module.parameters()[0]).toBe(fresh)
    expect(values(module.buffers()[0]!)).toEqual([7, 7])
  })
})

describe('the tree', () => {
  const shared = new Linear(1, 1)
  const tree = () => new Sequential(new Linear(2, 3), new Sequential(new ReLU(), shared), shared)

  test('modules, children and their names, each module once', () => {
    const model = tree()
    expect(model.namedModules().map(([name]) => name)).toEqual(['', '0', '1', '1.0', '1.1'])
    expect(model.modules().length).toBe(5)
    expect(model.namedChildren().map(([name]) => name)).toEqual(['0', '1', '2'])
    expect(model.children()[1]).toBe(model.at(1))
    expect(Object.keys(model.stateDict())).toEqual(['0.weight', '0.bias', '1.1.weight', '1.1.bias', '2.weight', '2.bias'])
  })

  test('prefix and recurse', () => {
    const model = new Normalized()
    expect(model.namedParameters({ prefix: 'm', recurse: false }).map(([name]) => name)).toEqual(['m.scale'])
    expect(model.parameters({ recurse: false }).length).toBe(1)
  })

  test('getParameter and getSubmodule, and what they refuse', () => {
    const model = tree()
    expect(model.getSubmodule('1.1')).toBe(shared)
    expect(model.getSubmodule('')).toBe(model)
    expect(model.getParameter('2.bias')).toBe(shared.bias)
    expect(() => model.getParameter('2.gain')).toThrow(code('NO_SUCH_MEMBER'))
    expect(() => model.getSubmodule('7')).toThrow(code('NO_SUCH_MEMBER'))
    expect(() => model.getBuffer('mean')).toThrow(code('NO_SUCH_MEMBER'))
  })

  test('a cycle ends every walk', () => {
    const [a, b] = [new ModuleDict(), new ModuleDict()]
    a.set('b', b)
    b.set('a', a).set('layer', new Linear(1, 1, { bias: false }))
    expect(a.parameters().length).toBe(1)
    expect(Object.keys(a.stateDict())).toEqual(['b.layer.weight'])
    expect(a.eval().training).toBe(false)
    expect(a.namedModules().map(([name]) => name)).toEqual(['', 'b', 'b.layer'])
  })

  test('apply goes from the leaves up; requiresGrad_ and zeroGrad reach all', () => {
    const model = tree()
    const seen: string[] = []
    model.apply((module) => seen.push(module.constructor.name))
    expect(seen).toEqual(['Linear', 'ReLU', 'Linear', 'Sequential', 'Linear', 'Sequential'])
    expect(
      model
        .requiresGrad_(false)
        .parameters()
        .every((p) => !p.requiresGrad),
    ).toBe(true)
    model.requiresGrad_()
    for (const p of model.parameters()) p.grad = zeros(p.shape)
    model.zeroGrad()
    expect(model.parameters().every((p) => p.grad === null)).toBe(true)
  })

  test('to converts parameters and buffers, keeps what is shared, and refuses integers', () => {
    const model = tree().to('float64')
    expect(model.parameters().every((p) => p.dtype === 'float64' && p.isLeaf && p.requiresGrad)).toBe(true)
    expect((model.at(1) as Sequential).at(1)).toBe(model.at(2))
    const tied = new ParameterList([ones([1])])
    tied.append(tied.at(0))
    tied.to('float64')
    expect(tied.at(0)).toBe(tied.at(1))
    const frozen = new Normalized()
    frozen.scale.requiresGrad_(false)
    frozen.to('float64')
    expect([frozen.scale.requiresGrad, frozen.mean.dtype, frozen.constant.dtype]).toEqual([false, 'float64', 'float32'])
    expect(frozen.namedParameters().map(([name]) => name)).toEqual(['scale', 'inner.weight'])
    expect(new LSTM(1, 1).to('float64').forward(ones([1, 1, 1], { dtype: 'float64' }))[0].dtype).toBe('float64')
    expect(() => model.to('int32')).toThrow(code('DTYPE_MISMATCH'))
  })

  test('a module that overrides train is asked', () => {
    class Frozen extends Linear {
      override train(): this {
        return super.train(false)
      }
    }
    const model = new Sequential(new Sequential(new Frozen(1, 1)), new ReLU()).train()
    expect([model.training, model.at(0).training, (model.at(0) as Sequential).at(0).training]).toEqual([true, true, false])
  })

  test('toString as PyTorch writes it', () => {
    const model = new Sequential(new Linear(4, 2), new Sequential(new Dropout(0.1), new ReLU()))
    expect(String(model)).toBe(`Sequential(
  (0): Linear(inFeatures=4, outFeatures=2, bias=true)
  (1): Sequential(
    (0): Dropout(p=0.1)
    (1): ReLU()
  )
)`)
    expect(String(new LSTM(2, 3, { bidirectional: true }))).toBe(
      'LSTM(inputSize=2, hiddenSize=3, numLayers=1, bias=true, batchFirst=false, dropout=0, bidirectional=true)',
    )
  })
})

test.each<[string, unknown]>([
  ['null', null],
  ['a promise that was not awaited', Promise.resolve({})],
  ['values that are no tensors', { weight: [[1]], bias: zeros([1]) }],
])('loadStateDict refuses %s, strict or not', (_, state) => {
  const layer = new Linear(1, 1)
  for (const strict of [true, false]) {
    expect(() => layer.loadStateDict(state as StateDict, { strict })).toThrow(code('INVALID_ARGUMENT'))
  }
})

describe('loadStateDict that is not strict', () => {
  test('loads what fits and returns the rest', () => {
    const layer = new Linear(1, 1)
    const difference = layer.loadStateDict({ weight: full([1, 1], 9), other: zeros([1]) }, { strict: false })
    expect(difference).toEqual({ missingKeys: ['bias'], unexpectedKeys: ['other'] })
    expect(values(layer.weight)).toEqual([9])
    expect(layer.loadStateDict(layer.stateDict())).toEqual({ missingKeys: [], unexpectedKeys: [] })
  })

  test('refuses other shapes all the same, and loads nothing then', () => {
    const layer = new Linear(1, 1)
    const before = values(layer.bias)
    const wrong = { weight: zeros([2, 1]), bias: full([1], 4) }
    expect(() => layer.loadStateDict(wrong, { strict: false })).toThrow(code('STATE_DICT_MISMATCH'))
    // Names that it may lack are not the reason.
    const reasons = { missing: [], unexpected: [], shapes: [expect.stringContaining('weight is ')] }
    expect(() => layer.loadStateDict({ weight: wrong.weight!, more: zeros([1]) }, { strict: false })).toThrow(
      expect.objectContaining({ values: reasons }),
    )
    expect(values(layer.bias)).toEqual(before)
  })
})

describe('containers', () => {
  test('ModuleList, ModuleDict and ParameterList: names, places, changes', () => {
    class Model extends Module {
      readonly list = new ModuleList([new Linear(1, 1, { bias: false })]).append(new Linear(1, 1, { bias: false }))
      readonly dict = new ModuleDict<Linear>({ first: new Linear(1, 1, { bias: false }) })
      readonly free = new ParameterList([ones([1])])
    }
    const model = new Model()
    model.dict.set('second', new Linear(1, 1, { bias: false }))
    expect(model.namedParameters().map(([name]) => name)).toEqual([
      'list.0.weight',
      'list.1.weight',
      'dict.first.weight',
      'dict.second.weight',
      'free.0',
    ])
    expect([...model.list].length).toBe(2)
    expect(model.list.at(-1)).toBe(model.list.at(1))
    expect(model.dict.get('second')).toBe([...model.dict][1]![1])
    expect([...model.dict.keys()]).toEqual(['first', 'second'])
    expect([...model.dict.values()]).toEqual([model.dict.get('first'), model.dict.get('second')])
    expect([...model.dict.entries()]).toEqual([...model.dict])
    expect([model.dict.has('first'), model.dict.delete('first'), model.dict.size]).toEqual([true, true, 1])
    expect(model.free.at(0).requiresGrad).toBe(true)
    expect(() => model.list.at(2)).toThrow(code('INDEX_OUT_OF_RANGE'))
    expect(() => model.dict.get('third')).toThrow(code('NO_SUCH_MEMBER'))
  })

  test('Sequential can be walked and grows', () => {
    const model = new Sequential(new Linear(2, 2)).append(new ReLU())
    expect([...model].length).toBe(2)
    expect(model.length).toBe(2)
    expect(model.at(-1)).toBeInstanceOf(ReLU)
    expect(values(model.forward(ones([1, 2]))).every((v) => v >= 0)).toBe(true)
    expect(() => model.at(2)).toThrow(code('INDEX_OUT_OF_RANGE'))
  })
})

describe('hooks', () => {
  class Double extends Module {
    forward(x: Tensor, by = 2): Tensor {
      return x.mul(by)
    }
  }

  test('before and after forward, in order, also when a container calls it; taken off, nothing is left', () => {
    const inner = new Double()
    const model = new Sequential(inner)
    const handles = [
      inner.registerForwardPreHook((module, [x]) => {
        expect(module).toBe(inner)
        return (x as Tensor).add(1)
      }),
      inner.registerForwardPreHook((_, [x]) => [x, 10]),
      inner.registerForwardHook((_, args, output) => {
        expect(args[1]).toBe(10)
        return (output as Tensor).neg()
      }),
      inner.registerForwardHook(() => undefined),
    ]
    expect(values(model.forward(ones([1])))).toEqual([-20])
    handles[1]!.remove()
    handles[1]!.remove()
    handles[2]!.remove()
    expect(values(model.forward(ones([1])))).toEqual([4])
    for (const handle of handles) handle.remove()
    expect(values(model.forward(ones([1])))).toEqual([2])
    expect(Object.hasOwn(inner, 'forward')).toBe(false)
  })

  test('one hook registered twice runs twice, and is taken off once at a time', () => {
    const module = new Double()
    const hook = (_: Module, __: readonly unknown[], y: unknown) => (y as Tensor).add(1)
    const [first] = [module.registerForwardHook(hook), module.registerForwardHook(hook)]
    expect(values(module.forward(ones([1])))).toEqual([4])
    first!.remove()
    expect(values(module.forward(ones([1])))).toEqual([3])
  })

  test('around an async forward, and one that is an arrow function in a field', async () => {
    class Later extends Module {
      readonly forward = async (x: Tensor): Promise<Tensor> => {
        await null
        return x.mul(3)
      }
    }
    const module = new Later()
    const own = module.forward
    const handle = module.registerForwardHook((_, __, output) => (output as Tensor).add(1))
    expect(values(await module.forward(ones([1])))).toEqual([4])
    handle.remove()
    expect(module.forward).toBe(own)
  })

  test('a backward hook sees the gradients of arguments and results, and may change the former', () => {
    const module = new Double()
    const seen: unknown[] = []
    const handle = module.registerFullBackwardHook((of, gradInputs, gradOutputs) => {
      expect(of).toBe(module)
      seen.push([gradInputs.map((g) => g && values(g)), gradOutputs.map((g) => g && values(g))])
      return gradInputs.map((g) => g?.mul(10) ?? null)
    })
    const x = tensor([1, 2], { requiresGrad: true })
    const y = module.forward(x, 3)
    expect(y.requiresGrad).toBe(true)
    expect(values(grad(y, [x], { gradOutputs: [tensor([1, 5])] })[0]!)).toEqual([30, 150])
    expect(seen).toEqual([[[[3, 15], null], [[1, 5]]]])
    handle.remove()
    expect(values(grad(module.forward(x, 3), [x], { gradOutputs: [tensor([1, 5])] })[0]!)).toEqual([3, 15])
  })

  test('a module with a backward hook that returns its input, or a view of it, refuses the old value after a write into the input', () => {
    for (const module of [new Identity(), new Flatten()]) {
      const start = tensor([[1, 2]], { requiresGrad: true })
      const run = () => {
        const x = start.mul(1)
        const y = module.forward(x)
        x.mul_(3)
        return y.sum()
      }
      run().backward()
      expect(values(start.grad)).toEqual([3, 3])
      const handle = module.registerFullBackwardHook(() => undefined)
      expect(run).toThrow(code('INPLACE_ON_VIEW'))
      expect(run).toThrow(/a module with a backward hook/)
      expect(() => module.forward(start.mul(1)).mul_(3)).toThrow(/a module with a backward hook\. clone\(\) it first/)
      handle.remove()
      expect(run().requiresGrad).toBe(true)
    }
  })

  test('a backward hook that writes into the gradients it is given changes those of the arguments of its module alone', () => {
    const scale = (grads: readonly (Tensor | null)[]): undefined => {
      for (const g of grads) g?.mul_(100)
    }
    const cases: [factor: number, FullBackwardHook<Module>][] = [
      [100, (_, gradInputs) => scale(gradInputs)],
      [100, (_, gradInputs) => scale(gradInputs) ?? gradInputs],
      [1, (_, __, gradOutputs) => scale(gradOutputs)],
    ]
    for (const [factor, hook] of cases) {
      for (const which of [0, 1]) {
        const leaves = [tensor([1, 2], { requiresGrad: true }), tensor([3, 4], { requiresGrad: true })]
        const terms = leaves.map((leaf, i) => {
          const module = new Identity()
          if (i === which) module.registerFullBackwardHook(hook)
          return module.forward(leaf)
        })
        terms[0]!
          .add(terms[1]!)
          .mul(tensor([1, 2]))
          .sum()
          .backward()
        expect(values(leaves[which]!.grad)).toEqual([factor, 2 * factor])
        expect(values(leaves[1 - which]!.grad)).toEqual([1, 2])
      }
    }
    // Both arguments of an addition have one gradient.
    const module = new Plus()
    module.registerFullBackwardHook((_, [first]) => scale([first!]))
    const [x, y] = [tensor([1, 2], { requiresGrad: true }), tensor([3, 4], { requiresGrad: true })]
    module.forward(x, y).sum().backward()
    expect([values(x.grad), values(y.grad)]).toEqual([
      [100, 100],
      [1, 1],
    ])
  })

  test('a backward hook runs once in a double backward: the pass over the gradient does not go through the results', () => {
    class Square extends Module {
      forward(x: Tensor): Tensor {
        return x.mul(x).mul(x)
      }
    }
    const module = new Square()
    let calls = 0
    module.registerFullBackwardHook((_, gradInputs) => {
      calls++
      return gradInputs.map((g) => g?.mul(10) ?? null)
    })
    const x = tensor([2], { requiresGrad: true })
    const [first] = grad(module.forward(x), [x], { createGraph: true })
    expect([values(first!), calls]).toEqual([[120], 1])
    expect([values(grad(first!.sum(), [x], { retainGraph: true })[0]!), calls]).toEqual([[120], 1])
    expect([values(grad(first!.sum(), [x])[0]!), calls]).toEqual([[120], 1])
  })

  test('a backward hook is given the gradients of the pass that runs it', () => {
    class Scaled extends Module {
      readonly w = parameter(full([1], 3))
      forward(x: Tensor): Tensor {
        return x.mul(this.w)
      }
    }
    const module = new Scaled()
    let calls = 0
    module.registerFullBackwardHook((_, gradInputs) => {
      calls++
      return gradInputs.map((g) => g?.mul(10) ?? null)
    })
    const x = tensor([2], { requiresGrad: true })
    // The first pass goes through the results and not to the inputs, the second one the other way round.
    const [first] = grad(module.forward(x.mul(4)).sum(), [module.w], { createGraph: true })
    expect([values(grad(first!.sum(), [x])[0]!), calls]).toEqual([[4], 0])
  })

  test('a backward hook of results in arrays and objects, to any depth, and of none that it finds', () => {
    const seen: unknown[] = []
    const watch = <M extends Module & { forward(x: Tensor): unknown }>(module: M): M => {
      module.registerFullBackwardHook((_, gradInputs, gradOutputs) => {
        seen.push([gradInputs.length, gradOutputs.map((g) => g && values(g))])
        return gradInputs.map((g) => g?.mul(10) ?? null)
      })
      return module
    }
    class Wrapped<T> extends Module {
      readonly wrap: (y: Tensor) => T
      constructor(wrap: (y: Tensor) => T) {
        super()
        this.wrap = wrap
      }
      forward(x: Tensor): T {
        return this.wrap(x.mul(2))
      }
    }
    const run = (of: (x: Tensor) => Tensor) => {
      const x = tensor([1], { requiresGrad: true })
      of(x).sum().backward()
      return [values(x.grad), seen.splice(0)]
    }
    const flat = watch(new Wrapped((y) => ({ y, count: 3, plain: ones([1]) })))
    expect(run((x) => flat.forward(x).y)).toEqual([[20], [[1, [[1], null, null]]]])
    expect(flat.forward(ones([1])).count).toBe(3)
    const deep = watch(new Wrapped((y) => [[y, { z: y.mul(3) }], y] as const))
    expect(run((x) => deep.forward(x)[0][1].z)).toEqual([[60], [[1, [[0], [1], [0]]]]])
    class Own {
      readonly y: Tensor
      constructor(y: Tensor) {
        this.y = y
      }
    }
    const hidden = watch(new Wrapped((y) => new Own(y)))
    expect(run((x) => hidden.forward(x).y)).toEqual([[20], [[1, []]]])
    const circle = watch(
      new Wrapped((y) => {
        const result: { y: Tensor; self: object } = { y, self: {} }
        result.self = result
        return result
      }),
    )
    const result = circle.forward(ones([1]).requiresGrad_())
    expect(result.self).toBe(result)
    const lstm = new LSTM(1, 1)
    let calls = 0
    lstm.registerFullBackwardHook((_, __, gradOutputs) => {
      calls += gradOutputs.length
      return undefined
    })
    lstm
      .forward(ones([2, 1, 1]))[1][0]
      .sum()
      .backward()
    expect(calls).toBe(3)
  })

  test('a backward hook of several results, of inputs without a gradient, and under noGrad', () => {
    class Halves extends Module {
      readonly gain = parameter(ones([1]))
      forward(x: Tensor): Tensor[] {
        return [x.mul(this.gain), x.mul(2)]
      }
    }
    const module = new Halves()
    const calls: (number[] | null)[][] = []
    module.registerFullBackwardHook((_, gradInputs, gradOutputs) => {
      calls.push([...gradInputs, ...gradOutputs].map((g) => g && values(g)))
      return undefined
    })
    const [a] = module.forward(full([1], 4))
    a!.backward()
    expect(values(module.gain.grad)).toEqual([4])
    // The second result requires no grad, so it has none.
    expect(calls).toEqual([[null, [1], null]])
    expect(noGrad(() => module.forward(ones([1])))[0]!.requiresGrad).toBe(false)
    expect(calls.length).toBe(1)
    const x = full([1], 4).requiresGrad_()
    const [b, c] = module.forward(x)
    b!.add(c!).backward()
    expect(values(x.grad)).toEqual([3])
    expect(calls[1]).toEqual([[3], [1], [1]])
    expect(isTensor(b)).toBe(true)
  })
})

describe('arguments', () => {
  test.each([
    () => new Linear(-1, 2),
    () => new Linear(1.5, 2),
    () => new LSTM(2, 0),
    () => new LSTM(2, 2, { numLayers: 0 }),
    () => new LSTM(0, 2),
    () => new LSTM(2, 2, { dropout: 2 }),
  ])('%s', (fn) => {
    expect(fn).toThrow(code('INVALID_ARGUMENT'))
  })

  test('parameters are of floating point', () => {
    expect(() => new Linear(1, 1, { dtype: 'int32' })).toThrow(code('DTYPE_MISMATCH'))
  })
})
