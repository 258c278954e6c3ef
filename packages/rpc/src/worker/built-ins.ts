/**
 * The functions that every worker exposes by itself, under names that begin with `postgrad.`: for methods of values and their streams, for watching and
 * ending actors, and for groups and stores.
 */
import { PostgradError } from '@postgrad/base'
import { findActor, WHEREIS } from '../actors/actor-register-host.js'
import { ACTORS } from '../actors/actors.js'
import { LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR, WATCH_ACTOR, WATCHES } from '../actors/watches.js'
import { serveStream } from '../calls/stream-serving.js'
import { checkFuture, isAsyncExecution } from '../common/async-execution.js'
import { METHOD_CALL, STREAM_CALL, VALUE_READY } from '../common/built-in-names.js'
import type { AnyFunction, FunctionRegistry } from '../common/function-registry.js'
import { currentServing } from '../core/served-call.js'
import { currentCore } from '../core/slots.js'
import { ARRIVE, arrive } from '../groups/gather.js'
import { callStore, STORE_CALL } from '../groups/store-host.js'
import { OwnerRRef, RRef } from '../references/rref.js'

/** The owner's side of `rref.call`. A method of a value that is there runs in the call's own turn, so that calls keep their order. */
function callMethod(rref: unknown, method: unknown, args: unknown): unknown {
  // These come from another worker, and may be anything.
  if (!(rref instanceof RRef) || typeof method !== 'string' || !Array.isArray(args)) {
    throw new PostgradError('METHOD_NOT_FOUND', {
      op: METHOD_CALL,
      expected: 'an RRef, the name of a method and its arguments',
      got: 'something else',
      remedy: 'Use rref.call(method, args).',
    })
  }
  if (rref instanceof OwnerRRef && rref.hasValue) return invoke(rref.localValue(), method, args)
  return rref.toHere({ timeoutMs: 0 }).then((value) => invoke(value, method, args))
}

/** The owner's side of `monitor`, `link`, `unlink` and `stopActor`. */
const watchActor = (rref: unknown, watcher: unknown, id: unknown) => WATCHES.here.onWatch(rref, watcher, id)
const linkActor = (rref: unknown, other: unknown) => WATCHES.here.onLink(rref, other)
const unlinkActor = (rref: unknown, other: unknown) => WATCHES.here.onUnlink(rref, other)
const endActor = (rref: unknown, shutdownMs: unknown) => WATCHES.here.onStop(rref, shutdownMs)

/** The owner's side of `rref.created`. */
function valueReady(rref: unknown): Promise<void> {
  if (!(rref instanceof RRef)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: VALUE_READY,
      expected: 'an RRef',
      got: typeof rref,
      remedy: 'Use rref.created().',
    })
  }
  return rref.toHere({ timeoutMs: 0 }).then(() => undefined)
}

/** Its own, or of what it extends. */
function propertyOf(value: object, name: string): PropertyDescriptor | undefined {
  for (let at: object | null = value; at !== null; at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, name)
    if (found !== undefined) return found
  }
  return undefined
}

function noMethod(value: unknown, method: string, mayCall: boolean, found: PropertyDescriptor | undefined): PostgradError {
  const isObject = typeof value === 'object' && value !== null
  const what = isObject ? `an instance of ${value.constructor?.name ?? 'no class'}` : value === null ? 'null' : typeof value
  const kind = found === undefined ? null : found.get !== undefined || found.set !== undefined ? 'getter' : 'field'
  return new PostgradError('METHOD_NOT_FOUND', {
    op: `call of '${method}'`,
    expected: `a method '${method}' of an instance of an exposed class, or an operation of a tensor`,
    got: kind === null ? what : `a ${kind} of ${what}`,
    remedy:
      kind !== null
        ? `Add a method that returns it, as in read() { return this.${method} }, and call that.`
        : mayCall
          ? 'Check the name of the method.'
          : 'Expose the class, and check the name of the method.',
    values: { method },
  })
}

/** Members that every object has are not methods of its class: `constructor`, `toString`, `__proto__`, … */
function invoke(value: unknown, method: string, args: readonly unknown[]): unknown {
  const core = currentCore()
  const { gate } = core.messages
  const refusal = gate === null ? null : gate.methodRefusal(currentServing(), value, method)
  if (refusal !== null) throw refusal
  const mayCall =
    typeof value === 'object' && value !== null && !Object.hasOwn(Object.prototype, method) && core.registry.mayCall(value, method)
  const cell = mayCall ? ACTORS.of(core).find(value) : null
  const isShown = mayCall && !cell?.hidden?.has(method)
  const callable = isShown ? (value as Record<string, unknown>)[method] : undefined
  if (typeof callable !== 'function') throw noMethod(value, method, mayCall, isShown ? propertyOf(value, method) : undefined)
  const isAsync = isAsyncExecution(callable as AnyFunction)
  const run = () => {
    const given = callable.apply(value, args)
    return isAsync ? checkFuture(`call of '${method}'`, given) : given
  }
  return cell === null ? run() : cell.invoke(method, run, { endsAtReturn: isAsync })
}

const BUILT_INS = {
  [METHOD_CALL]: callMethod,
  [STREAM_CALL]: serveStream,
  [VALUE_READY]: valueReady,
  [WATCH_ACTOR]: watchActor,
  [LINK_ACTOR]: linkActor,
  [STOP_ACTOR]: endActor,
  [UNLINK_ACTOR]: unlinkActor,
  [WHEREIS]: findActor,
  [ARRIVE]: arrive,
  [STORE_CALL]: callStore,
} as const

/** Workers of one thread share their registry, and a simulation makes many of them. */
const withBuiltIns = new WeakSet<FunctionRegistry>()

export function exposeBuiltIns(registry: FunctionRegistry): void {
  if (withBuiltIns.has(registry)) return
  withBuiltIns.add(registry)
  registry.expose(BUILT_INS)
}
