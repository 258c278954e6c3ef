/**
 * Serves a store over links: the table of a `HashStore`, which the server's own program uses as well, to any number of clients (`tcp-store.ts`). The protocol
 * is `store-protocol.ts`; `server-file.ts` keeps what must outlive the server. PyTorch: the `TCPStore` with `is_master`.
 *
 * A request that changes something is done once, however often it comes: the server keeps its answer under the client's id and the request's number,
 * in memory and in the file, until the client says that it has it. Requests that only read or wait are done again.
 */
import { randomBytes } from 'node:crypto'
import { types } from 'node:util'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime, plainText } from '@postgrad/base/internal'
import { Budget, type Holder, NOBODY, type OverBudget, ofLevel, type Share } from '../budget.js'
import type { Clock, Timer } from '../clock.js'
import type { Frame, Link } from '../link.js'
import { Rate } from '../rate.js'
import { HashStore, tableOf } from './hash-store.js'
import { type ChangeSource, ServerFile } from './server-file.js'
import { storeLimit } from './store-errors.js'
import {
  decodeRequest,
  type ErrorText,
  encodeFrame,
  errorText,
  STORE_PROTOCOL_VERSION,
  type StoreReply,
  type StoreRequest,
  WINDOW,
} from './store-protocol.js'
import type { StoreChange, StoreTable } from './store-table.js'
import { textOf, utf8 } from './store-values.js'

/** A request beyond these fails with STORE_LIMIT. A role, an identity and all restricted roles have parts of `clients`, `waitBytes` and `unreadBytes` (`budget.ts`). */
export interface StoreLimits {
  /** Default 65,536. */
  readonly keys: number
  /** Of one key, as UTF-8. Default 16 KiB. */
  readonly keyBytes: number
  /** Of one value. Default 1 MiB. */
  readonly valueBytes: number
  /** Of all keys and values. Default 64 MiB. */
  readonly bytes: number
  /** Of one client at a time. Default 1,024. */
  readonly waits: number
  /** Keys of all waits of one client together. Default 65,536. */
  readonly waitKeys: number
  /** Memory of the waits of all clients, counted by `WAIT_BYTES` and `WAIT_KEY_BYTES`. Default 256 MiB. */
  readonly waitBytes: number
  /** Answers of all clients that the network has not taken. Of one client an eighth, and then its connection ends. Default 1 GiB. */
  readonly unreadBytes: number
  /** Connected, or gone for less than `rememberMs`. Default 4,096. */
  readonly clients: number
}

/** Options of `StoreServer`. */
export interface StoreServerOptions {
  readonly clock: Clock
  /** The store that is served; default a new one. With a file it must be empty. */
  readonly store?: HashStore
  /**
   * Keeps everything, so that a server that is started with the same file, after this one has ended in whatever way, continues where this one was. Each change
   * is handed to the system before it is answered: it survives the process, and with `sync` the machine.
   */
  readonly file?: string
  /** Each change is on the disk before it is answered (`fsync`). Default false. */
  readonly sync?: boolean
  readonly limits?: Partial<StoreLimits>
  /** The server forgets its answers to a client that is gone for so long. In ms, default 60,000; more than the clients' `graceMs`. */
  readonly rememberMs?: number
  /** 16 bytes at random; for tests. */
  readonly random?: (bytes: number) => Uint8Array
}

const LIMITS: StoreLimits = {
  keys: 65_536,
  keyBytes: 2 ** 14,
  valueBytes: 2 ** 20,
  bytes: 2 ** 26,
  waits: 1024,
  waitKeys: 65_536,
  waitBytes: 2 ** 28,
  unreadBytes: 2 ** 30,
  clients: 4096,
}

/** Limits what one client may do. */
export interface StoreGuard {
  /**
   * Called before each request is done, and not again for a change that was done and is sent again. If it throws, the client gets that error, and nothing is
   * changed. Not called for 'hello', 'bye' and 'cancel', which concern the client itself.
   */
  check(request: GuardedRequest, segments: readonly Uint8Array[]): void
  /** All clients that are restricted have a quarter of the budgets together. Default false. */
  readonly isRestricted?: boolean
}

/** The requests that a guard sees. */
export type GuardedRequest = Extract<StoreRequest, { n: number }>

