/** One end of the protocol by hand, for tests: it shakes hands under any identity, and then sends any chunks. */
import { once } from 'node:events'
import net from 'node:net'
import {
  type Address,
  ChunkReader,
  ChunkType,
  ControlChunk,
  type Credentials,
  controlChunk,
  Handshake,
  type Identity,
} from '@postgrad/transport/internal'

const NO_BYTES = new Uint8Array(0)

/** Connects, and nothing more. */
export async function raw(at: Address): Promise<net.Socket> {
  const socket = at.kind === 'unix' ? net.connect(at.path) : net.connect(at.port, at.host)
  socket.on('error', () => {})
  // Who reads nothing never learns that he was turned away.
  socket.resume()
  await once(socket, 'connect')
  return socket
}

export class RawPeer {
  readonly socket: net.Socket
  /** Types of the chunks that came, and their bytes in all. */
  readonly got: (ChunkType | 'frame')[] = []
  bytesGot = 0
  /** What the other end said at last. */
  bye = ''
  /** Numbers the chunks. */
  sequence = 0
  private readonly reader = new ChunkReader({ frameBytesMax: 2 ** 30, segmentsMax: 2 ** 14 })

  private constructor(socket: net.Socket) {
    this.socket = socket
  }

  /** Resolves after the handshake. Rejects with why it was refused. */
  static async as(at: Address, self: Identity, credentials: Credentials | null, wants: { name: string; id: number }): Promise<RawPeer> {
    const peer = new RawPeer(await raw(at))
    const random = (bytes: number) => Uint8Array.from({ length: bytes }, (_, i) => i)
    const handshake = new Handshake({ side: 'dialler', self, credentials, wants, random })
    await new Promise<void>((resolve, reject) => {
      let isDone = false
      peer.socket.on('close', () => reject(new Error('the connection was closed')))
      peer.socket.on('data', (bytes: Buffer) => {
        peer.bytesGot += bytes.length
        peer.reader.push(bytes)
        try {
          for (let got = peer.reader.next(); got !== null; got = peer.reader.next()) {
            if (got instanceof ControlChunk && got.type === ChunkType.HANDSHAKE && !isDone) {
              const { send, done } = handshake.receive(got.body)
              if (send !== null) peer.control(ChunkType.HANDSHAKE, send)
              if (done === null) continue
              isDone = true
              peer.reader.admit()
              resolve()
            } else {
              peer.got.push(got instanceof ControlChunk ? got.type : 'frame')
              if (got instanceof ControlChunk && got.type === ChunkType.BYE) peer.bye = got.body.toString('utf8', 1)
            }
          }
        } catch (error) {
          reject(error as Error)
          peer.socket.destroy()
        }
      })
      peer.control(ChunkType.HANDSHAKE, handshake.begin() as Uint8Array)
    })
    return peer
  }

  control(type: ChunkType, body: Uint8Array = NO_BYTES): boolean {
    return this.socket.write(controlChunk(type, body, this.sequence++))
  }

  get closed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded
  }
}
