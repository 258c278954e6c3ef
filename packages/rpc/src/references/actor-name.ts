/** Names of calls and actors for people, such as `Observer#0.17.step`. */
import { workerOf } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { METHOD_CALL } from '../common/built-in-names.js'
import { OwnerRRef, RRef } from './rref.js'

type Called = Pick<Message, 'type' | 'body'>

/** The reference whose method a call is for; null: it is not a method call. */
export function actorOf({ type, body }: Called): RRef | null {
  if ((type !== MessageType.CALL && type !== MessageType.REMOTE_CALL) || body[0] !== METHOD_CALL) return null
  const rref = (body[1] as readonly unknown[])[0]
  return rref instanceof RRef ? rref : null
}

/** The class of the value, empty where it is not known (yet), and its id: `Observer#0.17` was made by worker 0. */
export function actorName(rref: RRef): string {
  const value: unknown = rref instanceof OwnerRRef && rref.hasValue ? rref.localValue() : null
  const className = typeof value === 'object' && value !== null ? (value.constructor?.name ?? '') : ''
  return nameOfActor(className, rref.rrefId)
}

export function nameOfActor(className: string, rrefId: bigint): string {
  return `${className}#${workerOf(rrefId)}.${rrefId & 0xffffffffffffn}`
}

/** The function's name, or `Observer#0.17.step`; empty if it is not a call. */
export function whatOf(called: Called): string {
  const { type, body } = called
  if (type !== MessageType.CALL && type !== MessageType.REMOTE_CALL) return ''
  const args = body[1] as readonly unknown[]
  // As a user sends it.
  if (body[0] === METHOD_CALL && typeof args[0] === 'bigint') return `${nameOfActor('', args[0])}.${plainText(args[1])}`
  const actor = actorOf(called)
  return actor === null ? plainText(body[0]) : `${actorName(actor)}.${plainText(args[1])}`
}
