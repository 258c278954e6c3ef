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
import { add_, cat, defineFunction, isGradEnabled, stack } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'

/** What a step computes, each [N, H]. */
type Step = readonly [i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor, squashed: Tensor, h: Tensor]
const STEP_LENGTH = 7

function runSteps(inputs: Tensor, weightHh: Tensor, h: Tensor, c: Tensor): Step[] {
  const width = c.shape[1]!
  // A copy, once: every step would make its own of a transpose.
  const recurrent = weightHh.T.contiguous()
  return Array.from({ length: inputs.shape[0]! }, (_, t) => {
    const a = into(h.matmul(recurrent), inputs.select(0, t))
    const gate = (k: number) => a.narrow(1, k * width, width)
    const [i, f, g, o] = [gate(0).sigmoid(), gate(1).sigmoid(), gate(2).tanh(), gate(3).sigmoid()]
    c = into(f.mul(c), i.mul(g))
    const squashed = c.tanh()
    h = o.mul(squashed)
    return [i, f, g, o, c, squashed, h]
  })
}

/** inputs [T, N, 4H], the gates' part from below; weightHh [4H, H]; h, c [N, H] → h after every step [T, N, H], c after the last [N, H] */
export const lstmLayer = defineFunction({
  name: 'LstmLayer',
  forward: (ctx, inputs: Tensor, weightHh: Tensor, h: Tensor, c: Tensor): readonly [output: Tensor, c: Tensor] => {
    const steps = runSteps(inputs, weightHh, h, c)
    if (ctx.needsInputGrad.includes(true)) ctx.saveForBackward(inputs, weightHh, h, c, ...steps.flat())
    return [stack(steps.map((step) => step[6])), steps.at(-1)![4]]
  },
  backward: (ctx, dOutput: Tensor, dLast: Tensor) => {
    const [inputs, weightHh, h0, c0, ...saved] = ctx.savedTensors as [Tensor, Tensor, Tensor, Tensor, ...Tensor[]]
    const [length, batch, width] = dOutput.shape as [number, number, number]
    // Under createGraph what the steps computed must have a history, which it has not from forward.
    const steps = isGradEnabled() ? runSteps(inputs, weightHh, h0, c0) : grouped(saved)
    const dGates = new Array<Tensor>(length)
    let dh: Tensor | null = null
    let dc = dLast
    for (let t = length - 1; t >= 0; t--) {
      const [i, f, g, o, , squashed] = steps[t]!
      const previous = t === 0 ? c0 : steps[t - 1]![4]
      const dHere = dOutput.select(0, t)
      dh = dh === null ? dHere : into(dh, dHere)
      const dSquashed = dh.mul(o)
      dc = into(dSquashed.sub(dSquashed.mul(squashed).mul(squashed)), dc)
      const di = timesSlope(dc.mul(g), i)
      const df = timesSlope(dc.mul(previous), f)
      const dInput = dc.mul(i)
      const dg = dInput.sub(dInput.mul(g).mul(g))
      const dO = timesSlope(dh.mul(squashed), o)
      dGates[t] = cat([di, df, dg, dO], 1)
      dc = dc.mul(f)
      dh = dGates[t]!.matmul(weightHh)
    }
    const all = stack(dGates)
    const hs = stack([h0, ...steps.slice(0, -1).map((step) => step[6])])
    const dWeight = all.reshape([length * batch, 4 * width]).T.matmul(hs.reshape([length * batch, width]))
    return [all, dWeight, dh, dc]
  },
})

/** x + y, in x where the sum need not be recorded: x was made just before and has no other reader. */
function into(x: Tensor, y: Tensor): Tensor {
  return isGradEnabled() ? x.add(y) : add_(x, y)
}

/** grad σ'(x), where s = σ(x). */
function timesSlope(grad: Tensor, s: Tensor): Tensor {
  const gradS = grad.mul(s)
  return gradS.sub(gradS.mul(s))
}

function grouped(saved: readonly Tensor[]): Step[] {
  const steps: Step[] = []
  for (let at = 0; at < saved.length; at += STEP_LENGTH) steps.push(saved.slice(at, at + STEP_LENGTH) as unknown as Step)
  return steps
}
