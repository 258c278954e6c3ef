/**
 * A TCP proxy in front of a port that does harm on command: clients get its address instead of the port's. It does all that a network may do to a connection, and also
 * what only a broken or hostile network does. `fire-group.fixture.ts` puts one in front of each process.
 *
 *     client ──▸ proxy ──inbound──▸ target
 *            ◂──outbound──
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '@postgrad/sim/internal'

export type Direction = 'inbound' | 'outbound'

/** What happens to all that passes, as long as it lasts. */
export type Fault =
  /** It comes so much later. */
  | { readonly what: 'delay'; readonly ms: number }
  /** It comes so slowly. */
  | { readonly what: 'throttle'; readonly bytesPerMs: number }
  /** Nothing passes, and nothing is lost: a cable that is pulled and put in again. */
  | { readonly what: 'stall' }
  /** Connections are broken at once, and new ones refused. */
  | { readonly what: 'cut' }
  /** One direction is swallowed, its end included, and never comes again. */
  | { readonly what: 'half-open'; readonly direction: Direction }
  /** Once in each direction of each connection: so many bytes that nobody has sent. */
  | { readonly what: 'inject'; readonly bytes: number }
  /** Once in each direction of each connection: a bit. */
  | { readonly what: 'flip' }
  /** Connections are broken; new ones wait until it is over, and then pass in another order. */
  | { readonly what: 'reorder' }

export interface FaultProxyOptions {
  readonly listen: { readonly host: string; readonly port: number }
  readonly target: { readonly host: string; readonly port: number }
  /** Of bytes, places and orders. */
  readonly random: Random
}

/** More than this waits in a lane only if a single piece is larger. */
const WAITING_BYTES_MAX = 2 ** 20

export class FaultProxy {
  readonly counts = { connections: 0, bytes: 0, broken: 0, refused: 0, swallowed: 0, injected: 0, flipped: 0, held: 0 }
  readonly random: Random
  fault: Fault | null = null
  private readonly options: FaultProxyOptions
  private readonly passages = new Set<Passage>()
  private readonly waiting = new Set<Socket>()
  private server: Server | null = null

  private constructor(options: FaultProxyOptions) {
    this.options = options
    this.random = options.random
  }

  /** Rejects as `listen` of Node does. */
  static async start(options: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options)
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) => proxy.onClient(client))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(options.listen, resolve)
    })
    proxy.server = server
    return proxy
  }

  get port(): number {
    return (this.server!.address() as { port: number }).port
  }

  /** From now on, instead of what was before. */
  begin(fault: Fault): void {
    this.heal()
    this.fault = fault
    if (fault.what === 'cut' || fault.what === 'reorder') this.breakAll()
  }

  /** All goes as it should, but what was swallowed is lost. */
  heal(): void {
    this.fault = null
    const waiting = [...this.waiting]
    this.waiting.clear()
    while (waiting.length > 0) this.pass(waiting.splice(this.random.below(waiting.length), 1)[0]!)
    for (const passage of this.passages) passage.heal()
  }

  breakAll(): void {
    this.counts.broken += this.passages.size
    for (const passage of [...this.passages]) passage.break()
  }

  async close(): Promise<void> {
    this.fault = null
    for (const client of this.waiting) client.destroy()
    for (const passage of [...this.passages]) passage.break()
    await new Promise((resolve) => this.server!.close(resolve))
  }

  private onClient(client: Socket): void {
    client.on('error', () => {})
    if (this.fault?.what === 'cut') {
      this.counts.refused++
      client.resetAndDestroy()
    } else if (this.fault?.what === 'reorder') {
      this.counts.held++
      this.waiting.add(client)
      client.once('close', () => this.waiting.delete(client))
    } else this.pass(client)
  }

  private pass(client: Socket): void {
    this.counts.connections++
    const passage = new Passage(this, client, connect({ ...this.options.target, allowHalfOpen: true }), () => this.passages.delete(passage))
    this.passages.add(passage)
  }
}

/** One connection through the proxy. */
class Passage {
  private readonly sockets: readonly [Socket, Socket]
  private readonly lanes: readonly [Lane, Lane]
  private open = 2

  constructor(proxy: FaultProxy, client: Socket, target: Socket, onOver: () => void) {
    this.sockets = [client, target]
    this.lanes = [new Lane(proxy, 'inbound', client, target), new Lane(proxy, 'outbound', target, client)]
    for (const socket of this.sockets) {
      socket.setNoDelay(true)
      socket.once('close', () => {
        this.open--
        if (this.open === 0) onOver()
      })
    }
    client.resume()
  }