/** The memory of a wait, with its promise, timer and signal; and of each of its keys, in addition to twice its length. Measured, and rounded up. */
const WAIT_BYTES = 1024
const WAIT_KEY_BYTES = 256
/** An answer's memory in addition to its bytes. */
const ANSWER_BYTES = 512

/**
 * The rate of restricted clients: a request costs 1, and more by its bytes (`costOf`), since its header is parsed, and its keys are looked for. One identity has a quarter of it, some 30 ms of
 * a core in a second.
 */
const RESTRICTED_PER_SECOND = 2000
/** Enough at once to join, and for a log of some hundred entries. */
const RESTRICTED_SECONDS = 2
const costOf = ({ header, segments }: Frame): number => segments.reduce((sum, { length }) => sum + length / 8192, 1 + header.length / 128)

/** So long a link may be read and say nothing. */
const HELLO_MS = 5_000

/** A change of a client's that was made. */
interface Told {
  readonly by: ChangeSource
  /** Of an add: the sum, as text. */
  readonly value: Uint8Array
}

interface Client {
  readonly id: string
  /** By number, growing. */
  readonly told: Map<number, Told>
  /** Each change of a lower number has been answered, and the client knows it. */
  done: number
  connection: Connection | null
  forget: Timer | null
  readonly share: Share | null
}

type Change = Extract<StoreRequest, { done: number }>
type Wait = Extract<StoreRequest, { timeoutMs: number }>

/** Serves a store over links, one for each client. PyTorch: `torch.distributed.TCPStore(is_master=True)`. */
export class StoreServer {
  /** The served store, for the server's own program. */
  readonly store: HashStore
  readonly clock: Clock
  readonly limits: StoreLimits
  readonly table: StoreTable
  private readonly ownsStore: boolean
  private readonly rememberMs: number
  private readonly file: ServerFile | null
  private readonly clients = new Map<string, Client>()
  private readonly connections = new Set<Connection>()
  /** Of restricted clients. */
  private readonly rate: Rate
  private readonly budgets: { readonly connections: Budget; readonly clients: Budget; readonly waits: Budget; readonly unread: Budget }
  private id: string
  private bytes = 0
  /** The request that is done just now. */
  private by: ChangeSource | null = null
  private isClosed = false
  /** Of an unexpected error: a client that causes more of them does not fill the output of this process. */
  private hasWarned = false

  /** @throws INVALID_ARGUMENT, TIMEOUT_INVALID, STORE_LOCKED, STORE_FILE_DAMAGED, STORE_FILE_FAILED */
  constructor(options: StoreServerOptions) {
    const { clock, store, file, sync = false, limits, rememberMs = 60_000, random = randomBytes } = options
    this.clock = clock
    this.limits = { ...LIMITS, ...limits }
    const { clients, waitBytes, unreadBytes } = this.limits
    this.rate = new Rate(clock, RESTRICTED_PER_SECOND, RESTRICTED_SECONDS)
    this.budgets = {
      connections: new Budget(clients),
      clients: new Budget(clients),
      waits: new Budget(waitBytes),
      unread: new Budget(unreadBytes, unreadBytes / 8),
    }
    this.rememberMs = checkTime('StoreServer', rememberMs, 'more than 0')
    this.ownsStore = store === undefined
    this.store = store ?? new HashStore(clock)
    this.table = tableOf(this.store)
    checkStore(this.table, file)
    this.id = Buffer.from(random(16)).toString('hex')
    this.file = file === undefined ? null : this.readFile(file, sync)
    this.bytes = bytesIn(this.table)
    this.table.keep = (change) => this.keep(change)
  }

  /** One more client. The link is the server's from now on. Without a guard it may do everything; without a holder it has no other bounds than the server's own. */
  accept(link: Link, guard: StoreGuard | null = null, holder: Holder = NOBODY): void {
    const shareOf = (budget: Budget): Share => budget.share(holder, guard?.isRestricted)
    const { connections, waits, unread, clients } = this.budgets
    const place = shareOf(connections)
    const over = place.take(1)
    const spend = guard?.isRestricted === true ? (amount: number) => this.rate.spend(holder, amount) : () => 0
    const shares = { place, waits: shareOf(waits), unread: shareOf(unread), newClient: () => shareOf(clients), spend }
    const connection = new Connection(this, link, guard, shares)
    this.connections.add(connection)
    if (this.isClosed) connection.refuse(storeEnded())
    else if (over !== null) connection.refuse(overBudget('connect', 'clients', over))
  }

