/** The floods of a restricted peer: every kind of message, permitted calls and others; acknowledgements, pings, connections, and requests to a store. `fixtures/flooder.ts` sends them. */
import { ones } from '@postgrad/tensor'
import { ChunkType } from '@postgrad/transport/internal'
import { Codec, type MessageBodies, type MessageName, MessageType } from '@postgrad/wire/internal'
import { ANY_REQUEST, type RawSession } from './raw-session.fixture.js'

const MINE = (2n << 48n) | 7n
const THEIRS = 9n
const BODIES: { readonly [T in MessageType]: MessageBodies[T] } = {
  [MessageType.CALL]: ['flood.step', []],
  [MessageType.RESULT]: [1],
  [MessageType.EXCEPTION]: [new Error('flood'), false],
  [MessageType.REMOTE_CALL]: ['flood.step', [], MINE, MINE],
  [MessageType.REMOTE_RET]: [MINE, MINE, null],
  [MessageType.RREF_FETCH]: [THEIRS],
  [MessageType.RREF_USER_DELETE]: [THEIRS, MINE],
  [MessageType.RREF_FORK_REQUEST]: [THEIRS, MINE],
  [MessageType.RREF_CHILD_ACCEPT]: [MINE],
  [MessageType.RREF_ACK]: [MINE],
  [MessageType.CALL_CANCEL]: [70_000, false],
  [MessageType.STREAM_ITEM]: [1],
  // SEEN.
  [MessageType.GROUP_UPDATE]: [1, null, null],
  [MessageType.PROPAGATE_GRADIENTS]: [[ones([1])], 1],
  [MessageType.PASS_REPORT]: [3, 2, [[1, 2]], 1, [[THEIRS, 1, 'the call']]],
  [MessageType.PASS_ERROR]: [new Error('flood')],
  [MessageType.PASS_ABORT]: [new Error('flood')],
  [MessageType.CLEANUP_CONTEXT]: [],
  [MessageType.PASS_COMMIT]: [],
  [MessageType.LINEAGE]: [],
  [MessageType.ACTOR_DOWN]: [7, false, null],
  [MessageType.ACTOR_UNWATCH]: [7],
  [MessageType.UNREADABLE]: [70_000],
  [MessageType.PROGRESS]: [1, 0, 0, 0, 0, []],
  [MessageType.DEVICE_MAP]: [[['gpu', 'gpu']]],
  [MessageType.COLLECTIVE]: [THEIRS, 0, 7, 0, 'barrier', [], null],
}

/** What is written each time the socket has room. @returns how many messages it was */
export type Write = (session: RawSession) => number

export interface Kind {
  readonly name: string
  /** Default 'session'. */
  readonly purpose?: 'store'
  /** Each connection is closed after its handshake. */
  readonly isBrief?: true
  /** What comes back is not read. */
  readonly isDeaf?: true
  readonly write: Write
}

const codec = new Codec()

function headerOf(type: MessageType, body: readonly unknown[] = BODIES[type]): Uint8Array {
  const message = codec.prepare(type, body)
  Object.assign(message, { requestId: ANY_REQUEST, context: 5n, autogradId: THEIRS, pass: THEIRS })
  const { header, segments } = codec.encode(message)
  if (segments.length > 0) throw new Error('a message of one part')
  return header
}

const message = (name: string, header: Uint8Array, more: Partial<Kind> = {}): Kind => ({
  name,
  write: (session) => session.write(header),
  ...more,
})

const store = (name: string, head: object): Kind => {
  const header = Buffer.from(JSON.stringify(head))
  const isHello = new WeakSet<RawSession>()
  return {
    name,
    purpose: 'store',
    write: (session) => {
      if (!isHello.has(session)) {
        isHello.add(session)
        const client = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
        session.writeHeaders(Buffer.from(JSON.stringify({ op: 'hello', version: 1, client })), 1)
      }
      session.writeHeaders(header, 200)
      return 200
    },
  }
}

/** Each kind of message, by its name, and then what is more than a message. */
export function kinds(): readonly Kind[] {
  const messages = (Object.entries(MessageType) as [MessageName, MessageType][]).map(([name, type]) => message(name, headerOf(type)))
  const act = headerOf(MessageType.CALL, ['flood.act', [1]])
  const entry = 'postgrad/0/entry/100000000'
  return [
    ...messages,
    message('calls that it may make', act),
    message('calls whose replies it does not read', act, { isDeaf: true }),
    message('calls of methods', headerOf(MessageType.CALL, ['postgrad.callMethod', [THEIRS, 'x', []]])),
    message('streams', headerOf(MessageType.CALL, ['postgrad.stream', ['flood.count', [1000], 1]])),
    message('large calls', headerOf(MessageType.CALL, ['flood.act', ['x'.repeat(2 ** 20)]])),
    message('the same frame', act, {
      write: (session) => {
        session.isRepeating = true
        return session.write(act)
      },
    }),
    {
      name: 'acknowledgements',
      write: (session) => {
        session.writeAcks(250)
        return 250
      },
    },
    {
      name: 'pings',
      write: (session) => {
        for (let i = 0; i < 100; i++) session.control(ChunkType.PING)
        return 100
      },
    },
    { name: 'connections', isBrief: true, write: () => 1 },
    store('checks of the store', { op: 'check', n: 1, keys: [entry] }),
    store('changes of the store', { op: 'set', n: 1, done: 1, key: 'x' }),
    { ...store('waits in the store', {}), write: waits(entry) },
  ]
}

/** Each waits for keys of its own. */
function waits(entry: string): Write {
  const numbers = new WeakMap<RawSession, number>()
  return (session) => {
    let n = numbers.get(session)
    if (n === undefined) {
      n = 1
      const client = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
      session.writeHeaders(Buffer.from(JSON.stringify({ op: 'hello', version: 1, client })), 1)
    }
    numbers.set(session, n + 1)
    const keys = Array.from({ length: 200 }, (_, i) => `${entry}${n * 200 + i}`)
    session.writeHeaders(Buffer.from(JSON.stringify({ op: 'wait', n, keys, timeoutMs: 0 })), 1)
    return 1
  }
}
