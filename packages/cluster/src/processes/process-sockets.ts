/** Links between a worker, or the main thread, and workers of other processes of one machine: by Unix sockets in a folder that only this user can enter. */
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import { type Heap, HeapRoom, HeapTransport } from '@postgrad/tensor/internal'
import { type Address, Exchange, RealClock } from '@postgrad/transport/internal'
import type { OpenedLink, WorkerSide } from '../host/worker-host.js'
import { type SocketBoot, socketPath } from './process-protocol.js'

const ROLE = 'member'
const KEY_BYTES = 32
/** The cluster sees the end of each process, so a worker that has stopped, or is too busy to be dialled, does not count as dead. */
const LIMITS = { deadMs: 2 ** 31, graceMs: 2 ** 31 } as const
const ENDED = 'the cluster has seen its end'

/** Of a new cluster. */
export function newSockets(folder: string): SocketBoot {
  return { cluster: basename(folder), folder, key: randomBytes(KEY_BYTES) }
}

type OfThread = Pick<WorkerSide, 'heap' | 'stayAwake'>

export class ProcessSockets {
  private readonly exchange: Exchange
  private readonly heap: Heap | null
  private readonly room: HeapRoom
  private readonly transports: HeapTransport[] = []
  /** Workers whose end it knows; some of them have a link yet to be opened. */
  private readonly gone = new Set<WorkerId>()
  private readonly folder: string

  /**
   * @param ofThread its heap is what tensors leave from
   * @param onDeaf nobody can dial it, and why
   */
  constructor({ cluster, folder, key }: SocketBoot, { name, id }: WorkerInfo, ofThread: OfThread, onDeaf: (error: unknown) => void) {
    const { heap, stayAwake } = ofThread
    this.folder = folder
    this.heap = heap
    this.room = new HeapRoom()
    this.exchange = new Exchange({
      self: { cluster, name, id, role: ROLE },
      credentials: { kind: 'key', role: ROLE, keys: { [ROLE]: key } },
      clock: new RealClock(),
      limits: LIMITS,
      checksums: 'network',
      stayAwake,
      ...(heap === null ? {} : { place: (bytes: number) => this.room.place(bytes) }),
    })
    // Peers that dial before that try again.
    this.exchange.listen([this.addressOf(id)]).catch(onDeaf)
  }

  link(peer: WorkerInfo): OpenedLink {
    const link = this.exchange.link(peer, () => [this.addressOf(peer.id)])
    if (this.gone.has(peer.id)) this.exchange.ended(peer.id, ENDED)
    const transport = new HeapTransport(this.heap, this.room)
    this.transports.push(transport)
    return { link, transport }
  }

  /** A worker has ended: links to it end after what was received. */
  ended(id: WorkerId): void {
    this.gone.add(id)
    this.exchange.ended(id, ENDED)
  }

  async close(): Promise<void> {
    await this.exchange.close()
    for (const transport of this.transports) transport.close()
  }

  private addressOf(id: WorkerId): Address & { readonly kind: 'unix' } {
    return { kind: 'unix', path: socketPath(this.folder, id) }
  }
}
