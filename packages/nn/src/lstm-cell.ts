/**
 * One step of an LSTM after its matrix products, as one node with its derivative written out: composed from operations it would be about 15 nodes,
 * and each of the four `narrow`s of its gates would give a gradient of the full width. Above it: `lstm.ts`.
 *
 *     i, f, g, o = σ(a₀), σ(a₁), tanh(a₂), σ(a₃)     a = [a₀ a₁ a₂ a₃], the gates side by side in PyTorch's order
 *     c' = f c + i g
 *     h' = o tanh(c')
 */
import { cat, defineFunction, isGradEnabled, stack } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'

type Activations = readonly [i: Tensor, f: Tensor, g: Tensor, o: Tensor, next: Tensor, squashed: Tensor]

function activations(gates: Tensor, c: Tensor): Activations {
  const width = c.shape[1]!
  const gate = (k: number) => gates.narrow(1, k * width, width)
  const [i, f, g, o] = [gate(0).sigmoid(), gate(1).sigmoid(), gate(2).tanh(), gate(3).sigmoid()]
  const next = f.mul(c).add(i.mul(g))
  return [i, f, g, o, next, next.tanh()]
}

/** gates [N, 4H], c [N, H] → h' [N, H], c' [N, H] */
export const lstmCell = defineFunction({
  name: 'LstmCell',
  forward: (ctx, gates: Tensor, c: Tensor): readonly [h: Tensor, c: Tensor] => {
    const [i, f, g, o, next, squashed] = activations(gates, c)
    ctx.saveForBackward(gates, c, i, f, g, o, next, squashed)
    return [o.mul(squashed), next]
  },
  backward: (ctx, dh: Tensor, dNext: Tensor) => {
    const [gates, c, ...saved] = ctx.savedTensors as [Tensor, Tensor, ...Activations]
    // Under createGraph the activations must have a history, which those of forward have not.
    const [i, f, g, o, , squashed] = isGradEnabled() ? activations(gates, c) : saved
    const oneMinus = (x: Tensor) => x.neg().add(1)
    const dc = dh
      .mul(o)
      .mul(oneMinus(squashed.mul(squashed)))
      .add(dNext)
    const di = dc.mul(g).mul(i).mul(oneMinus(i))
    const df = dc.mul(c).mul(f).mul(oneMinus(f))
    const dg = dc.mul(i).mul(oneMinus(g.mul(g)))
    const dO = dh.mul(squashed).mul(o).mul(oneMinus(o))
    return [cat([di, df, dg, dO], 1), dc.mul(f)]
  },
})

/**
 * x [n, …] → its n slices […], as one node: `select` n times would give n gradients of x's full size.
 * PyTorch: `torch.unbind`.
 */
export const unbind = defineFunction({
  name: 'Unbind',
  forward: (_, x: Tensor): readonly Tensor[] => Array.from({ length: x.shape[0]! }, (_, i) => x.select(0, i)),
  backward: (_, ...grads: readonly Tensor[]) => stack(grads, 0),
})
