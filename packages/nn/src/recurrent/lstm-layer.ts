/**
 * One layer of an LSTM over all steps, as one node with its derivative written out (`step-math.ts` says why). `lstm.ts` computes the part of
 * the gates that does not wait for h.
 *
 *     a = x W_ihᵀ + b + h W_hhᵀ                      a = [a₀ a₁ a₂ a₃], the gates side by side in PyTorch's order
 *     i, f, g, o = σ(a₀), σ(a₁), tanh(a₂), σ(a₃)
 *     c' = f c + i g
 *     h' = o tanh(c')
 */
import { isGradEnabled, stack } from '@postgrad/autograd'
import { defineInnerFunction } from '@postgrad/autograd/internal'
import { Tensor } from '@postgrad/tensor'
import { binaryInto, cellInto, gradInto, matmulInto, raw, unaryInto } from '@postgrad/tensor/internal'
import { flatSteps, inPlaces, part, recordedGradients, States, stepOrder } from './step-math.js'

/** Steps as recorded operations. */
function recordedSteps(inputs: Tensor, weightHh: Tensor, h0: Tensor, c0: Tensor, reverse: boolean): readonly [output: Tensor, c: Tensor] {
  const width = c0.shape[1]!
  const order = stepOrder(inputs.shape[0]!, reverse)
  let [h, c] = [h0, c0]
  const hs = order.map((t) => {
    const a = inputs.select(0, t).add(h.matmul(weightHh.T))
    const gate = (k: number) => a.narrow(1, k * width, width)
    c = gate(1)
      .sigmoid()
      .mul(c)
      .add(gate(0).sigmoid().mul(gate(2).tanh()))
    h = gate(3).sigmoid().mul(c.tanh())
    return h
  })
  return [stack(inPlaces(hs, order)), c]
}

/**
 * inputs [T, N, 4H], the gates' part from below; weightHh [4H, H]; h, c [N, H]; reverse: from the last step to the first
 * → h after every step [T, N, H], c after the one that was taken last [N, H]
 */
export const lstmLayer = defineInnerFunction({
  name: 'LstmLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, h: Tensor, c: Tensor, reverse: boolean): readonly [output: Tensor, c: Tensor] => {
    const [length, batch, width] = [inputs.shape[0]!, c.shape[0]!, c.shape[1]!]
    // A copy, once: every step would make its own of a transpose.
    const recurrent = raw.contiguous(weightHh.T)
    const hs = States.from(h, length, reverse)
    const cs = States.from(c, length, reverse)
    /** i, f, g, o of each step, and tanh(c'). */
    const made = Tensor.uninitialized(c.dtype, [length, 5, batch, width], c.storage.memory)
    const a = Tensor.uninitialized(c.dtype, [batch, 4 * width], c.storage.memory)
    const gates = [0, 1, 2, 3].map((k) => part(a, k, width))
    const product = Tensor.uninitialized(c.dtype, [batch, width], c.storage.memory)
    for (const t of stepOrder(length, reverse)) {
      matmulInto(hs.before(t), recurrent, a)
      const [x, step] = [raw.select(inputs, 0, t), raw.select(made, 0, t)]
      if (cellInto('lstmCell', a, x, cs.before(t), step, cs.after(t), hs.after(t))) continue
      const [i, f, g, o, squashed] = parts(step)
      binaryInto('add', a, x, a)
      unaryInto('sigmoid', gates[0]!, i)
      unaryInto('sigmoid', gates[1]!, f)
      unaryInto('tanh', gates[2]!, g)
      unaryInto('sigmoid', gates[3]!, o)
      const next = cs.after(t)
      binaryInto('mul', f, cs.before(t), next)
      binaryInto('mul', i, g, product)
      binaryInto('add', next, product, next)
      unaryInto('tanh', next, squashed)
      binaryInto('mul', o, squashed, hs.after(t))
    }
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, h, c)
      ctx.saveOwn(hs.all, cs.all, made)
      ctx.state = reverse
    }
    // Copies: users may write into them, and they would keep the memory of all steps.
    return [raw.clone(hs.allAfter), raw.clone(cs.last)]
  },
  backward: (ctx, dOutput: Tensor, dLast: Tensor) => {
    const [inputs, weightHh, h0, c0, allHs, allCs, made] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
    const reverse = ctx.state as boolean
    if (isGradEnabled()) {
      return [
        ...recordedGradients((...args) => recordedSteps(...(args as Four), reverse), [inputs, weightHh, h0, c0], [dOutput, dLast]),
        null,
      ]
    }
    const [length, batch, width] = dOutput.shape as readonly [number, number, number]
    const hs = new States(allHs, reverse)
    const cs = new States(allCs, reverse)
    const dGates = Tensor.uninitialized(c0.dtype, [length, batch, 4 * width], c0.storage.memory)
    const dh = Tensor.empty(c0.dtype, c0.shape, c0.storage.memory)
    const dc = raw.clone(dLast)
    const dense = raw.contiguous(dOutput)
    const d = Tensor.uninitialized(c0.dtype, c0.shape, c0.storage.memory)
    for (const t of stepOrder(length, !reverse)) {
      const [dA, grad, step] = [raw.select(dGates, 0, t), raw.select(dense, 0, t), raw.select(made, 0, t)]
      if (cellInto('lstmCellBackward', grad, dh, step, cs.before(t), dc, dA)) {
        matmulInto(dA, weightHh, dh)
        continue
      }
      const [i, f, g, o, squashed] = parts(step)
      binaryInto('add', dh, grad, dh)
      // Each gate: the gradient of its value, then of what went into it, to its place in dA.
      binaryInto('mul', dh, squashed, d)
      gradInto('sigmoidBackward', d, o, d)
      raw.copy_(part(dA, 3, width), d)
      binaryInto('mul', dh, o, d)
      gradInto('tanhBackward', d, squashed, d)
      binaryInto('add', dc, d, dc)
      binaryInto('mul', dc, g, d)
      gradInto('sigmoidBackward', d, i, d)
      raw.copy_(part(dA, 0, width), d)
      binaryInto('mul', dc, cs.before(t), d)
      gradInto('sigmoidBackward', d, f, d)
      raw.copy_(part(dA, 1, width), d)
      binaryInto('mul', dc, i, d)
      gradInto('tanhBackward', d, g, d)
      raw.copy_(part(dA, 2, width), d)
      binaryInto('mul', dc, f, dc)
      matmulInto(dA, weightHh, dh)
    }
    const dWeight = raw.matmul(flatSteps(dGates).T, flatSteps(hs.allBefore))
    return [dGates, dWeight, dh, dc, null]
  },
})

type Four = [Tensor, Tensor, Tensor, Tensor]

/** Those of one step, [N, H] each. */
function parts(step: Tensor): [i: Tensor, f: Tensor, g: Tensor, o: Tensor, squashed: Tensor] {
  const of = (k: number) => raw.select(step, 0, k)
  return [of(0), of(1), of(2), of(3), of(4)]
}
