/**
 * The cost of gradients that are summed in causal order, whatever the order in which they arrive: passes in which many of them meet at one leaf, with the order
 * and without. The switch is internal: users always get the order. `plans/order.ts` has the rows.
 */
import { currentDistAutograd } from '@postgrad/dist-autograd/internal'
import { call, distAutograd, expose, rand, type Tensor } from 'postgrad'

export const scaleBy = (x: Tensor, w: Tensor) => x.mul(w)

/** Where one leaf is used, `uses` times. */
export type Shape = 'fan' | 'chain'

const GRAPHS: Readonly<Record<Shape, (w: Tensor, uses: number) => Promise<Tensor>>> = {
  /** By calls made all at once, of two workers: gradients of equal depth, which wait for the last. */
  fan: async (w, uses) => {
    const x = rand(w.shape)
    const parts = await Promise.all(Array.from({ length: uses }, (_, i) => call(`worker${1 + (i % 2)}`, scaleBy, [x, w])))
    return parts.reduce((a, b) => a.add(b))
  },
  /** By calls one after the other, as a recurrent network uses its weights: the deepest comes first by itself. */
  chain: async (w, uses) => {
    let x = rand(w.shape)
    for (let i = 0; i < uses; i++) x = await call('worker1', scaleBy, [x, w])
    return x
  },
}

export interface Cost {
  /** Of the backward passes. */
  readonly seconds: number
  /** The most gradients that waited for others at one time, only for the order. */
  readonly heldBack: number
}

/** n backward passes of a graph that uses a leaf of `width`² elements. */
export async function orderedPasses(n: number, shape: Shape, uses: number, width: number, ordered: boolean): Promise<Cost> {
  const { engine } = currentDistAutograd()
  let seconds = 0
  engine.ordered = ordered
  engine.heldBack.peak = 0
  try {
    const w = rand([width, width], { requiresGrad: true })
    for (let i = 0; i < n; i++) {
      await distAutograd.context(async (ctx) => {
        const loss = (await GRAPHS[shape](w, uses)).sum()
        const started = performance.now()
        await ctx.backward([loss])
        seconds += (performance.now() - started) / 1000
      })
    }
    return { seconds, heldBack: engine.heldBack.peak }
  } finally {
    engine.ordered = true
  }
}

expose({ benchScaleBy: scaleBy, orderedPasses })
