/**
 * The step of PyTorch's documentation of the distributed optimizer: two parameters that live on worker1 are fetched, added, and stepped, each time in a context of
 * its own. Its twin of the same name is in `python/torch_peer.py`.
 */
import { add, DistributedOptimizer, distAutograd, expose, rand, remote, type Tensor } from 'postgrad'
import { SGD } from 'postgrad/optim'
import { currentRuntime } from 'postgrad/plugin'

const parameterHere = (): Tensor => rand([3, 3], { requiresGrad: true })

interface Held {
  step(): Promise<void>
}

function make(): Held {
  const [ref1, ref2] = [remote('worker1', parameterHere), remote('worker1', parameterHere)]
  const optimizer = new DistributedOptimizer(SGD, [ref1, ref2], { lr: 0.05 })
  return {
    step: () =>
      distAutograd.context(async (ctx) => {
        const [p1, p2] = await Promise.all([ref1.toHere(), ref2.toHere()])
        await ctx.backward([add(p1, p2).sum()])
        await optimizer.step(ctx)
      }),
  }
}

/** Returns seconds. Parameters are made once per worker. */
export async function remoteParameterSteps(n: number): Promise<number> {
  const held = currentRuntime().slot(Symbol.for('postgrad.bench.remoteParameterSteps'), make)
  await held.step()
  const started = performance.now()
  for (let i = 0; i < n; i++) await held.step()
  return (performance.now() - started) / 1000
}

expose({ 'bench.parameterHere': parameterHere, remoteParameterSteps })
