/**
 * One layer of a simple RNN over all steps, as one node with its derivative written out; why, `lstm-layer.ts` says.
 *
 *     h' = f(x W_ihᵀ + b + h W_hhᵀ)        f is tanh or relu
 */
import { defineFunction, isGradEnabled, stack } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { flatSteps, inPlaces, into, stepOrder, timesTanhSlope } from './step-math.js'

export type RnnNonlinearity = 'tanh' | 'relu'

interface State {
  readonly nonlinearity: RnnNonlinearity
  readonly reverse: boolean
}

function runSteps(inputs: Tensor, weightHh: Tensor, h: Tensor, nonlinearity: RnnNonlinearity, order: readonly number[]): Tensor[] {
  const recurrent = weightHh.T.contiguous()
  return order.map((t) => {
    const a = into(h.matmul(recurrent), inputs.select(0, t))
    h = nonlinearity === 'tanh' ? a.tanh() : a.relu()
    return h
  })
}

/** inputs [T, N, H], the part from below; weightHh [H, H]; h [N, H]; reverse: from the last step to the first → h after every step [T, N, H] */
export const rnnLayer = defineFunction({
  name: 'RnnLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, h: Tensor, nonlinearity: RnnNonlinearity, reverse: boolean): Tensor => {
    const order = stepOrder(inputs.shape[0]!, reverse)
    const steps = runSteps(inputs, weightHh, h, nonlinearity, order)
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, h, ...steps)
      ctx.state = { nonlinearity, reverse } satisfies State
    }
    return stack(inPlaces(steps, order))
  },
  backward: (ctx, dOutput: Tensor) => {
    const [inputs, weightHh, h0, ...saved] = ctx.savedTensors as [Tensor, Tensor, Tensor, ...Tensor[]]
    const { nonlinearity, reverse } = ctx.state as State
    const order = stepOrder(dOutput.shape[0]!, reverse)
    // Under createGraph what the steps computed must have a history, which it has not from forward.
    const steps = isGradEnabled() ? runSteps(inputs, weightHh, h0, nonlinearity, order) : saved
    const dGates = new Array<Tensor>(steps.length)
    let dh: Tensor | null = null
    for (let k = steps.length - 1; k >= 0; k--) {
      const dHere = dOutput.select(0, order[k]!)
      dh = dh === null ? dHere : into(dh, dHere)
      const da: Tensor = nonlinearity === 'tanh' ? timesTanhSlope(dh, steps[k]!) : steps[k]!.gt(0).where(dh, 0)
      dGates[k] = da
      dh = da.matmul(weightHh)
    }
    const all = stack(inPlaces(dGates, order))
    const hs = inPlaces([h0, ...steps.slice(0, -1)], order)
    return [all, flatSteps(all).T.matmul(flatSteps(stack(hs))), dh, null, null]
  },
})