  heal(): void {
    for (const lane of this.lanes) lane.heal()
  }

  break(): void {
    for (const lane of this.lanes) lane.drop()
    // While its last word leaves, Node resets no socket, and does not close it either.
    for (const socket of this.sockets) {
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }
}

interface Piece {
  /** Or how it ended: the sender says no more, or its socket is gone. */
  readonly bytes: Buffer | 'end' | 'gone'
  dueMs: number
}

/** One direction of a connection. Its order stays, whatever becomes of its times. */
class Lane {
  private readonly proxy: FaultProxy
  private readonly direction: Direction
  private readonly from: Socket
  private readonly to: Socket
  private readonly queue: Piece[] = []
  private waitingBytes = 0
  private lastDueMs = 0
  private timer: NodeJS.Timeout | null = null
  private isSwallowedEnd = false
  private harmedBy: Fault | null = null

  constructor(proxy: FaultProxy, direction: Direction, from: Socket, to: Socket) {
    this.proxy = proxy
    this.direction = direction
    this.from = from
    this.to = to
    from.on('data', (bytes: Buffer) => this.add(bytes))
    from.on('end', () => this.add('end'))
    from.on('error', () => {})
    from.on('close', () => this.add('gone'))
    to.on('drain', () => this.pump())
  }

  /** Forwards what was held back. If the source has ended, the target learns it. */
  heal(): void {
    const nowMs = performance.now()
    for (const piece of this.queue) piece.dueMs = Math.min(piece.dueMs, nowMs)
    this.lastDueMs = nowMs
    if (this.isSwallowedEnd) this.to.destroy()
    this.pump()
  }

  drop(): void {
    this.queue.length = 0
    this.waitingBytes = 0
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }

  private add(bytes: Piece['bytes']): void {
    const { fault, counts } = this.proxy
    if (this.to.destroyed) return
    if (fault?.what === 'half-open' && fault.direction === this.direction) {
      if (typeof bytes === 'string') this.isSwallowedEnd = true
      else counts.swallowed += bytes.length
      return
    }
    const passing = typeof bytes === 'string' ? bytes : this.harmed(bytes)
    const dueMs = Math.max(this.lastDueMs, this.dueMs(passing.length))
    this.lastDueMs = dueMs
    this.queue.push({ bytes: passing, dueMs })
    if (typeof passing !== 'string') this.waitingBytes += passing.length
    this.pump()
  }

  private dueMs(length: number): number {
    const { fault } = this.proxy
    const nowMs = performance.now()
    if (fault?.what === 'stall') return Number.POSITIVE_INFINITY
    if (fault?.what === 'delay') return nowMs + fault.ms
    if (fault?.what === 'throttle') return Math.max(nowMs, this.lastDueMs) + length / fault.bytesPerMs
    return nowMs
  }

  private harmed(bytes: Buffer): Buffer {
    const { fault, counts, random } = this.proxy
    if (fault === null || this.harmedBy === fault) return bytes
    if (fault.what === 'inject') {
      this.harmedBy = fault
      counts.injected += fault.bytes
      const at = random.below(bytes.length + 1)
      const garbage = Buffer.from(Array.from({ length: fault.bytes }, () => random.below(256)))
      return Buffer.concat([bytes.subarray(0, at), garbage, bytes.subarray(at)])
    }
    if (fault.what === 'flip') {
      this.harmedBy = fault
      counts.flipped++
      const copy = Buffer.from(bytes)
      copy[random.below(copy.length)]! ^= 1 << random.below(8)
      return copy
    }
    return bytes
  }

  private pump(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const nowMs = performance.now()
    while (this.queue.length > 0 && this.queue[0]!.dueMs <= nowMs && !this.to.writableNeedDrain) this.forward(this.queue.shift()!.bytes)
    const dueMs = this.queue[0]?.dueMs
    if (dueMs !== undefined && dueMs > nowMs && dueMs !== Number.POSITIVE_INFINITY) {
      this.timer = setTimeout(() => this.pump(), Math.ceil(dueMs - nowMs))
    }
    if (this.waitingBytes > WAITING_BYTES_MAX) this.from.pause()
    else if (this.from.isPaused()) this.from.resume()
  }

  private forward(bytes: Piece['bytes']): void {
    if (bytes === 'gone') this.to.destroySoon()
    else if (bytes === 'end') this.to.end()
    else {
      this.waitingBytes -= bytes.length
      this.proxy.counts.bytes += bytes.length
      this.to.write(bytes)
    }
  }
}
