/**
 * One layer of a GRU over all steps, as one node with its derivative written out (`step-math.ts` says why).
 *
 *     a = x W_ihᵀ + b         u = h W_hhᵀ             [a₀ a₁ a₂] and [u₀ u₁ u₂], the gates side by side in PyTorch's order
 *     r, z = σ(a₀ + u₀), σ(a₁ + u₁)
 *     q = u₂ + b_hn
 *     n = tanh(a₂ + r q)
 *     h' = n + z (h − n)
 *
 * b holds all biases but the recurrent one of n, which r scales.
 */
import { isGradEnabled, stack } from '@postgrad/autograd'
import { defineInnerFunction } from '@postgrad/autograd/internal'
import { Tensor } from '@postgrad/tensor'
import { binaryInto, cellInto, gradInto, matmulInto, raw, unaryInto } from '@postgrad/tensor/internal'
import { flatSteps, inPlaces, part, recordedGradients, States, stepOrder } from './step-math.js'

/** Steps as recorded operations. */
function recordedSteps(inputs: Tensor, weightHh: Tensor, bias: Tensor, h0: Tensor, reverse: boolean): Tensor {
  const width = h0.shape[1]!
  const order = stepOrder(inputs.shape[0]!, reverse)
  let h = h0
  const hs = order.map((t) => {
    const a = inputs.select(0, t)
    const u = h.matmul(weightHh.T)
    const gate = (x: Tensor, k: number) => x.narrow(1, k * width, width)
    const r = gate(a, 0).add(gate(u, 0)).sigmoid()
    const z = gate(a, 1).add(gate(u, 1)).sigmoid()
    const n = gate(a, 2)
      .add(r.mul(gate(u, 2).add(bias)))
      .tanh()
    h = n.add(z.mul(h.sub(n)))
    return h
  })
  return stack(inPlaces(hs, order))
}

/**
 * inputs [T, N, 3H], the gates' part from below; weightHh [3H, H]; bias [H], b_hn; h [N, H]; reverse: from the last step to the first
 * → h after every step [T, N, H]
 */
export const gruLayer = defineInnerFunction({
  name: 'GruLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, bias: Tensor, h: Tensor, reverse: boolean): Tensor => {
    const [length, batch, width] = [inputs.shape[0]!, h.shape[0]!, h.shape[1]!]
    const recurrent = raw.contiguous(weightHh.T)
    const hs = States.from(h, length, reverse)
    /** r, z, q, n of each step. */
    const made = Tensor.uninitialized(h.dtype, [length, 4, batch, width], h.storage.memory)
    const u = Tensor.uninitialized(h.dtype, [batch, 3 * width], h.storage.memory)
    const dense = raw.contiguous(bias)
    const rows = raw.expand(bias, [batch, width])
    for (const t of stepOrder(length, reverse)) {
      const [a, step] = [raw.select(inputs, 0, t), raw.select(made, 0, t)]
      matmulInto(hs.before(t), recurrent, u)
      if (cellInto('gruCell', u, a, dense, hs.before(t), step, hs.after(t))) continue
      const [r, z, q, n] = parts(step)
      binaryInto('add', part(a, 0, width), part(u, 0, width), r)
      unaryInto('sigmoid', r, r)
      binaryInto('add', part(a, 1, width), part(u, 1, width), z)
      unaryInto('sigmoid', z, z)
      binaryInto('add', part(u, 2, width), rows, q)
      binaryInto('mul', r, q, n)
      binaryInto('add', n, part(a, 2, width), n)
      unaryInto('tanh', n, n)
      const next = hs.after(t)
      binaryInto('sub', hs.before(t), n, next)
      binaryInto('mul', next, z, next)
      binaryInto('add', next, n, next)
    }
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, bias, h)
      ctx.saveOwn(hs.all, made)
      ctx.state = reverse
    }
    // A copy, since users may write into it.
    return raw.clone(hs.allAfter)
  },
  backward: (ctx, dOutput: Tensor) => {
    const [inputs, weightHh, bias, h0, all, made] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
    const reverse = ctx.state as boolean
    if (isGradEnabled()) {
      const steps = (...args: Tensor[]) => [recordedSteps(...(args as Four), reverse)]
      return [...recordedGradients(steps, [inputs, weightHh, bias, h0], [dOutput]), null]
    }
    const [length, batch, width] = dOutput.shape as readonly [number, number, number]
    const hs = new States(all, reverse)
    const dense = raw.contiguous(dOutput)
    const dInputs = Tensor.uninitialized(h0.dtype, [length, batch, 3 * width], h0.storage.memory)
    const dRecurrent = Tensor.uninitialized(h0.dtype, [length, batch, 3 * width], h0.storage.memory)
    const dh = Tensor.empty(h0.dtype, h0.shape, h0.storage.memory)
    const [d, direct, dn] = [0, 1, 2].map(() => Tensor.uninitialized(h0.dtype, h0.shape, h0.storage.memory)) as [Tensor, Tensor, Tensor]
    for (const t of stepOrder(length, !reverse)) {
      const [dA, dU] = [raw.select(dInputs, 0, t), raw.select(dRecurrent, 0, t)]
      const [grad, step] = [raw.select(dense, 0, t), raw.select(made, 0, t)]
      if (cellInto('gruCellBackward', grad, dh, step, hs.before(t), dA, dU, direct)) {
        matmulInto(dU, weightHh, dh)
        binaryInto('add', dh, direct, dh)
        continue
      }
      const [r, z, q, n] = parts(step)
      binaryInto('add', dh, grad, dh)
      binaryInto('mul', dh, z, direct)
      binaryInto('sub', hs.before(t), n, d)
      binaryInto('mul', dh, d, d)
      gradInto('sigmoidBackward', d, z, d)
      raw.copy_(part(dA, 1, width), d)
      raw.copy_(part(dU, 1, width), d)
      binaryInto('sub', dh, direct, dn)
      gradInto('tanhBackward', dn, n, dn)
      raw.copy_(part(dA, 2, width), dn)
      binaryInto('mul', dn, q, d)
      gradInto('sigmoidBackward', d, r, d)
      raw.copy_(part(dA, 0, width), d)
      raw.copy_(part(dU, 0, width), d)
      binaryInto('mul', dn, r, part(dU, 2, width))
      matmulInto(dU, weightHh, dh)
      binaryInto('add', dh, direct, dh)
    }
    const dWeight = raw.matmul(flatSteps(dRecurrent).T, flatSteps(hs.allBefore))
    const dBias = raw.sum(part(flatSteps(dRecurrent), 2, width), 0)
    return [dInputs, dWeight, dBias, dh, null]
  },
})

type Four = [Tensor, Tensor, Tensor, Tensor]

/** Those of one step, [N, H] each. */
function parts(step: Tensor): [r: Tensor, z: Tensor, q: Tensor, n: Tensor] {
  const of = (k: number) => raw.select(step, 0, k)
  return [of(0), of(1), of(2), of(3)]
}
