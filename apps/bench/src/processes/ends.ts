/** One end of a socket or link between two processes: it sends messages of a size and counts those that arrive. `pair-entry.ts` uses it. */
import { once } from 'node:events'
import net from 'node:net'
import { join } from 'node:path'
import type { Link } from '@postgrad/transport'
import { type Address, Exchange, RealClock, SocketLink } from '@postgrad/transport/internal'
import { CLUSTER, NAMES, type PairBoot } from './works.js'

export interface End {
  send(bytes: number): void
  /** From now on each message that comes has so many bytes, as is asked when it comes. */
  expect(bytes: () => number, onMessage: () => void): void
  close(): void
}

/** Makes ends: the process that measures connects, the other listens. */
export interface Meeting {
  /** The port that it listens on; 0 for none. */
  readonly port: number
  connect(): Promise<End>
}

const SERVICE = 'bench'
const CONNECT_MS = 10_000
const IDS = { measures: 1, answers: 2 } as const
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

/** @param onEnd called with each end that the other makes, if this one answers */
export async function meet(boot: PairBoot, onEnd: (end: End) => void): Promise<Meeting> {
  return boot.between === 'exchange' ? exchanges(boot, onEnd) : sockets(boot, onEnd)
}

async function sockets({ role, between, over, folder, port }: PairBoot, onEnd: (end: End) => void): Promise<Meeting> {
  const clock = new RealClock()
  const endOf = (socket: net.Socket): End => (between === 'socket' ? new SocketEnd(socket) : new LinkEnd(new SocketLink(socket, { clock })))
  const path = join(folder, 's')
  if (role === 'measures') {
    return {
      port: 0,
      async connect() {
        const socket = over === 'unix' ? net.connect({ path }) : net.connect({ port, host: '127.0.0.1' })
        await once(socket, 'connect')
        return endOf(socket)
      },
    }
  }
  const server = net.createServer((socket) => onEnd(endOf(socket)))
  server.listen(over === 'unix' ? { path } : { port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  return { port: over === 'unix' ? 0 : (server.address() as net.AddressInfo).port, connect: neverConnects }
}

async function exchanges({ role, over, credentials, folder, port }: PairBoot, onEnd: (end: End) => void): Promise<Meeting> {
  const exchange = new Exchange({ self: { cluster: CLUSTER, name: NAMES[role], id: IDS[role] }, credentials, clock: new RealClock() })
  const address = (at: number): Address =>
    over === 'unix' ? { kind: 'unix', path: join(folder, 's') } : { kind: 'tcp', host: '127.0.0.1', port: at }
  const other = role === 'measures' ? 'answers' : 'measures'
  const link = (): Link => exchange.link({ name: NAMES[other], id: IDS[other] }, () => (role === 'measures' ? [address(port)] : []))
  if (role === 'measures') {
    let session: End | null = new LinkEnd(link())
    return {
      port: 0,
      async connect() {
        // The first is the session's, which lasts; every other is a connection for a service, as `connect` measures them.
        const first = session
        session = null
        return first ?? new LinkEnd((await exchange.dial(SERVICE, [address(port)], { timeoutMs: CONNECT_MS })).link)
      },
    }
  }
  const [at] = await exchange.listen([address(0)])
  exchange.serve(SERVICE, (served) => onEnd(new LinkEnd(served)))
  onEnd(new LinkEnd(link()))
  return { port: at!.kind === 'tcp' ? at!.port : 0, connect: neverConnects }
}

function neverConnects(): never {
  throw new Error('who answers does not connect')
}

/** A message of more bytes arrives in parts, which the receiver has to put together. */
const PART_BYTES_MAX = 65_536

/** Bytes alone: both ends know how many a message has. */
class SocketEnd implements End {
  private readonly socket: net.Socket
  private readonly messages = new Map<number, Buffer>()
  private come = 0
  /** Where a message that comes in parts is put together. */
  private place = Buffer.alloc(0)

  constructor(socket: net.Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    // Its end shows: nothing comes any more, or the other process says what it died of.
    socket.on('error', () => {})
  }

  send(bytes: number): void {
    const made = this.messages.get(bytes) ?? Buffer.alloc(bytes, 1)
    this.messages.set(bytes, made)
    this.socket.write(made)
  }

  expect(bytes: () => number, onMessage: () => void): void {
    this.socket.removeAllListeners('data')
    this.socket.on('data', (part: Buffer) => {
      if (bytes() > PART_BYTES_MAX) {
        if (this.place.length < bytes()) this.place = Buffer.alloc(bytes())
        part.copy(this.place, this.come)
      }
      this.come += part.length
      for (; this.come >= bytes(); this.come -= bytes()) onMessage()
    })
  }

  close(): void {
    this.socket.destroy()
  }
}

/** Each message is a frame with nothing but a header. */
class LinkEnd implements End {
  private readonly link: Link
  private onMessage: () => void = () => {}

  constructor(link: Link) {
    this.link = link
    link.open({ onFrame: () => this.onMessage(), onTurnEnd: () => {}, onClose: () => {} })
  }

  send(bytes: number): void {
    this.link.send({ header: new Uint8Array(bytes), segments: NO_SEGMENTS })
  }

  expect(_: () => number, onMessage: () => void): void {
    this.onMessage = onMessage
  }

  close(): void {
    this.link.close()
  }
}
