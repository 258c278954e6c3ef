/**
 * Names of actors, kept by the worker that registers them, and looked up from any: `registerActor`, `unregisterActor`, `whereis`, as in Erlang.
 * `actor-register-host.ts` serves look-ups. Rules NAM-1 and NAM-2 in SPEC.md. PyTorch has no counterpart.
 */
import { PostgradError } from '@postgrad/base'
import { ACTOR_NAMES, WHEREIS } from '../actors/actor-register-host.js'
import { kindOf, notAnActor } from '../actors/actors.js'
import type { Target } from '../common/worker-info.js'
import { RRef, type RRefOptions } from '../references/rref.js'
import { ActorHandle } from './actor-handle.js'
import { currentRuntime } from './api.js'

/**
 * Registers an actor under a name on this worker, so that `whereis` finds it from any worker. The register keeps the reference alive. The name of a handle
 * leads to the instance that runs, also after a restart.
 *
 * The name stays until `unregisterActor`, also when the actor has ended: calls to it then fail with ACTOR_STOPPED or WORKER_DIED.
 * @throws ACTOR_NAME_TAKEN if an actor is registered under this name here
 * @throws NOT_AN_ACTOR if `actor` is neither an `RRef` nor an `ActorHandle`
 * @throws INVALID_ARGUMENT unless `name` has 1 to 255 characters and no `/`
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * registerActor('policy', remote('worker1', Linear, [2, 4]))
 * const policy = await whereis<Linear>('worker0', 'policy') // from any worker
 * await policy.rpcSync().forward(x).then((y) => y.shape) // [2, 4]
 */
export function registerActor(name: string, actor: RRef | ActorHandle<unknown>): void {
  const names = ACTOR_NAMES.of(currentRuntime())
  checkName('registerActor', name)
  if (!(actor instanceof RRef) && !(actor instanceof ActorHandle)) throw notAnActor('registerActor', kindOf(actor))
  if (names.has(name)) {
    throw new PostgradError('ACTOR_NAME_TAKEN', {
      op: 'registerActor',
      message: `an actor is registered as '${name}' on this worker already`,
      remedy: 'Take another name, or unregisterActor() that one first.',
      values: { name },
    })
  }
  names.set(name, actor)
}

/**
 * Removes a name that `registerActor` gave on this worker. Returns whether the name existed. The actor itself continues.
 * @throws INVALID_ARGUMENT unless `name` has 1 to 255 characters and no `/`
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * registerActor('policy', remote('worker1', Linear, [2, 4]))
 * unregisterActor('policy') // true
 */
export function unregisterActor(name: string): boolean {
  checkName('unregisterActor', name)
  return ACTOR_NAMES.of(currentRuntime()).delete(name)
}

/**
 * Looks an actor up by the name under which it is registered on `worker`. Resolves with a reference to the actor; for a handle, to the instance that runs
 * now. Dispose of the reference as of any other. Also rejects as `call` does.
 * @throws UNKNOWN_ACTOR if no actor has this name there
 * @throws ACTOR_NOT_RUNNING if a handle has this name and no instance runs now
 * @throws INVALID_ARGUMENT unless `name` has 1 to 255 characters and no `/`
 * @example
 * registerActor('policy', remote('worker1', Linear, [2, 4])) // on worker0
 * using policy = await whereis<Linear>('worker0', 'policy')
 * policy.ownerName() // 'worker1'
 */
export async function whereis<T = unknown>(worker: Target, name: string, options: RRefOptions = {}): Promise<RRef<T>> {
  checkName('whereis', name)
  return (await currentRuntime().caller.call(worker, WHEREIS, [name, null], options)) as RRef<T>
}

/** Names with a slash are those of supervisions. @throws INVALID_ARGUMENT */
function checkName(op: string, name: unknown): void {
  if (typeof name === 'string' && name.length > 0 && name.length <= 255 && !name.includes('/')) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: "a name of 1 to 255 characters without '/'",
    got: typeof name === 'string' ? `'${name.slice(0, 40)}'` : typeof name,
    remedy: `Write ${op === 'whereis' ? "whereis(worker, 'agent')" : `${op}('agent'${op === 'registerActor' ? ', actor' : ''})`}.`,
  })
}
