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
 * Gives an actor a name on this worker, under which `whereis` finds it from any: a reference to it, which lives on while it is registered, or the handle of a supervised one, whose
 * name goes with the one that runs. It stays until `unregisterActor`, also when the actor has ended: calls then say so.
 * @throws ACTOR_NAME_TAKEN, NOT_AN_ACTOR, INVALID_ARGUMENT, RPC_NOT_INITIALIZED
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
 * Removes a name; returns whether it existed. The actor itself continues. @throws RPC_NOT_INITIALIZED
 * @example
 * registerActor('policy', remote('worker1', Linear, [2, 4]))
 * unregisterActor('policy') // true
 */
export function unregisterActor(name: string): boolean {
  checkName('unregisterActor', name)
  return ACTOR_NAMES.of(currentRuntime()).delete(name)
}

/**
 * The reference to the actor that is registered under this name on a worker; of a supervised one to the one that runs now. Dispose of it as of any other.
 * @throws (rejects) UNKNOWN_ACTOR, ACTOR_NOT_RUNNING, INVALID_ARGUMENT, and as a call
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
