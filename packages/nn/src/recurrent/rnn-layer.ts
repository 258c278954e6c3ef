/**
 * One layer of a simple RNN over all steps, as one node with its derivative written out (`step-math.ts` says why).
 *
 *     h' = f(x W_ihᵀ + b + h W_hhᵀ)        f is tanh or relu
 */
import { isGradEnabled, stack } from '@postgrad/autograd'
import { defineInnerFunction } from '@postgrad/autograd/internal'
import { Tensor } from '@postgrad/tensor'
import { binaryInto, gradInto, matmulInto, raw, unaryInto } from '@postgrad/tensor/internal'
import { flatSteps, inPlaces, recordedGradients, States, stepOrder } from './step-math.js'

export type RnnNonlinearity = 'tanh' | 'relu'

interface Setting {
  readonly nonlinearity: RnnNonlinearity
  readonly reverse: boolean
}

/** Steps as recorded operations. */
function recordedSteps(inputs: Tensor, weightHh: Tensor, h0: Tensor, { nonlinearity, reverse }: Setting): Tensor {
  const order = stepOrder(inputs.shape[0]!, reverse)
  let h = h0
  const hs = order.map((t) => {
    const a = inputs.select(0, t).add(h.matmul(weightHh.T))
    h = nonlinearity === 'tanh' ? a.tanh() : a.relu()
    return h
  })
  return stack(inPlaces(hs, order))
}

/** inputs [T, N, H], the part from below; weightHh [H, H]; h [N, H]; reverse: from the last step to the first → h after every step [T, N, H] */
export const rnnLayer = defineInnerFunction({
  name: 'RnnLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, h: Tensor, nonlinearity: RnnNonlinearity, reverse: boolean): Tensor => {
    const length = inputs.shape[0]!
    const recurrent = raw.contiguous(weightHh.T)
    const hs = States.from(h, length, reverse)
    for (const t of stepOrder(length, reverse)) {
      const next = hs.after(t)
      matmulInto(hs.before(t), recurrent, next)
      binaryInto('add', next, raw.select(inputs, 0, t), next)
      unaryInto(nonlinearity, next, next)
    }
    if (ctx.needsInputGrad.includes(true)) {
      ctx.saveForBackward(inputs, weightHh, h)
      ctx.saveOwn(hs.all)
      ctx.state = { nonlinearity, reverse } satisfies Setting
    }
    // A copy, since users may write into it.
    return raw.clone(hs.allAfter)
  },
  backward: (ctx, dOutput: Tensor) => {
    const [inputs, weightHh, h0, all] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor]
    const setting = ctx.state as Setting
    if (isGradEnabled()) {
      const steps = (...args: Tensor[]) => [recordedSteps(args[0]!, args[1]!, args[2]!, setting)]
      return [...recordedGradients(steps, [inputs, weightHh, h0], [dOutput]), null, null]
    }
    const hs = new States(all, setting.reverse)
    const dGates = Tensor.uninitialized(dOutput.dtype, dOutput.shape, dOutput.storage.memory)
    const dh = Tensor.empty(h0.dtype, h0.shape, h0.storage.memory)
    const slope = setting.nonlinearity === 'tanh' ? 'tanhBackward' : 'reluBackward'
    for (const t of stepOrder(dOutput.shape[0]!, !setting.reverse)) {
      const dA = raw.select(dGates, 0, t)
      binaryInto('add', dh, raw.select(dOutput, 0, t), dA)
      gradInto(slope, dA, hs.after(t), dA)
      matmulInto(dA, weightHh, dh)
    }
    return [dGates, raw.matmul(flatSteps(dGates).T, flatSteps(hs.allBefore)), dh, null, null]
  },
})
