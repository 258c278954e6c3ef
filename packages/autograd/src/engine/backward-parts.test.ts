/** A backward pass in two parts: the nodes of each part, and that both together equal one pass. `programs.test.ts` runs random programs so. */
import { describe, expect, test } from '@jest/globals'
import { manualSeed, rand, type Tensor, tensor } from '@postgrad/tensor'
import { CPU } from '@postgrad/tensor/internal'
import * as F from '../index.js'
import { type Edge, type GradSink, Node, rootEdge, setHistory } from '../internal.js'
import { type BackwardParts, backwardInputs, backwardInto, backwardRest } from './backward-parts.js'

const bits = (t: Tensor | null) => (t === null ? null : Buffer.from(t.dataSync().slice().buffer).toString('hex'))

class Found implements GradSink {
  readonly grads = new Map<Tensor, string | null>()
  accumulate(variable: Tensor, grad: Tensor): void {
    this.grads.set(variable, bits(grad))
  }
}

/** An operation y = a + b of the test's own, that notes which of its gradients are asked for. */
class Probe extends Node {
  readonly asked: string[] = []
  released = 0
  readonly name = 'Probe'
  readonly apart: boolean

  constructor(edges: readonly Edge[], apart: boolean) {
    super(edges, [{ shape: [], dtype: 'float32', memory: CPU }])
    this.apart = apart
  }

  override get computesApart(): boolean {
    return this.apart
  }

  apply([grad]: readonly (Tensor | null)[], pass: Parameters<Node['apply']>[1]): readonly (Tensor | null)[] {
    const wanted = this.nextEdges.map((edge) => pass.needed === null || pass.needed.has(edge!.node))
    this.asked.push(wanted.map((one) => (one ? '1' : '0')).join(''))
    return wanted.map((one) => (one ? grad! : null))
  }

  override release(): void {
    this.released++
  }
}

function probed(apart: boolean) {
  const [x, w] = [tensor(2, { requiresGrad: true }), tensor(3, { requiresGrad: true })]
  const y = tensor(5)
  const probe = new Probe([rootEdge(x), rootEdge(w)], apart)
  setHistory(y, probe, 0)
  return { x, w, y, probe }
}

const finish = (parts: BackwardParts) => {
  const found = new Found()
  backwardRest([parts], found)
  return { inputs: parts.inputGrads.map(bits), rest: found.grads }
}

describe('what runs when', () => {
  test('a node that computes apart is asked for one gradient at a time, and keeps what it saved between the parts', () => {
    const { x, w, y, probe } = probed(true)
    const parts = backwardInputs([y], undefined, [x])
    expect([probe.asked, probe.released]).toEqual([['10'], 0])
    const { inputs, rest } = finish(parts)
    expect([probe.asked, probe.released]).toEqual([['10', '01'], 1])
    expect([inputs, rest]).toEqual([[bits(tensor(1))], new Map([[w, bits(tensor(1))]])])
  })

  test.each(['cannot', 'has a hook'])('one that %s computes once, in the first part', (why) => {
    const { x, w, y, probe } = probed(why === 'has a hook')
    let hooked = 0
    if (why === 'has a hook') probe.registerHook(() => void hooked++)
    const parts = backwardInputs([y], undefined, [x])
    expect([probe.asked, probe.released]).toEqual([['11'], 1])
    expect(finish(parts).rest).toEqual(new Map([[w, bits(tensor(1))]]))
    expect([probe.asked, hooked]).toEqual([['11'], why === 'has a hook' ? 1 : 0])
  })

  test('no input: everything is in the second part', () => {
    const { w, x, y, probe } = probed(true)
    const parts = backwardInputs([y], undefined, [])
    expect(probe.asked).toEqual([])
    expect(finish(parts).rest).toEqual(new Map([x, w].map((leaf) => [leaf, bits(tensor(1))])))
  })

  test('an input that the roots do not depend on has none', () => {
    const { x, y } = probed(true)
    const other = tensor(1, { requiresGrad: true })
    expect(finish(backwardInputs([y], undefined, [x, other])).inputs).toEqual([bits(tensor(1)), null])
  })

  test('grad(…) computes no gradient that nobody asked for', () => {
    const { x, y, probe } = probed(true)
    F.grad(y, [x])
    expect(probe.asked).toEqual(['10'])
  })
})

describe('nets', () => {
  const leaves = (...shapes: number[][]) => shapes.map((shape) => rand(shape).sub(0.5).requiresGrad_())
  const scaled = F.defineFunction({
    name: 'Scaled',
    forward: (ctx: F.FunctionContext, x: Tensor, w: Tensor) => {
      ctx.saveForBackward(x, w)
      return x.mul(w)
    },
    backward: (ctx, g: Tensor) => [g.mul(ctx.savedTensors[1]!), g.mul(ctx.savedTensors[0]!)],
  })
  const NETS: Readonly<Record<string, () => [roots: Tensor[], grads: Tensor[] | undefined, inputs: Tensor[], params: Tensor[]]>> = {
    'residuals, a weight in both parts, a norm': () => {
      const [x, w, v, g, b] = leaves([4, 6], [6, 6], [6], [6], [6]) as [Tensor, Tensor, Tensor, Tensor, Tensor]
      const h = x.add(F.linear(x, w, v).relu())
      const norm = F.layerNorm(h, [6], g, b)
      return [
        [
          norm
            .add(F.linear(norm, w, v))
            .mul(v.mul(v))
            .square()
            .mean(),
        ],
        undefined,
        [x],
        [w, v, g, b],
      ]
    },
    'two outputs with gradients, one that no input reaches': () => {
      const [x, w] = leaves([3, 3], [3, 3]) as [Tensor, Tensor]
      return [[x.matmul(w), w.tanh()], leaves([3, 3], [3, 3]).map((t) => t.detach()), [x], [w]]
    },
    'a custom function and a hook': () => {
      const [x, w] = leaves([3, 3], [3, 3]) as [Tensor, Tensor]
      const y = scaled(x, w)
      y.registerHook((g) => g.mul(2))
      return [[y.matmul(w).sum()], undefined, [x], [w]]
    },
    'a checkpoint': () => {
      const [x, w, v] = leaves([3, 3], [3, 3], [3, 3]) as [Tensor, Tensor, Tensor]
      return [[F.checkpoint((t: Tensor) => t.matmul(w).gelu().matmul(v), x).sum()], undefined, [x], [w, v]]
    },
    'a convolution, a batch norm': () => {
      const [x, w, b, g, s] = leaves([2, 2, 5, 5], [3, 2, 3, 3], [3], [3], [3]) as [Tensor, Tensor, Tensor, Tensor, Tensor]
      const y = F.batchNorm(F.conv2d(x, w, b), null, null, g, s, { training: true })
      return [[y.square().sum()], undefined, [x], [w, b, g, s]]
    },
  }

  test.each(Object.keys(NETS))('%s: the bits of one pass', (name) => {
    manualSeed(3)
    const [roots, grads, inputs, params] = NETS[name]!()
    const whole = new Found()
    backwardInto(whole, roots, grads)
    manualSeed(3)
    const again = NETS[name]!()
    const { inputs: found, rest } = finish(backwardInputs(again[0], again[1], again[2]))
    expect(found).toEqual(inputs.map((input) => whole.grads.get(input)))
    expect(again[3].map((param) => rest.get(param))).toEqual(params.map((param) => whole.grads.get(param)))
    expect(rest.size).toBe(params.length)
  })
})
