/**
 * A store that a server keeps (`store-server.ts`), reached over links that the caller makes: `connect` gives one, and another when that has ended. The
 * protocol is `store-protocol.ts`. PyTorch: `TCPStore`.
 *
 *              connect()           welcome
 *     idle ──▸ connecting ──▸ greeting ──▸ open ──link ends──▸ connecting …      after connectMs or graceMs without a welcome: closed
 *
 * Requests that were not answered when a link ended are sent again over the next, in order. A change is done once all the same; a read is done again, so if
 * nobody awaited it, it may then see later changes of the same client (STO-18). The server counts the time of
 * waits; only when it does not answer, a wait ends here, a second late.
 */
import { randomBytes } from 'node:crypto'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime, onAbort, timeLimit } from '@postgrad/base/internal'
import type { Clock, Timer } from '../clock.js'
import type { Frame, Link } from '../link.js'
import { STORE_TIMEOUT_MS, type Store, type StoreValue, type StoreWaitOptions } from './store.js'
import { storeCancelled, storeClosed, storeEnded, storeLimit, storeTimeout } from './store-errors.js'
import {
  decodeReply,
  encodeFrame,
  errorOf,
  HEADER_BYTES_MAX,
  STORE_PROTOCOL_VERSION,
  type StoreReply,
  type StoreRequest,
  WINDOW,
} from './store-protocol.js'
import { bytesOf, checkAmount, checkKey, checkKeys, textOf } from './store-values.js'

/** Options of `TcpStore`. */
export interface TcpStoreOptions {
  readonly clock: Clock
  /** Dials the server; the link is the store's from then on. Called again when a link has ended. */
  readonly connect: () => Promise<Link>
  /** So long the server may take to be there at first, in ms. Default 30,000. */
  readonly connectMs?: number
  /** So long it may be gone later, in ms; less than the server's `rememberMs`. Default 10,000. */
  readonly graceMs?: number
  /** So long it may take to answer, except a wait, in ms. Default 30,000. */
  readonly answerMs?: number
  /** 16 bytes at random, by which the server knows this client again; for tests. */
  readonly random?: (bytes: number) => Uint8Array
}

type Asked = Extract<StoreRequest, { n: number }>
type WithoutNumbers<T> = T extends unknown ? Omit<T, 'n' | 'done'> : never

interface Pending {
  readonly n: number
  readonly request: WithoutNumbers<Asked>
  readonly segments: readonly Uint8Array[]
  readonly isChange: boolean
  /** Of a wait, its start and its limit, or Infinity. Null for other requests. */
  readonly wait: { readonly sinceMs: number; readonly limitMs: number } | null
  /** Over the link that there is now. */
  isSent: boolean
  /** When it was sent first. */
  sentMs: number | null
  settle(reply: StoreReply, value: Uint8Array | undefined): void
  fail(error: unknown): void
}

type State = 'idle' | 'connecting' | 'greeting' | 'open' | 'closed'

/** After the first try, which is at once; each time twice that, up to the second. */
const BACKOFF_MS = [50, 1000] as const
/** The server counts a wait's time; this much later it is taken not to answer. */
const WAIT_GRACE_MS = 1000

/** Dialling again does not cure these. */
const FINAL = ['AUTH_FAILED', 'VERSION_MISMATCH', 'CLUSTER_MISMATCH', 'CREDENTIALS_REQUIRED', 'WRONG_PEER', 'ADDRESS_INVALID']

/** A store that a server keeps for many processes. It survives the ends of its links, and the server's if that has a file. PyTorch: `torch.distributed.TCPStore`. */
export class TcpStore implements Store {
  private readonly clock: Clock
  private readonly connect: () => Promise<Link>
  private readonly graceMs: number
  private readonly answerMs: number
  private readonly id: string
  private state: State = 'idle'
  private link: Link | null = null
  /** Unanswered requests by number, growing. */
  private readonly pending = new Map<number, Pending>()
  private nextNumber = 1
  /** Sent over this link and not answered, but for waits. */
  private underWay = 0
  private unsent = 0
  private timeoutMs = STORE_TIMEOUT_MS
  private limitMs: number
  private backoffMs = 0
  private retryTimer: Timer | null = null
  private giveUpTimer: Timer | null = null
  private answerTimer: Timer | null = null
  private serverStore: string | null = null
  private lastFailure: unknown = undefined
  /** Its error; null while it is open. */
  private end: ((op: string) => PostgradError) | null = null

