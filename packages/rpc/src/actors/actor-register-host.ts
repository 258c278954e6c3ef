/**
 * The actor names that one worker keeps, and the built-in function with which other workers look them up. A handle of a supervised actor that was sent elsewhere finds the running
 * actor here, by a name of its own. Users call `actor-register.ts`.
 */
import { PostgradError } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import { currentServing } from '../core/served-call.js'
import { currentCore, WorkerSlot } from '../core/slots.js'
import { RRef, type RRefOptions } from '../references/rref.js'

/** The built-in function that gives the reference to an actor by its name. */
export const WHEREIS = 'postgrad.whereis'

/** An `ActorHandle`. */
interface Leading {
  reference(): Promise<RRef>
  ready(options: RRefOptions): Promise<RRef>
}

/** Names that users give have no slash. */
const KEY_OF_CHILD = /^supervision \d+\/(.*)$/s

/** The name under which a worker keeps the handle of a supervised actor. */
export function keyOfChild(supervision: number, child: string): string {
  return `supervision ${supervision}/${child}`
}

/** The named actors of a worker. */
export const ACTOR_NAMES = new WorkerSlot('actorNames', () => new Map<string, RRef | Leading>())

/** Serves WHEREIS; `waitMs` is how long to wait for one that runs, 0 for ever, null not at all. */
export function findActor(name: unknown, waitMs: unknown): RRef | Promise<RRef> {
  const worker = currentCore()
  const actor = ACTOR_NAMES.of(worker).get(name as string)
  if (actor === undefined) throw unknownActor(plainText(name), worker.info.name)
  if (actor instanceof RRef) return actor
  if (waitMs === null) return actor.reference()
  const { signal } = currentServing()!
  return actor.ready({ timeoutMs: waitMs as number, signal })
}

function unknownActor(name: string, worker: string): PostgradError {
  const child = KEY_OF_CHILD.exec(name)?.[1]
  if (child === undefined) {
    return new PostgradError('UNKNOWN_ACTOR', {
      op: 'whereis',
      message: `no actor has the name '${name}' on worker '${worker}'`,
      remedy: 'Call registerActor(name, actor) on that worker first.',
      values: { name, worker },
    })
  }
  return new PostgradError('UNKNOWN_ACTOR', {
    op: child,
    message: `worker '${worker}' no longer supervises an actor '${child}': the actor was removed, or its supervision has ended`,
    remedy: 'Make the actor again there, with supervise() or supervision.add(), and send the new handle.',
    values: { name: child, worker },
  })
}
