/**
 * One layer of a GRU over all steps, as one node with its derivative written out; why, `lstm-layer.ts` says.
 *
 *     a = x W_ihᵀ + b         u = h W_hhᵀ             [a₀ a₁ a₂] and [u₀ u₁ u₂], the gates side by side in PyTorch's order
 *     r, z = σ(a₀ + u₀), σ(a₁ + u₁)
 *     q = u₂ + b_hn
 *     n = tanh(a₂ + r q)
 *     h' = n + z (h − n)
 *
 * b holds all biases but the recurrent one of n, which r scales.
 */
import { cat, defineFunction, isGradEnabled, stack } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { flatSteps, inPlaces, into, stepOrder, timesSigmoidSlope, timesTanhSlope } from './step-math.js'

/** What a step computes, each [N, H]. */
type Step = readonly [r: Tensor, z: Tensor, q: Tensor, n: Tensor, h: Tensor]
const STEP_LENGTH = 5

function runSteps(inputs: Tensor, weightHh: Tensor, bias: Tensor, h: Tensor, order: readonly number[]): Step[] {
  const width = h.shape[1]!
  const recurrent = weightHh.T.contiguous()
  return order.map((t) => {
    const u = h.matmul(recurrent)
    const a = inputs.select(0, t)
    const part = (x: Tensor, k: number) => x.narrow(1, k * width, width)
    const r = part(a, 0).add(part(u, 0)).sigmoid()
    const z = part(a, 1).add(part(u, 1)).sigmoid()
    const q = part(u, 2).add(bias)
    const n = into(r.mul(q), part(a, 2)).tanh()
    h = into(z.mul(h.sub(n)), n)
    return [r, z, q, n, h]
  })
}

/**
 * inputs [T, N, 3H], the gates' part from below; weightHh [3H, H]; bias [H], b_hn; h [N, H]; reverse: from the last step to the first
 * → h after every step [T, N, H]
 */
export const gruLayer = defineFunction({
  name: 'GruLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, bias: Tensor, h: Tensor, reverse: boolean): Tensor => {
    const order = stepOrder(inputs.shape[0]!, reverse)
    const steps = runSteps(inputs, weightHh, bias, h, order)
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, bias, h, ...steps.flat())
      ctx.state = reverse
    }
    const hs = steps.map((step) => step[4])
    return stack(inPlaces(hs, order))
  },
  backward: (ctx, dOutput: Tensor) => {
    const [inputs, weightHh, bias, h0, ...saved] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor, ...Tensor[]]
    const order = stepOrder(dOutput.shape[0]!, ctx.state as boolean)
    // Under createGraph what the steps computed must have a history, which it has not from forward.
    const steps = isGradEnabled() ? runSteps(inputs, weightHh, bias, h0, order) : grouped(saved)
    const length = steps.length
    const [dInputs, dRecurrent] = [new Array<Tensor>(length), new Array<Tensor>(length)]
    let dBias: Tensor | null = null
    let dh: Tensor | null = null
    for (let k = length - 1; k >= 0; k--) {
      const [r, z, q, n] = steps[k]!
      const previous = k === 0 ? h0 : steps[k - 1]![4]
      const dHere = dOutput.select(0, order[k]!)
      dh = dh === null ? dHere : into(dh, dHere)
      const dPrevious = dh.mul(z)
      const dn = timesTanhSlope(dh.sub(dPrevious), n)
      const dz = timesSigmoidSlope(dh.mul(previous.sub(n)), z)
      const dr = timesSigmoidSlope(dn.mul(q), r)
      const dq = dn.mul(r)
      dInputs[k] = cat([dr, dz, dn], 1)
      dRecurrent[k] = cat([dr, dz, dq], 1)
      dBias = dBias === null ? dq.sum(0) : into(dBias, dq.sum(0))
      dh = into(dRecurrent[k]!.matmul(weightHh), dPrevious)
    }
    const hs = inPlaces([h0, ...steps.slice(0, -1).map((step) => step[4])], order)
    const dWeight = flatSteps(stack(inPlaces(dRecurrent, order))).T.matmul(flatSteps(stack(hs)))
    return [stack(inPlaces(dInputs, order)), dWeight, dBias, dh, null]
  },
})

function grouped(saved: readonly Tensor[]): Step[] {
  const steps: Step[] = []
  for (let at = 0; at < saved.length; at += STEP_LENGTH) steps.push(saved.slice(at, at + STEP_LENGTH) as unknown as Step)
  return steps
}
