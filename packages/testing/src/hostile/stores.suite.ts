/** Requests to a store's server: of every kind, with fields that are wrong, in any order, without and with a greeting; and replies to a client. */
import type { Clock, Frame, Link, LinkReceiver } from '@postgrad/transport'
import { decodeReply, encodeFrame, StoreServer } from '@postgrad/transport/internal'
import {
  bytesOf,
  EDGES,
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

const LIMITS = { keys: 40, keyBytes: 64, valueBytes: 1000, bytes: 8000, waits: 8, waitKeys: 50, clients: 20 }
const CODES =
  /^(STORE_FRAME_INVALID|STORE_LIMIT|STORE_TIMEOUT|STORE_CLOSED|VERSION_MISMATCH|INVALID_ARGUMENT|TIMEOUT_INVALID|STORE_VALUE_INVALID|STORE_NOT_A_NUMBER|STORE_NOT_A_COUNT)$/
const HONEST = 'a'.repeat(32)

/** No timer is due: who waits is cancelled by the end of his link. */
const still: Clock = { now: () => 0, setTimer: () => ({ cancel() {} }), defer: (fn) => void queueMicrotask(fn) }

class End implements Link {
  closed = false
  readonly replies: Frame[] = []
  receiver!: LinkReceiver

  open(receiver: LinkReceiver): void {
    this.receiver = receiver
  }

  send(frame: Frame): void {
    this.replies.push(frame)
  }

  flush(): void {}

  poll(): number {
    return 0
  }

  close(): void {
    this.closed = true
  }
}

const KEYS = ['k', 'l', 'm', '', '__proto__', 'a'.repeat(70)]

function request(random: Random): Readonly<Record<string, unknown>> {
  const n = pick(random, [1, 1, 2, 3, 4, 5, pick(random, EDGES)])
  const change = { n, done: pick(random, [1, 1, 1, n, 2 ** 53]), key: pick(random, KEYS) }
  const keys = Array.from({ length: random.below(4) }, () => pick(random, KEYS))
  switch (random.below(11)) {
    case 0:
      return { op: 'hello', version: 1, client: pick(random, ['b', 'c', 'd']).repeat(32) }
    case 1:
      return { op: 'bye' }
    case 2:
      return { op: 'set', ...change }
    case 3:
      return { op: 'add', ...change, amount: pick(random, [1, -1, 2 ** 53 - 1, -(2 ** 53 - 1)]) }
    case 4:
      return { op: 'compareSet', ...change }
    case 5:
      return { op: 'deleteKey', ...change }
    case 6:
      return { op: 'get', n, key: pick(random, KEYS), timeoutMs: pick(random, [0, 1, 0.5, 1e308, 4e9]) }
    case 7:
      return { op: 'wait', n, keys, timeoutMs: 0 }
    case 8:
      return { op: 'check', n, keys }
    case 9:
      return { op: 'numKeys', n }
    default:
      return { op: 'cancel', of: n }
  }
}

const REPLIES: readonly Readonly<Record<string, unknown>>[] = [
  { op: 'welcome', version: 1, store: HONEST },
  { op: 'refused', error: { code: 'STORE_LIMIT', op: 'a', message: 'b', remedy: 'c', values: {} } },
  { op: 'closed' },
  { op: 'done', n: 1 },
  { op: 'number', n: 1, number: 7 },
  { op: 'yes', n: 1, yes: true },
]

/** Each is the number of its segments, its header, its segments. The first says whether they are replies, and whether a greeting goes before. */
function make(random: Random): Input {
  const isReply = random.below(6) === 0
  const out: Uint8Array[] = [Uint8Array.of(isReply ? 1 : 0, random.below(8) > 0 ? 1 : 0)]
  for (let frames = isReply ? 1 : 1 + random.below(4); frames > 0; frames--) {
    const fields = isReply ? pick(random, REPLIES) : request(random)
    const right = fields.op === 'compareSet' ? 2 : fields.op === 'set' ? 1 : 0
    const segments = random.below(10) === 0 ? random.below(4) : right
    const header = random.below(3) === 0 ? wrongJson(random, fields) : new TextEncoder().encode(JSON.stringify(fields))
    out.push(Uint8Array.of(segments), random.below(30) === 0 ? mutated(random, header) : header)
    for (let i = 0; i < segments; i++) out.push(bytesOf(random, pick(random, [0, 0, 1, 8, 30, random.below(1500)])))
  }
  return out
}

export class Stores implements Target {
  readonly name = 'store requests'
  readonly share = 12
  private server = new StoreServer({ clock: still, limits: LIMITS })

  make(random: Random): Input {
    return make(random)
  }

  async feed([flags, ...rest]: Input): Promise<Outcome> {
    const [isReply, isGreeted] = flags as Uint8Array
    const frames: Frame[] = []
    for (let at = 0; at + 1 < rest.length; ) {
      const count = rest[at]![0] as number
      frames.push({
        header: Uint8Array.from(rest[at + 1]!),
        segments: rest.slice(at + 2, at + 2 + count).map((one) => Uint8Array.from(one)),
      })
      at += 2 + count
    }
    if (isReply === 1) return replied(frames[0] as Frame)
    const link = new End()
    this.server.accept(link)
    if (isGreeted === 1) link.receiver.onFrame(encodeFrame({ op: 'hello', version: 1, client: 'b'.repeat(32) }))
    for (const frame of frames) link.receiver.onFrame(frame)
    await null
    await null
    let outcome = 'silent'
    promised(link.replies.length <= frames.length + 1, 'one answer to a request at most')
    for (const frame of link.replies) {
      const reply = decodeReply(frame)
      outcome = reply.op
      if (reply.op === 'error' || reply.op === 'refused') {
        promised(CODES.test(reply.error.code), `${reply.error.code} to a client: ${reply.error.message}`)
        outcome = reply.error.code
      }
    }
    link.receiver.onClose({ by: 'peer', detail: 'over' })
    const { connected, keys, bytes, waits, told } = this.server.counts()
    promised(connected === 0 && waits === 0, 'nothing of a client that has gone waits')
    promised(keys <= LIMITS.keys && bytes <= LIMITS.bytes && told <= 3 * 514, 'the store within its limits')
    return outcome
  }

  /** Another client is served; then a new server, as clients that are gone are remembered. */
  async check(): Promise<void> {
    const link = new End()
    this.server.accept(link)
    link.receiver.onFrame(encodeFrame({ op: 'hello', version: 1, client: HONEST }))
    link.receiver.onFrame(encodeFrame({ op: 'deleteKey', n: 1, done: 1, key: 'k' }))
    link.receiver.onFrame(encodeFrame({ op: 'set', n: 2, done: 1, key: 'k' }, [new Uint8Array(3)]))
    link.receiver.onFrame(encodeFrame({ op: 'get', n: 3, key: 'k', timeoutMs: 0 }))
    await null
    await null
    promised(link.replies.map((frame) => decodeReply(frame).op).join() === 'welcome,yes,done,value', 'an honest client is served')
    this.server.stop()
    this.server = new StoreServer({ clock: still, limits: LIMITS })
  }
}

function replied(frame: Frame): Outcome {
  try {
    return `reply ${decodeReply(frame).op}`
  } catch (error) {
    return refusedWith(error, /^STORE_FRAME_INVALID$/)
  }
}
