/** Our side of the bench: work that worker0 does n times, with worker1 at the other end. Each function returns its seconds. */
import { add, backward, call, distAutograd, expose, mul, rand, remote, type Tensor } from 'postgrad'

/** Calls under way at once when they are pipelined. */
const WINDOW = 1000

export const noop = () => {}
export const addOne = (t: Tensor) => t.add(1)

export async function roundTrip(n: number): Promise<number> {
  const started = performance.now()
  for (let i = 0; i < n; i++) await call('worker1', noop)
  return (performance.now() - started) / 1000
}

/** A reference to the result of an empty function, and its value. */
export async function remoteToHere(n: number): Promise<number> {
  const started = performance.now()
  for (let i = 0; i < n; i++) {
    const rref = remote('worker1', noop)
    await rref.toHere()
    rref.dispose()
  }
  return (performance.now() - started) / 1000
}

export async function pipelined(n: number): Promise<number> {
  const started = performance.now()
  for (let i = 0; i < n; i += WINDOW) await Promise.all(Array.from({ length: Math.min(WINDOW, n - i) }, () => call('worker1', noop)))
  return (performance.now() - started) / 1000
}

/** PyTorch's design note: add there, multiply here, sum, backward, gradients. */
export async function designNote(n: number): Promise<number> {
  const started = performance.now()
  for (let i = 0; i < n; i++) {
    await distAutograd.context(async (ctx) => {
      const t1 = rand([3, 3], { requiresGrad: true })
      const t2 = rand([3, 3], { requiresGrad: true })
      const t3 = await call('worker1', add, [t1, t2])
      const t4 = rand([3, 3], { requiresGrad: true })
      await ctx.backward([mul(t3, t4).sum()])
      ctx.gradients()
    })
  }
  return (performance.now() - started) / 1000
}

/** Backward of a graph that goes n times to worker1 and back; the forward pass is not timed. */
export async function pingPongBackward(n: number): Promise<number> {
  return distAutograd.context(async (ctx) => {
    let x = rand([3, 3], { requiresGrad: true })
    for (let i = 0; i < n; i++) x = await call('worker1', addOne, [x])
    const loss = x.sum()
    const started = performance.now()
    await ctx.backward([loss])
    return (performance.now() - started) / 1000
  })
}

export function localForward(n: number): number {
  const y = rand([3, 3])
  let x = rand([3, 3], { requiresGrad: true })
  const started = performance.now()
  for (let i = 0; i < n; i++) x = add(x, y)
  return (performance.now() - started) / 1000
}

export function localBackward(n: number): number {
  const y = rand([3, 3])
  let x = rand([3, 3], { requiresGrad: true })
  for (let i = 0; i < n; i++) x = add(x, y)
  const loss = x.sum()
  const started = performance.now()
  backward([loss])
  return (performance.now() - started) / 1000
}

/** The limit of a node on 3×3: the nine additions into a fresh array. */
export function additions(n: number): number {
  const y = new Float32Array(9).fill(0.5)
  let x = new Float32Array(9)
  const started = performance.now()
  for (let i = 0; i < n; i++) {
    const out = new Float32Array(9)
    for (let k = 0; k < 9; k++) out[k] = x[k]! + y[k]!
    x = out
  }
  return (performance.now() - started) / 1000
}

expose({ noop, addOne, roundTrip, remoteToHere, pipelined, designNote, pingPongBackward, localForward, localBackward, additions })