  /** The store ends: clients get STORE_CLOSED. A store that was passed in stays, for its own program. Idempotent. */
  close(): void {
    for (const connection of this.connections) connection.say({ op: 'closed' })
    this.stop()
  }

  /** This server ends, and with a file another may continue: clients look for it for their `graceMs`. Idempotent. */
  stop(): void {
    if (this.isClosed) return
    this.isClosed = true
    for (const connection of [...this.connections]) connection.end()
    for (const client of this.clients.values()) client.forget?.cancel()
    this.clients.clear()
    this.table.keep = null
    if (this.ownsStore) this.store.close()
    this.file?.close()
  }

  /** An error as it travels. The text of an unexpected one stays here: this process prints the server's first as a warning. */
  textOfError(error: unknown): ErrorText {
    if (types.isNativeError(error) && isPostgradError(error)) return errorText(error)
    if (!this.hasWarned) {
      this.hasWarned = true
      // Getters of anything but an error could throw here, too.
      const detail: unknown = types.isNativeError(error) ? error.stack : undefined
      process.emitWarning(`the store that this process keeps threw an unexpected error: ${plainText(error)}`, {
        type: 'STORE_SERVER_FAILED',
        ...(typeof detail === 'string' ? { detail } : {}),
      })
    }
    return errorText(undefined)
  }

  /** How much is here, for tests and for people. */
  counts(): {
    clients: number
    connected: number
    keys: number
    bytes: number
    waits: number
    waitBytes: number
    unreadBytes: number
    told: number
  } {
    let told = 0
    for (const client of this.clients.values()) told += client.told.size
    const keys = this.isClosed ? 0 : this.table.numKeys()
    const { bytes, budgets, clients, connections, table } = this
    const used = { waits: table.waiting, waitBytes: budgets.waits.total, unreadBytes: budgets.unread.total }
    return { clients: clients.size, connected: connections.size, keys, bytes, ...used, told }
  }

  /** @throws STORE_LIMIT */
  hello(id: string, connection: Connection): Client {
    const client = this.clients.get(id) ?? this.remember(id, connection.shares.newClient())
    client.forget?.cancel()
    client.forget = null
    // The client has noticed before us that its last link has ended.
    client.connection?.end()
    client.connection = connection
    connection.say({ op: 'welcome', version: STORE_PROTOCOL_VERSION, store: this.id })
    return client
  }

  left(connection: Connection, client: Client | null): void {
    this.connections.delete(connection)
    if (client?.connection !== connection) return
    client.connection = null
    if (!this.isClosed) this.forgetLater(client)
  }

  forget(client: Client): void {
    client.forget?.cancel()
    if (this.clients.delete(client.id)) client.share?.end()
    if (client.told.size > 0) this.file?.forget(client.id)
  }

  /** Once for each number. @throws errors of the guard and of the store */
  change(client: Client, request: Change, segments: readonly Uint8Array[], guard: StoreGuard | null): [StoreReply, Uint8Array?] {
    const { n, op, done } = request
    const told = client.told.get(n)
    if (told !== undefined) return [replyOf(told)]
    guard?.check(request, segments)
    client.done = Math.max(client.done, done)
    for (const known of client.told.keys()) {
      if (known >= client.done) break
      client.told.delete(known)
    }
    this.by = { client: client.id, n, done, op }
    try {
      return this.make(client, request, segments)
    } finally {
      this.by = null
    }
  }

  private make(client: Client, request: Change, segments: readonly Uint8Array[]): [StoreReply, Uint8Array?] {
    const { table } = this
    const { n, op, key } = request
    switch (op) {
      case 'set':
        table.set(key, segments[0]!)
        return [{ op: 'done', n }]
      case 'add':
        return [{ op: 'number', n, number: table.add(key, request.amount) }]
      case 'compareSet': {
        const value = table.compareSet(key, segments[0]!, segments[1]!)
        // The client has the value that it wants to put.
        return client.told.has(n) ? [{ op: 'done', n }] : [{ op: 'value', n }, value]
      }
      case 'deleteKey':
        return [{ op: 'yes', n, yes: table.deleteKey(key) }]
      default:
        return request satisfies never
    }
  }

