/**
 * Objects of other packages that travel as plain parts (a RemoteModule: its reference and a name), and are made again from these where they arrive.
 * Each package registers its types by name; nothing else of a class travels. The wire package knows tag numbers, this file knows names.
 */
import assert from 'node:assert'
import type { ValueExtension } from '@postgrad/wire/internal'

export interface ValueCodec<T extends object = object> {
  /** The same on all workers. */
  readonly name: string
  readonly type: abstract new (...args: never[]) => T
  /** What to send: any value that can be sent, references among it. */
  encode(value: T): unknown
  /** `plain` comes from another worker: check it. */
  decode(plain: unknown): T
}

/** The tag under which they travel. */
export const TRAVELLING_TAG = 0x21

/** Names that a thread's packages gave. Holds classes only, no state of any worker. */
const byName = new Map<string, ValueCodec>()
const byType = new Map<unknown, ValueCodec>()

export function registerValueType<T extends object>(codec: ValueCodec<T>): void {
  byName.set(codec.name, codec as unknown as ValueCodec)
  byType.set(codec.type, codec as unknown as ValueCodec)
}

export const valueTypeExtension: ValueExtension = {
  tag: TRAVELLING_TAG,
  matches: (value) => byType.size > 0 && byType.has(value.constructor),
  encode(value) {
    const { name, encode } = byType.get(value.constructor)!
    return [name, encode(value)]
  },
  decode(plain) {
    // An assertion that fails here makes the message unreadable: no worker that runs this code writes anything else.
    assert(Array.isArray(plain) && plain.length === 2)
    const codec = byName.get(plain[0] as string)
    assert(codec !== undefined, 'an object of a package that this worker does not have')
    return codec.decode(plain[1])
  },
}