  /** Dials when it is first used. @throws TIMEOUT_INVALID */
  constructor({ clock, connect, connectMs = 30_000, graceMs = 10_000, answerMs = 30_000, random = randomBytes }: TcpStoreOptions) {
    this.clock = clock
    this.connect = connect
    this.limitMs = checkTime('TcpStore', connectMs, 'more than 0')
    this.graceMs = checkTime('TcpStore', graceMs, 'more than 0')
    this.answerMs = checkTime('TcpStore', answerMs, 'more than 0')
    this.id = Buffer.from(random(16)).toString('hex')
  }

  async set(key: string, value: StoreValue): Promise<void> {
    await this.ask({ op: 'set', key }, [bytesOf('set', key, value)], done)
  }

  async get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    checkKey('get', key)
    return this.waitFor({ op: 'get', key }, options, bytesFrom)
  }

  async getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return textOf(await this.get(key, options))
  }

  async add(key: string, amount: number): Promise<number> {
    checkAmount(key, amount)
    return this.ask({ op: 'add', key, amount }, [], numberOf)
  }

  async compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    const [before, after] = [bytesOf('compareSet', key, expected), bytesOf('compareSet', key, desired)]
    return this.ask({ op: 'compareSet', key }, [before, after], (reply, value) =>
      reply.op === 'done' ? after.slice() : bytesFrom(reply, value),
    )
  }

  async wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    checkKeys('wait', keys)
    return this.waitFor({ op: 'wait', keys: [...keys] }, options, done)
  }

  async check(keys: readonly string[]): Promise<boolean> {
    checkKeys('check', keys)
    return this.ask({ op: 'check', keys: [...keys] }, [], yesOf)
  }

  async deleteKey(key: string): Promise<boolean> {
    checkKey('deleteKey', key)
    return this.ask({ op: 'deleteKey', key }, [], yesOf)
  }

  numKeys(): Promise<number> {
    return this.ask({ op: 'numKeys' }, [], numberOf)
  }

  setTimeout(timeoutMs: number): void {
    timeLimit('setTimeout', timeoutMs)
    this.timeoutMs = timeoutMs
  }

  /** All waiting calls, and all later ones, fail with STORE_CLOSED. The server's store stays open. Idempotent. */
  close(): void {
    if (this.state === 'open') this.tell({ op: 'bye' })
    this.endWith(storeClosed)
  }

  private async waitFor<T>(
    request: { op: 'get'; key: string } | { op: 'wait'; keys: string[] },
    { timeoutMs = this.timeoutMs, signal }: StoreWaitOptions = {},
    take: (reply: StoreReply, value: Uint8Array | undefined) => T,
  ): Promise<T> {
    const { op } = request
    const limitMs = timeLimit(op, timeoutMs)
    if (signal?.aborted) throw storeCancelled(op, signal.reason)
    const wait = { sinceMs: this.clock.now(), limitMs }
    let n = 0
    const asked = this.ask({ ...request, timeoutMs }, [], take, wait, (number) => {
      n = number
    })
    const giveUp = (error: PostgradError) => {
      const pending = this.pending.get(n)
      if (pending === undefined) return
      this.pending.delete(n)
      if (pending.isSent) this.tell({ op: 'cancel', of: n })
      else this.unsent--
      pending.fail(error)
    }
    const keys = request.op === 'get' ? [request.key] : [...new Set(request.keys)]
    const timer = Number.isFinite(limitMs)
      ? this.clock.setTimer(limitMs + WAIT_GRACE_MS, () => giveUp(unanswered(op, keys, limitMs)))
      : null
    const hear = signal && onAbort(signal, () => giveUp(storeCancelled(op, signal.reason)))
    try {
      return await asked
    } catch (error) {
      // The server counted only the time that was left when it was last asked.
      throw isPostgradError(error, 'STORE_TIMEOUT') && !('answered' in error.values)
        ? storeTimeout(op, (error.values.missing as string[] | undefined) ?? keys, limitMs)
        : error
    } finally {
      timer?.cancel()
      hear?.()
    }
  }

  private ask<T>(
    request: WithoutNumbers<Asked>,
    segments: readonly Uint8Array[],
    take: (reply: StoreReply, value: Uint8Array | undefined) => T,
    wait: Pending['wait'] = null,
    onNumber: (n: number) => void = () => {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { op } = request
      if (this.end !== null) throw this.end(op)
      const n = this.nextNumber++
      const isChange = op === 'set' || op === 'add' || op === 'compareSet' || op === 'deleteKey'
      const settle = (reply: StoreReply, value: Uint8Array | undefined) => {
        if (reply.op === 'error') reject(errorOf(reply.error))
        else resolve(take(reply, value))
      }
      const pending: Pending = { n, request, segments, isChange, wait, isSent: false, sentMs: null, settle, fail: reject }
      // Before it is kept: if it were too long, it would end the connection.
      const { header } = encodeFrame(this.headOf(pending))
      if (header.length > HEADER_BYTES_MAX) throw storeLimit(op, 'bytes of keys in a request', HEADER_BYTES_MAX)
      this.pending.set(n, pending)
      this.unsent++
      onNumber(n)
      if (this.state === 'idle') this.begin()
      else if (this.state === 'open') this.sendMore()
    })
  }

  /** The time that a wait has left; the lowest number of a change that has no answer. */
  private headOf({ n, request, isChange, wait }: Pending): StoreRequest {
    if (isChange) return { ...request, n, done: this.firstChange(n) } as StoreRequest
    if (wait === null) return { ...request, n } as StoreRequest
    const left = wait.limitMs - (this.clock.now() - wait.sinceMs)
    return { ...request, n, timeoutMs: Number.isFinite(left) ? Math.max(left, 1) : 0 } as StoreRequest
  }

  private firstChange(n: number): number {
    for (const pending of this.pending.values()) if (pending.isChange) return pending.n
    return n
  }

  private sendMore(): void {
    if (this.unsent === 0) return
    for (const pending of this.pending.values()) {
      if (pending.isSent) continue
      if (pending.wait === null && this.underWay >= WINDOW) return
      pending.isSent = true
      this.unsent--
      if (pending.wait === null) {
        this.underWay++
        pending.sentMs ??= this.clock.now()
        this.watchAnswers()
      }
      // Copies: the link may take its segments for its own, and these may have to be sent again.
      const segments = pending.segments.map((segment) => segment.slice())
      if (!this.post(encodeFrame(this.headOf(pending), segments)) || this.unsent === 0) return
    }
  }

  private tell(request: StoreRequest): void {
    if (this.state === 'open') this.post(encodeFrame(request))
  }

  /** Whether the link took it; one that has ended says so by itself. */
  private post(frame: Frame): boolean {
    if (this.link === null || this.link.closed) return false
    this.link.send(frame)
    return true
  }

  private begin(): void {
    this.giveUpTimer ??= this.clock.setTimer(this.limitMs, () => this.giveUp())
    this.dial()
  }

  private dial(): void {
    this.retryTimer = null
    this.state = 'connecting'
    this.connect().then(
      (link) => this.onLink(link),
      (error) => this.onRefusal(error),
    )
  }

  private onLink(link: Link): void {
    if (this.state !== 'connecting') {
      link.close()
      return
    }
    this.state = 'greeting'
    this.link = link
    link.open({
      onFrame: (frame) => this.onFrame(link, frame),
      onTurnEnd() {},
      onClose: ({ detail }) => this.onLinkEnd(link, detail),
    })
    this.post(encodeFrame({ op: 'hello', version: STORE_PROTOCOL_VERSION, client: this.id }))
  }

  private onRefusal(error: unknown): void {
    if (this.state !== 'connecting') return
    this.lastFailure = error
    if (FINAL.some((code) => isPostgradError(error, code))) this.closeWith('the server refuses this client', error)
    else this.retry()
  }

  private onLinkEnd(link: Link, detail: string): void {
    if (link !== this.link || this.state === 'closed') return
    this.link = null
    this.lastFailure ??= new PostgradError('LINK_CLOSED', { op: 'store', message: detail })
    this.underWay = 0
    this.unsent = this.pending.size
    for (const pending of this.pending.values()) pending.isSent = false
    // Counted from when the server was last there.
    this.giveUpTimer ??= this.clock.setTimer(this.limitMs, () => this.giveUp())
    this.retry()
  }

  private retry(): void {
    this.state = 'connecting'
    this.retryTimer = this.clock.setTimer(this.backoffMs, () => this.dial())
    this.backoffMs = Math.min(Math.max(2 * this.backoffMs, BACKOFF_MS[0]), BACKOFF_MS[1])
  }

  private giveUp(): void {
    this.closeWith(`its server was not there for ${this.limitMs} ms`, this.lastFailure)
  }

  private onFrame(link: Link, frame: Frame): void {
    if (link !== this.link || this.state === 'closed') return
    let problem: unknown
    try {
      problem = this.onReply(decodeReply(frame), frame.segments[0])
    } catch (error) {
      problem = error
    }
    if (problem !== undefined) this.closeWith('its server says what a store does not say', problem)
  }

  /** The fault in it, or undefined. */
  private onReply(reply: StoreReply, value: Uint8Array | undefined): unknown {
    switch (reply.op) {
      case 'welcome':
        return this.state === 'greeting' ? this.onWelcome(reply) : outOfPlace(reply.op)
      case 'refused':
        this.closeWith('the server refuses this client', errorOf(reply.error))
        return
      case 'closed':
        this.closeWith('the server has closed the store')
        return
      default:
        return this.state === 'open' ? this.onAnswer(reply, value) : outOfPlace(reply.op)
    }
  }

  private onWelcome({ version, store }: Extract<StoreReply, { op: 'welcome' }>): unknown {
    if (version !== STORE_PROTOCOL_VERSION) return outOfPlace(`version ${version}`)
    if (this.serverStore !== null && this.serverStore !== store) {
      this.closeWith('its server was started anew without what the store had in it; with a file it keeps that')
      return
    }
    this.serverStore = store
    this.state = 'open'
    this.limitMs = this.graceMs
    this.backoffMs = 0
    this.lastFailure = undefined
    this.giveUpTimer?.cancel()
    this.giveUpTimer = null
    this.sendMore()
  }

  private onAnswer(reply: Extract<StoreReply, { n: number }>, value: Uint8Array | undefined): unknown {
    const pending = this.pending.get(reply.n)
    // A wait that was given up may have been answered at the same time.
    if (pending === undefined) return reply.n < this.nextNumber ? undefined : outOfPlace(`an answer to number ${reply.n}`)
    if (!pending.isSent || (reply.op !== 'error' && !ANSWERS[pending.request.op].includes(reply.op))) return outOfPlace(reply.op)
    this.pending.delete(reply.n)
    if (pending.wait === null) this.underWay--
    pending.settle(reply, value)
    this.sendMore()
  }

  /** One timer for all: it looks at the oldest when it is due. */
  private watchAnswers(): void {
    this.answerTimer ??= this.clock.setTimer(this.answerMs, () => this.lookAtAnswers())
  }

  private lookAtAnswers(): void {
    this.answerTimer = null
    for (const { wait, sentMs } of this.pending.values()) {
      if (wait !== null || sentMs === null) continue
      const leftMs = sentMs + this.answerMs - this.clock.now()
      if (leftMs <= 0) this.closeWith(`its server has not answered for ${this.answerMs} ms`, this.lastFailure)
      else this.answerTimer = this.clock.setTimer(leftMs, () => this.lookAtAnswers())
      return
    }
  }

  private closeWith(why: string, cause?: unknown): void {
    this.endWith((op) => storeEnded(op, why, cause))
  }

  private endWith(error: (op: string) => PostgradError): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.end = error
    for (const timer of [this.retryTimer, this.giveUpTimer, this.answerTimer]) timer?.cancel()
    this.link?.close()
    this.link = null
    for (const pending of this.pending.values()) pending.fail(error(pending.request.op))
    this.pending.clear()
  }
}