  /** Before a change is made, by a client or by the server's own program: within the limits, and in the file. */
  private keep(change: StoreChange): void {
    const { key, value } = change
    const op = this.by?.op ?? 'store'
    const { limits } = this
    const before = this.table.valueOf(key)
    const keyBytes = Buffer.byteLength(key)
    let bytes = this.bytes - (before === undefined ? 0 : keyBytes + before.length)
    if (value !== null) {
      bytes += keyBytes + value.length
      if (keyBytes > limits.keyBytes) throw storeLimit(op, 'bytes in a key', limits.keyBytes)
      if (value.length > limits.valueBytes) throw storeLimit(op, 'bytes in a value', limits.valueBytes)
      if (before === undefined && this.table.numKeys() >= limits.keys) throw storeLimit(op, 'keys in the store', limits.keys)
      if (bytes > this.bytes && bytes > limits.bytes) throw storeLimit(op, 'bytes in the store', limits.bytes)
    }
    this.file?.tidy(this.state())
    this.file?.change(change, this.by)
    this.bytes = bytes
    if (this.by !== null) this.clients.get(this.by.client)?.told.set(this.by.n, toldOf(this.by, value))
  }

  private remember(id: string, share: Share): Client {
    const over = share.take(1)
    if (over !== null) throw overBudget('connect', 'clients', over)
    const client = newClient(id, share)
    this.clients.set(id, client)
    return client
  }

  private forgetLater(client: Client): void {
    client.forget = this.clock.setTimer(this.rememberMs, () => this.forget(client))
  }

  private readFile(path: string, sync: boolean): ServerFile {
    let id: string | null = null
    const file = new ServerFile(path, sync, {
      onStore: (known) => {
        id = known
      },
      onChange: (change) => this.table.apply(change),
      onSource: (by, value) => this.recall(by, value),
      onForget: (client) => this.clients.delete(client),
    })
    if (id === null) file.store(this.id)
    else this.id = id
    for (const client of this.clients.values()) this.forgetLater(client)
    file.tidy(this.state())
    return file
  }

  private recall(by: ChangeSource, value: Uint8Array): void {
    const client = this.clients.get(by.client) ?? newClient(by.client, null)
    this.clients.set(client.id, client)
    client.done = Math.max(client.done, by.done)
    for (const n of client.told.keys()) if (n < client.done) client.told.delete(n)
    client.told.set(by.n, toldOf(by, value))
  }

  private state() {
    const { clients } = this
    return {
      store: this.id,
      entries: () => this.table.entries(),
      *sources(): Iterable<[ChangeSource, Uint8Array]> {
        for (const { told } of clients.values()) for (const { by, value } of told.values()) yield [by, value]
      },
    }
  }
}

function newClient(id: string, share: Share | null): Client {
  return { id, told: new Map(), done: 1, connection: null, forget: null, share }
}

/** The shares of one connection in the budgets, and that of its client if it is a new one. */
interface Shares {
  readonly place: Share
  readonly waits: Share
  readonly unread: Share
  readonly newClient: () => Share
  /** Of the rate. @returns for how long, in ms, nothing more is read */
  readonly spend: (amount: number) => number
}

const NO_BYTES = new Uint8Array(0)

function toldOf(by: ChangeSource, value: Uint8Array | null): Told {
  return { by, value: by.op === 'add' && value !== null ? value : NO_BYTES }
}

/** The answer from when the change was made. */
function replyOf({ by: { n, op }, value }: Told): StoreReply {
  switch (op) {
    case 'set':
    case 'compareSet':
      return { op: 'done', n }
    case 'add':
      return { op: 'number', n, number: Number(textOf(value)) }
    case 'deleteKey':
      return { op: 'yes', n, yes: true }
    default:
      return op satisfies never
  }
}

/** One client's link. A frame that is not a request ends it. */
class Connection {
  private readonly server: StoreServer
  private readonly link: Link
  private readonly guard: StoreGuard | null
  readonly shares: Shares
  private client: Client | null = null
  private readonly waits = new Map<number, AbortController>()
  /** Of all waits, each as often as it is named. */
  private waitKeys = 0
  private helloTimer: Timer | null = null
  /** Nothing is read until then. */
  private pauseTimer: Timer | null = null
  private isEnded = false

