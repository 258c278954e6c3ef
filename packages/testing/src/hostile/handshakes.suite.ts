/** Messages of the handshake, in every state, under each kind of credentials: as they are, with fields that are wrong, and damaged. */
import { type Credentials, HANDSHAKE_BYTES_MAX, Handshake } from '@postgrad/transport/internal'
import {
  bytesOf,
  type Input,
  mutated,
  type Outcome,
  pick,
  promised,
  type Random,
  refusedWith,
  type Target,
  wrongJson,
} from './case.suite.js'

const CODES = /^(AUTH_FAILED|VERSION_MISMATCH|CLUSTER_MISMATCH|WRONG_PEER|PURPOSE_UNKNOWN|HANDSHAKE_INVALID)$/
const KEY: Credentials = {
  kind: 'key',
  role: 'member',
  keys: { member: new Uint8Array(32).fill(0xa5), observer: new Uint8Array(32).fill(0x5b) },
}
const OBSERVER: Credentials = { kind: 'key', role: 'observer', keys: { observer: new Uint8Array(32).fill(0x5b) } }
const RINGS: readonly (Credentials | null)[] = [null, KEY, OBSERVER]
const HEAD_BYTES = 8
/** The state in which the message comes, by what the one that is fed waits for. */
const WAITS = ['HELLO', 'CHALLENGE', 'PROOF', 'WELCOME'] as const
const decoder = new TextDecoder()

class Pair {
  readonly dialler: Handshake
  readonly listener: Handshake

  constructor(at: Credentials | null, nonces: number) {
    let next = nonces
    const random = (bytes: number) => new Uint8Array(bytes).fill(next++)
    const role = at?.kind === 'key' ? at.role : 'member'
    const common = { random, release: '1', way: '127.0.0.1:40001>127.0.0.1:5000' }
    this.dialler = new Handshake({
      ...common,
      side: 'dialler',
      self: { cluster: 'c', name: 'a', id: 1, role },
      credentials: at,
      wants: { name: 'b', id: 2 },
    })
    const credentials = at === OBSERVER ? KEY : at
    this.listener = new Handshake({ ...common, side: 'listener', self: { cluster: 'c', name: 'b', id: 2, role: 'member' }, credentials })
  }

  /** Up to the state; gives the side that waits there, and the message that it expects. */
  until(state: number): { readonly message: Uint8Array; readonly by: Handshake } {
    let message = this.dialler.begin() as Uint8Array
    for (let at = 0; at < state; at++) message = (at % 2 === 0 ? this.listener : this.dialler).receive(message).send as Uint8Array
    return { message, by: state % 2 === 0 ? this.listener : this.dialler }
  }
}

/** By credentials and state. */
const honest = RINGS.map((ring) => WAITS.map((_, state) => new Pair(ring, 7).until(state).message))

function make(random: Random): Input {
  const ring = random.below(RINGS.length)
  const state = pick(random, [0, 0, 0, 0, 0, 1, 1, 2, 3])
  const message = honest[ring]![state] as Uint8Array
  let bytes: Uint8Array = message
  if (random.below(3) > 0) {
    const fields = JSON.parse(decoder.decode(message.subarray(HEAD_BYTES))) as Record<string, unknown>
    const body = wrongJson(random, random.below(10) === 0 ? { reason: pick(random, ['key', 'role', 'toString', 'x']) } : fields)
    bytes = new Uint8Array(HEAD_BYTES + body.length)
    bytes.set(message.subarray(0, HEAD_BYTES))
    bytes.set(body, HEAD_BYTES)
    if (random.below(10) === 0) bytes[6] = random.below(7)
  }
  if (random.coin()) bytes = mutated(random, bytes, message)
  if (random.below(200) === 0) bytes = bytesOf(random, HANDSHAKE_BYTES_MAX + 10)
  return [Uint8Array.of(ring, state), bytes]
}

const equal = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0

export const handshakes: Target = {
  name: 'handshake',
  share: 8,
  make,
  feed([flags, bytes]): Outcome {
    const [ring, state] = flags as Uint8Array
    const { message, by } = new Pair(RINGS[ring as number] as Credentials | null, 7).until(state as number)
    let outcome: Outcome
    try {
      const { done } = by.receive(bytes as Uint8Array)
      outcome = `${WAITS[state as number]} taken`
      promised(done === null || equal(bytes as Uint8Array, message), 'a handshake that was changed does not end well')
    } catch (error) {
      outcome = refusedWith(error, CODES)
      const said = Handshake.refusal(error)
      promised(said === null || said.length < 64, 'a refusal is one word')
      promised(!/paWlpaWl|W1tbW1tb|a5a5a5a5|5b5b5b5b/.test(`${(error as Error).message}`), 'no error shows a key')
      try {
        by.receive(message)
        promised(false, 'after an error nothing is taken')
      } catch (again) {
        refusedWith(again, /^HANDSHAKE_INVALID$/)
      }
    }
    return outcome
  },
}
