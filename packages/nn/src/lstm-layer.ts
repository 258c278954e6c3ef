/**
 * One layer of an LSTM over all steps, as one node with its derivative written out. Above it: `lstm.ts`, which makes the part of the gates that
 * does not wait for h.
 *
 *     a = x W_ihᵀ + b + h W_hhᵀ                      a = [a₀ a₁ a₂ a₃], the gates side by side in PyTorch's order
 *     i, f, g, o = σ(a₀), σ(a₁), tanh(a₂), σ(a₃)
 *     c' = f c + i g
 *     h' = o tanh(c')
 *
 * One node, because a node per step would make a gradient of W_hh's full size at each of them and add them up: that was most of the time
 * of a training step. Here the gradients of all gates are gathered, and one product over all steps gives W_hh's.
 */
import { cat, defineFunction, isGradEnabled, stack } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { flatSteps, inPlaces, into, stepOrder, timesSigmoidSlope, timesTanhSlope } from './step-math.js'

/** What a step computes, each [N, H]. */
type Step = readonly [i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor, squashed: Tensor, h: Tensor]
const STEP_LENGTH = 7

/** Steps in the order in which they are taken. */
function runSteps(inputs: Tensor, weightHh: Tensor, h: Tensor, c: Tensor, order: readonly number[]): Step[] {
  const width = c.shape[1]!
  // A copy, once: every step would make its own of a transpose.
  const recurrent = weightHh.T.contiguous()
  return order.map((t) => {
    const a = into(h.matmul(recurrent), inputs.select(0, t))
    const gate = (k: number) => a.narrow(1, k * width, width)
    const [i, f, g, o] = [gate(0).sigmoid(), gate(1).sigmoid(), gate(2).tanh(), gate(3).sigmoid()]
    c = into(f.mul(c), i.mul(g))
    const squashed = c.tanh()
    h = o.mul(squashed)
    return [i, f, g, o, c, squashed, h]
  })
}

/**
 * inputs [T, N, 4H], the gates' part from below; weightHh [4H, H]; h, c [N, H]; reverse: from the last step to the first
 * → h after every step [T, N, H], c after the one that was taken last [N, H]
 */
export const lstmLayer = defineFunction({
  name: 'LstmLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, h: Tensor, c: Tensor, reverse: boolean): readonly [output: Tensor, c: Tensor] => {
    const order = stepOrder(inputs.shape[0]!, reverse)
    const steps = runSteps(inputs, weightHh, h, c, order)
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, h, c, ...steps.flat())
      ctx.state = reverse
    }
    const hs = steps.map((step) => step[6])
    return [stack(inPlaces(hs, order)), steps.at(-1)![4]]
  },
  backward: (ctx, dOutput: Tensor, dLast: Tensor) => {
    const [inputs, weightHh, h0, c0, ...saved] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor, ...Tensor[]]
    const order = stepOrder(dOutput.shape[0]!, ctx.state as boolean)
    // Under createGraph what the steps computed must have a history, which it has not from forward.
    const steps = isGradEnabled() ? runSteps(inputs, weightHh, h0, c0, order) : grouped(saved)
    const dGates = new Array<Tensor>(steps.length)
    let dh: Tensor | null = null
    let dc = dLast
    for (let k = steps.length - 1; k >= 0; k--) {
      const [i, f, g, o, , squashed] = steps[k]!
      const previous = k === 0 ? c0 : steps[k - 1]![4]
      const dHere = dOutput.select(0, order[k]!)
      dh = dh === null ? dHere : into(dh, dHere)
      dc = into(timesTanhSlope(dh.mul(o), squashed), dc)
      const di = timesSigmoidSlope(dc.mul(g), i)
      const df = timesSigmoidSlope(dc.mul(previous), f)
      const dg = timesTanhSlope(dc.mul(i), g)
      const dO = timesSigmoidSlope(dh.mul(squashed), o)
      dGates[k] = cat([di, df, dg, dO], 1)
      dc = dc.mul(f)
      dh = dGates[k]!.matmul(weightHh)
    }
    const all = stack(inPlaces(dGates, order))
    const hs = inPlaces([h0, ...steps.slice(0, -1).map((step) => step[6])], order)
    const dWeight = flatSteps(all).T.matmul(flatSteps(stack(hs)))
    return [all, dWeight, dh, dc, null]
  },
})

function grouped(saved: readonly Tensor[]): Step[] {
  const steps: Step[] = []
  for (let at = 0; at < saved.length; at += STEP_LENGTH) steps.push(saved.slice(at, at + STEP_LENGTH) as unknown as Step)
  return steps
}