  constructor(server: StoreServer, link: Link, guard: StoreGuard | null, shares: Shares) {
    this.server = server
    this.link = link
    this.guard = guard
    this.shares = shares
    link.open({ onFrame: (frame) => this.onFrame(frame), onTurnEnd() {}, onClose: () => this.end() })
    // A new connection does not buy a new rate.
    this.pause(shares.spend(0))
    if (this.pauseTimer === null) this.awaitHello()
  }

  say(reply: StoreReply, value?: Uint8Array): void {
    if (this.isEnded || this.link.closed) return
    const frame = encodeFrame(reply, value === undefined ? [] : [value])
    const bytes = ANSWER_BYTES + frame.header.length + (value?.length ?? 0)
    const { unread } = this.shares
    // A client that reads nothing is cut off without a message.
    if (unread.take(bytes) !== null) {
      this.end()
      return
    }
    try {
      this.link.send(frame, undefined, () => {
        if (!this.isEnded) unread.give(bytes)
      })
    } catch {
      // This was too much for its link, which has ended.
      this.end()
    }
  }

  refuse(error: unknown): void {
    this.say({ op: 'refused', error: this.server.textOfError(error) })
    this.end()
  }

  /** The server keeps only its answers to the client. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.helloTimer?.cancel()
    this.pauseTimer?.cancel()
    for (const wait of this.waits.values()) wait.abort()
    this.waits.clear()
    const { place, waits, unread } = this.shares
    for (const share of [place, waits, unread]) share.end()
    this.link.close()
    this.server.left(this, this.client)
  }

  private onFrame(frame: Frame): void {
    if (this.isEnded) return
    this.pause(this.shares.spend(costOf(frame)))
    try {
      this.onRequest(decodeRequest(frame), frame.segments)
    } catch (error) {
      this.refuse(error)
    }
  }

  /** The rest stays with the client. */
  private pause(ms: number): void {
    if (ms === 0 || this.pauseTimer !== null) return
    this.link.setPaused?.(true)
    this.pauseTimer = this.server.clock.setTimer(ms, () => {
      this.pauseTimer = null
      this.link.setPaused?.(false)
      if (this.client === null && this.helloTimer === null) this.awaitHello()
    })
  }

  /** Called once it is read. */
  private awaitHello(): void {
    this.helloTimer = this.server.clock.setTimer(HELLO_MS, () => this.end())
  }

  /** If it throws, the connection ends: only for requests that no client of ours sends. */
  private onRequest(request: StoreRequest, segments: readonly Uint8Array[]): void {
    if (request.op === 'hello') {
      this.hello(request)
      return
    }
    const { client } = this
    if (client === null) throw outOfPlace(`'${request.op}' before 'hello'`)
    switch (request.op) {
      case 'bye':
        this.end()
        this.server.forget(client)
        return
      case 'cancel': {
        const wait = this.waits.get(request.of)
        this.waits.delete(request.of)
        wait?.abort()
        return
      }
      case 'get':
      case 'wait':
        void this.wait(request)
        return
      case 'check':
        this.answer(request.n, () => {
          this.guard?.check(request, segments)
          return [{ op: 'yes', n: request.n, yes: this.server.table.check(request.keys) }]
        })
        return
      case 'numKeys':
        this.answer(request.n, () => {
          this.guard?.check(request, segments)
          return [{ op: 'number', n: request.n, number: this.server.table.numKeys() }]
        })
        return
      case 'set':
      case 'add':
      case 'compareSet':
      case 'deleteKey':
        if (request.n < client.done) throw outOfPlace(`number ${request.n} after its answer was received`)
        if (request.done > request.n) throw outOfPlace(`'done' beyond its own number`)
        if (client.told.size > 2 * WINDOW && request.done <= client.done)
          throw storeLimit(request.op, 'requests without an answer', 2 * WINDOW)
        this.answer(request.n, () => this.server.change(client, request, segments, this.guard))
        return
      default:
        request satisfies never
    }
  }

