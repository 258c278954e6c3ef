/**
 * A chain of nested calls that goes back and forth between two workers. PyTorch with its defaults hangs at 50, because each waiting call holds a
 * thread; here a waiting call is a promise, and the depth is bounded by memory.
 */
import { add, mul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { gradientsOf, type Plain, plain } from './case.js'

/** The chain's result, and the gradient of its start. */
export interface PingPongReport {
  readonly y: Plain
  readonly t: Plain
}

/** Adds one, and calls the worker that called it, `left` times. */
export async function bounce(t: Tensor, left: number, from: string): Promise<Tensor> {
  const next = add(t, 1)
  return left === 0 ? next : await call(from, bounce, [next, left - 1, currentWorker().info.name])
}

/** Runs as worker0: `calls` nested calls, then a backward pass over all of them. y = t + calls; the gradient of y · w with respect to t is w. */
export async function longPingPong(calls: number): Promise<PingPongReport> {
  const t = tensor([1, 2, 3], { requiresGrad: true })
  const w = tensor([0.5, -1, 2])
  return distAutograd.context(async (ctx) => {
    const y = await call('worker1', bounce, [t, calls - 1, currentWorker().info.name])
    await ctx.backward([sum(mul(y, w))])
    const { t: grad } = await gradientsOf(ctx, { t })
    return { y: await plain(y), t: grad! }
  })
}

expose({ bounce, longPingPong })
