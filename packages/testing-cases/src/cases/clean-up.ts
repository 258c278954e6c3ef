/** PyTorch's tests of clean-up (cases 15 to 18): a context that has been left vanishes on every worker that it reached, also over others. */
import { add } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { currentContext } from '@postgrad/dist-autograd/internal'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { contextState } from './graph.js'

export type CleanUpKind = 'tensors with grad' | 'tensors without grad' | 'no tensors' | 'nested'

export interface CleanUpReport {
  /** Each worker's state of the context before it was left, and at last. */
  readonly before: Readonly<Record<string, string>>
  readonly after: Readonly<Record<string, string>>
}

/** The id under which this worker serves the call. */
export function idHere(..._args: unknown[]): bigint {
  const context = currentContext()
  if (context === null) throw new Error('the call has no context')
  return context.id
}

/** Tensors that require grad must be used, so the callee gives their sum back. */
export function sumHere(a: Tensor, b: Tensor): Tensor {
  return add(a, b)
}

export async function forwardId(to: string, a: Tensor, b: Tensor): Promise<bigint> {
  return await call(to, idHere, [a, b])
}

/** How often the others are asked: a released context is gone after a few messages, so this many questions can only mean a leak. */
const QUESTIONS_MAX = 10_000

/** Runs as worker0; its context reaches the others directly, or (nested) worker2 over worker1. At last it asks every so many ms whether it is gone. */
export async function cleanUp(kind: CleanUpKind, everyMs = 0): Promise<CleanUpReport> {
  const others = kind === 'nested' ? ['worker1', 'worker2'] : ['worker1', 'worker2', 'worker3']
  const requiresGrad = kind === 'tensors with grad' || kind === 'nested'
  let id = 0n
  const seen: bigint[] = []
  const before = await distAutograd.context(async (ctx) => {
    id = ctx.id
    const [a, b] = [ones([3, 3], { requiresGrad }), ones([3, 3], { requiresGrad })]
    if (kind === 'nested') seen.push(await call('worker1', forwardId, ['worker2', a, b]))
    else if (kind === 'no tensors') for (const to of others) seen.push(await call(to, idHere, [1, 1]))
    else {
      for (const to of others) {
        await call(to, sumHere, [a, b])
        seen.push(await call(to, idHere, [a, b]))
      }
    }
    return states(others, id)
  })
  if (seen.some((one) => one !== id)) throw new Error(`the callees saw ${seen.join(', ')} instead of ${id}`)
  let after = await states(others, id)
  for (let asked = 1; asked < QUESTIONS_MAX && Object.values(after).includes('live'); asked++) {
    if (everyMs > 0) await new Promise<void>((resolve) => currentWorker().clock.setTimer(everyMs, resolve))
    after = await states(others, id)
  }
  return { before, after }
}

async function states(others: readonly string[], id: bigint): Promise<Record<string, string>> {
  const out: Record<string, string> = { [currentWorker().info.name]: contextState(id) }
  for (const other of others) out[other] = await askState(other, id)
  return out
}

/** In the worker's own scope, outside of the context: the question must not make the two workers known to each other in it. */
function askState(other: string, id: bigint): Promise<string> {
  return currentWorker().run(() => call(other, contextState, [id]).wait())
}

expose({ idHere, sumHere, forwardId, cleanUp })

export const cleanUpCases: readonly { readonly name: string; readonly kind: CleanUpKind; readonly workers: readonly string[] }[] = [
  { name: 'case 15, context_cleanup_tensor_with_grad', kind: 'tensors with grad', workers: ['worker0', 'worker1', 'worker2', 'worker3'] },
  { name: 'case 16, context_cleanup_tensor_no_grad', kind: 'tensors without grad', workers: ['worker0', 'worker1', 'worker2', 'worker3'] },
  { name: 'case 17, context_cleanup_no_tensors', kind: 'no tensors', workers: ['worker0', 'worker1', 'worker2', 'worker3'] },
  { name: 'case 18, context_cleanup_nested_rpc', kind: 'nested', workers: ['worker0', 'worker1', 'worker2'] },
]