  private hello({ version, client }: Extract<StoreRequest, { op: 'hello' }>): void {
    if (this.client !== null) throw outOfPlace(`a second 'hello'`)
    if (version !== STORE_PROTOCOL_VERSION) {
      throw new PostgradError('VERSION_MISMATCH', {
        op: 'connect',
        expected: `version ${STORE_PROTOCOL_VERSION} of the store's protocol`,
        got: `version ${version}`,
        remedy: 'Let all workers use the same version of postgrad.',
      })
    }
    this.client = this.server.hello(client, this)
    this.helloTimer?.cancel()
    this.helloTimer = null
  }

  private answer(n: number, run: () => [StoreReply, Uint8Array?]): void {
    let reply: [StoreReply, Uint8Array?]
    try {
      reply = run()
    } catch (error) {
      reply = [{ op: 'error', n, error: this.server.textOfError(error) }]
    }
    this.say(...reply)
  }

  /** Takes room for a wait whose keys are not all there. @returns the bytes that it counts for. @throws STORE_LIMIT */
  private takeWait(op: string, keys: readonly string[]): number {
    const { waitKeys } = this.server.limits
    if (this.waitKeys + keys.length > waitKeys) throw storeLimit(op, 'keys of a client’s waits', waitKeys)
    const bytes = keys.reduce((sum, key) => sum + WAIT_KEY_BYTES + 2 * key.length, WAIT_BYTES)
    const over = this.shares.waits.take(bytes)
    if (over !== null) throw overBudget(op, 'bytes of waits', over)
    this.waitKeys += keys.length
    return bytes
  }

  private async wait(request: Wait): Promise<void> {
    const { n, op, timeoutMs } = request
    const { table, limits } = this.server
    if (this.waits.has(n)) {
      this.refuse(outOfPlace(`number ${n} twice`))
      return
    }
    if (this.waits.size >= limits.waits) {
      this.say({ op: 'error', n, error: errorText(storeLimit(op, 'waits of a client at a time', limits.waits)) })
      return
    }
    const keys = op === 'get' ? [request.key] : request.keys
    let bytes = 0
    try {
      this.guard?.check(request, [])
      if (!table.check(keys)) bytes = this.takeWait(op, keys)
    } catch (error) {
      this.say({ op: 'error', n, error: this.server.textOfError(error) })
      return
    }
    const controller = new AbortController()
    this.waits.set(n, controller)
    const options = { timeoutMs, signal: controller.signal }
    let reply: [StoreReply, Uint8Array?]
    try {
      if (op === 'get') reply = [{ op: 'value', n }, await table.get(request.key, options)]
      else {
        await table.wait(request.keys, options)
        reply = [{ op: 'done', n }]
      }
    } catch (error) {
      reply = [{ op: 'error', n, error: this.server.textOfError(error) }]
    }
    if (bytes > 0) {
      this.waitKeys -= keys.length
      if (!this.isEnded) this.shares.waits.give(bytes)
    }
    // A wait that was cancelled is not answered.
    if (this.waits.get(n) !== controller) return
    this.waits.delete(n)
    this.say(...reply)
  }
}

function overBudget(op: string, what: string, { level, limit }: OverBudget): PostgradError {
  return storeLimit(op, level === 'process' ? what : `${what} of ${ofLevel(level)}`, limit)
}

function outOfPlace(got: string): PostgradError {
  return new PostgradError('STORE_FRAME_INVALID', {
    op: 'store request',
    expected: 'requests in their order',
    got,
    remedy: 'The other end is not a client of this version.',
  })
}

function storeEnded(): PostgradError {
  return new PostgradError('STORE_CLOSED', {
    op: 'connect',
    message: 'the server has ended',
    remedy: 'Look at the worker that keeps the store.',
  })
}

function checkStore(table: StoreTable, file: string | undefined): void {
  const got =
    table.keep !== null ? 'one that is served already' : file !== undefined && table.numKeys() > 0 ? 'one with keys, and a file' : null
  if (got === null) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'StoreServer',
    expected: 'a store that nobody else serves, and an empty one with a file',
    got,
    remedy: 'Leave { store } out, and use the server’s own.',
  })
}

function bytesIn(table: StoreTable): number {
  let bytes = 0
  for (const [key, value] of table.entries()) bytes += utf8(key).length + value.length
  return bytes
}