/** Valid answers by request. */
const ANSWERS: { [Op in Asked['op']]: readonly StoreReply['op'][] } = {
  set: ['done'],
  add: ['number'],
  compareSet: ['done', 'value'],
  deleteKey: ['yes'],
  get: ['value'],
  wait: ['done'],
  check: ['yes'],
  numKeys: ['number'],
}

const done = (): void => {}
const numberOf = (reply: StoreReply): number => (reply as { number: number }).number
const yesOf = (reply: StoreReply): boolean => (reply as { yes: boolean }).yes
/** A copy: received bytes may be a part of a large buffer. */
const bytesFrom = (_: StoreReply, value: Uint8Array | undefined): Uint8Array => Uint8Array.from(value!)

function unanswered(op: string, keys: readonly string[], timeoutMs: number): PostgradError {
  return new PostgradError('STORE_TIMEOUT', {
    op,
    message: `after ${Math.round(timeoutMs)} ms the store's server had not answered`,
    remedy: 'Look at the worker that keeps the store.',
    values: { missing: keys, timeoutMs, answered: false },
  })
}

function outOfPlace(got: string): PostgradError {
  return new PostgradError('STORE_FRAME_INVALID', {
    op: 'store reply',
    expected: 'an answer to what was asked',
    got,
    remedy: 'The other end is not a store of this version.',
  })
}
