/**
 * The core of a worker: its name, its clock, its mailbox, the workers that it knows, and the methods by which parts install themselves. References, actors,
 * groups, streams, observation and the parts of other packages each take a slot, message handlers, an interceptor, and a listener for the end. The core
 * knows none of them. `message-path.ts` carries messages, `requests.ts` sends requests; users hold its subclass in `worker-runtime.ts`.
 */
import assert from 'node:assert'
import { type DeadLetterReason, DeadLetters, Pump, Source } from '@postgrad/actor/internal'
import type { PostgradError, WorkerId } from '@postgrad/base'
import { checkTime, checkWorkerId, endTrace, IdCounter, inOwnScope, inScope, Lane, Scope } from '@postgrad/base/internal'
import type { Device, Generator } from '@postgrad/tensor'
import type { HeapTransport } from '@postgrad/tensor/internal'
import type { Clock, Link, LinkClosed } from '@postgrad/transport'
import { Allowance } from '@postgrad/transport/internal'
import { type Codec, MessageType, type PassHead } from '@postgrad/wire/internal'
import { type Authority, MEMBER } from '../common/authority.js'
import { type FunctionRegistry, threadRegistry } from '../common/function-registry.js'
import { shutDownError } from '../common/rpc-errors.js'
import { checkWorkerName, type Target, type WorkerInfo } from '../common/worker-info.js'
import { checkMailbox, type MailboxOptions } from './call-credits.js'
import { checkDeviceMap, type DeviceMap, PeerDevices } from './device-map.js'
import type { ContextHead, Handler, Interceptor, Observer } from './hooks.js'
import type { Runnable } from './incoming-call.js'
import { Inflow, REFUSALS_MAX, REFUSALS_PER_SECOND } from './inflow.js'
import { type Envelope, MessagePath } from './message-path.js'
import { Outbox } from './outbox.js'
import { type Peer, Standing } from './peer.js'
import { PeerLedger } from './peer-ledger.js'
import { Peers } from './peers.js'
import { Activity } from './pending-calls.js'
import { ReadingShare } from './reading-share.js'
import { RequestTable } from './request-table.js'
import { Requests, type RequestsHost } from './requests.js'
import type { Wait } from './waits.js'

/** PyTorch's default, in ms. */
export const RPC_TIMEOUT_MS = 60_000

export interface CoreOptions {
  readonly name: string
  readonly id: WorkerId
  readonly clock: Clock
  /**
   * It is linked with the workers, calls and is called, but is not in their group: `workers()`, the groups that name nobody and `shutdown` leave it out, for
   * itself too. Default false.
   */
  readonly isGuest?: boolean
  /** Decides what others may have done here, by their roles (`connect`, `setPeerRole`). Default: everybody everything, as in PyTorch. */
  readonly authority?: Authority
  /** Functions that may be called here; default those of this thread (`expose`). */
  readonly registry?: FunctionRegistry
  /** Where kernels run; default the thread's. */
  readonly device?: Device
  /** Random numbers of this worker; default the thread's. */
  readonly generator?: Generator
  /** Default deadline of a call in ms; 0 is none. */
  readonly rpcTimeoutMs?: number
  /** How much may wait of one worker's calls at another. The same for all workers of a cluster: each end counts by its own. */
  readonly mailbox?: MailboxOptions
  /** The finalizers of references release them at their owners, or (in a simulation, where nothing may depend on the collector) only count. */
  readonly finalizers?: 'release' | 'report'
  /** Keeps the stack of where each reference was made, for `references()`: 2 µs for each. Default false. */
  readonly referenceStacks?: boolean
  /** Whether errors that this worker sends say where they arose. Default true. */
  readonly remoteStacks?: boolean | undefined
  /** The remedy of WORKER_DIED for a peer whose link ended with this detail. Default: one that says nothing of the cluster. */
  readonly deathRemedy?: (detail: string) => string
  /** Gets what no user code can catch; default: thrown in a turn of its own, where it is an uncaught exception (a simulation's run fails with it). */
  readonly onBug?: (error: unknown) => void
  /** Gets what the handler of a message threw, which is a dead letter and ends what the message was about; default as `onBug`, so that no test overlooks it. */
  readonly onHandlerError?: (error: unknown) => void
}

/** Dead letters that a peer which keeps to the protocol, and to its role, does not cause … */
const REFUSALS: ReadonlySet<DeadLetterReason> = new Set(['invalid', 'unreadable', 'failed', 'mailbox-full'])
/** … and those that come of being late. */
const LATE: ReadonlySet<DeadLetterReason> = new Set(['unknown-request', 'unknown-reference', 'tombstone', 'stale-pass'])

/** The cost of a refusal to a restricted role's allowance: it takes some 37 µs, a message that comes to nothing a fifth of that. */
const ANSWERED_REFUSAL = 5

/** Replaces the link of a dead peer, whose buffers would stay for as long as a call of it is served here. */
const ENDED_LINK: Link = {
  closed: true,
  open: () => {},
  send: () => {
    throw new Error('sent on a link that has ended')
  },
  flush: () => {},
  poll: () => 0,
  close: () => {},
}

export abstract class WorkerCore implements RequestsHost {
  /** The name and id of this worker. */
  readonly info: WorkerInfo
  /** The worker's clock. */
  readonly clock: Clock
  /** One counter for contexts, autograd messages, passes, references and forks of this worker. */
  readonly ids: IdCounter
  /** The scope of this worker's own work: no context, no deadline, grad mode on. */
  readonly scope: Scope
  /** What may be called here. */
  readonly registry: FunctionRegistry
  /** Whether it is not in the group. */
  readonly isGuest: boolean
  /** As it was made; each part reads its own. */
  readonly options: CoreOptions
  readonly onBug: (error: unknown) => void
  readonly onHandlerError: (error: unknown) => void
  readonly pump: Pump<Runnable>
  readonly peers: Peers
  readonly activity = new Activity()
  readonly letters = new DeadLetters()
  readonly messages: MessagePath
  readonly requests: Requests
  observer: Observer | null = null
  /** Whether a context, or a pass, has come to a worker through this one; set by the package that knows of them. */
  takesPart: (message: ContextHead, worker: WorkerId) => boolean = () => false
  isDraining = false
  isClosed = false
  private readonly window: Required<MailboxOptions>
  private defaultTimeoutMs: number
  private closedError: PostgradError | null = null
  private readonly allowances = new Map<WorkerId | string, Allowance>()
  private readonly reading: ReadingShare
  private readonly slots = new Map<symbol, unknown>()
  private readonly counts: (() => Record<string, number>)[] = []
  private readonly waitLists: (() => Iterable<Wait>)[] = []
  private readonly connectListeners: ((peer: WorkerInfo) => void)[] = []
  private readonly closeListeners: ((closedBy: () => PostgradError) => void)[] = []

  constructor(options: CoreOptions) {
    const { name, id, clock, isGuest = false, device = null, generator = null, onBug, onHandlerError } = options
    checkWorkerName(name)
    checkWorkerId(id)
    this.info = Object.freeze({ name, id })
    this.clock = clock
    this.ids = new IdCounter(id)
    this.options = options
    this.isGuest = isGuest
    this.defaultTimeoutMs = checkTime('rpcTimeoutMs', options.rpcTimeoutMs ?? RPC_TIMEOUT_MS, '0 for no limit')
    this.registry = options.registry ?? threadRegistry
    this.window = checkMailbox(options.mailbox)
    this.onBug = onBug ?? ((error) => throwLater(clock, error))
    this.onHandlerError = onHandlerError ?? this.onBug
    const scope = new Scope({ worker: this, device, generator }, {})
    this.scope = scope
    // Its items are dispatched in the context in which it is made, so in this scope.
    this.pump = inScope(scope, () => new Pump({ clock, dispatch: (item) => item.run(), onBug: this.onBug }))
    this.pump.onDrained(() => this.activity.changed())
    this.peers = new Peers(clock, (info) => this.peer(info, ENDED_LINK, null, false, MEMBER), options.deathRemedy)
    this.messages = new MessagePath(this)
    this.reading = new ReadingShare(clock, this.messages)
    this.requests = new Requests(this, this.messages)
    this.addPeer(this.info, null, null, isGuest)
    this.contribute(() => ({
      pendingCalls: this.requests.pendingCount,
      openLinks: [...this.peers].filter(({ link }) => link !== null && !link.closed).length,
      lateMessages: this.lateMessages,
      deadLetters: this.letters.total,
    }))
  }

  /** The default deadline of this worker's calls, in ms; 0: without a limit. */
  get rpcTimeoutMs(): number {
    return this.defaultTimeoutMs
  }

  /**
   * Sets the default deadline of this worker's later calls, in ms; 0: without a limit.
   * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
   */
  setRpcTimeout(timeoutMs: number): void {
    this.defaultTimeoutMs = checkTime('setRpcTimeout', timeoutMs, '0 for no limit')
  }

  /**
   * @internal Says on which devices of another worker tensors of this worker's devices arrive. Replies and gradients take the inverse way. The map replaces an earlier one,
   * and is for this life of the other worker. PyTorch: `TensorPipeRpcBackendOptions.set_device_map`.
   * @throws UNKNOWN_WORKER, WORKER_DIED, RPC_SHUT_DOWN, INVALID_ARGUMENT, DEVICE_UNKNOWN
   */
  setDeviceMap(to: Target, map: DeviceMap): void {
    const peer = this.peers.resolve(this.resolve(to, 'setDeviceMap').id, 'setDeviceMap')
    const entries = checkDeviceMap('setDeviceMap', map)
    this.messages.post(peer, MessageType.DEVICE_MAP, [entries])
    peer.env.devices.set(entries)
  }

  get codec(): Codec {
    return this.messages.codec
  }

  /** Runs `fn` as this worker, and returns its result: inside, `currentWorker()` returns this worker. */
  run<T>(fn: () => T): T {
    return inScope(this.scope, fn)
  }

  // --- the workers that it knows

  /**
   * Opens a link to another worker, which may be a guest, and may have another role than 'member'; large tensors take the transport through a heap that both share, if there is one.
   * @throws WORKER_NAME_TAKEN, WORKER_NAME_INVALID, WORKER_ID_OUT_OF_RANGE, RPC_SHUT_DOWN
   */
  connect(info: WorkerInfo, link: Link, transport: HeapTransport | null = null, isGuest = false, role = MEMBER): void {
    if (this.isClosed) throw shutDownError('connect', this.info)
    this.peers.admit(info)
    const peer = this.addPeer(info, link, transport, isGuest, role)
    const { pump, messages, reading } = this
    // During a long stretch of node tasks what this worker has sent is flushed as well.
    const removePoll = pump.addPoll(() => {
      link.flush()
      const frames = link.poll()
      // At once: it may be long until a timer comes to its turn.
      if (frames > 0) messages.progress.tell(peer)
      return frames
    })
    link.open({
      onFrame: (frame) => reading.receive(peer, frame),
      onTurnEnd: () => {
        pump.runNow()
        messages.progress.tellSoon(peer)
      },
      onClose: (reason) => {
        removePoll()
        this.onLinkClosed(peer, reason)
      },
    })
    for (const listener of this.connectListeners) listener(info)
  }

  /** The role of a worker that is linked, as its credentials have proven it: for links that know it only later. Before anything of it is received. @throws UNKNOWN_WORKER */
  setPeerRole(id: WorkerId, role: string): void {
    this.peers.resolve(id, 'setPeerRole').role = role
  }

  /** The role of a worker, 'member' where nothing else was said of it. @throws UNKNOWN_WORKER */
  peerRole(id: WorkerId): string {
    return this.peers.resolve(id, 'peerRole').role
  }

  private addPeer(info: WorkerInfo, link: Link | null, transport: HeapTransport | null, isGuest: boolean, role = MEMBER): Peer {
    const peer = this.peer(info, link, transport, isGuest, role)
    this.peers.add(peer)
    // Not of one that is made for a call to the dead: that call ends where it begins, and nobody would take it off again.
    this.requests.deadlines.watch(peer.pending)
    return peer
  }

  private peer(info: WorkerInfo, link: Link | null, transport: HeapTransport | null, isGuest: boolean, role: string): Peer {
    const source = new Source(info.name)
    const holdCalls = (isHeld: boolean) => {
      const { mailbox } = this.pump
      if (isHeld) mailbox.holdCalls(source)
      else mailbox.releaseCalls(source)
      this.pump.wake()
    }
    return {
      info,
      link,
      isGuest,
      role,
      standing: Standing.member,
      source,
      env: { peer: info, devices: new PeerDevices(info, link === null), sending: null, received: null },
      pending: this.requests.pendingFor(info),
      served: new RequestTable(),
      ledger: new PeerLedger(this.window, this.clock, transport),
      outbox: new Outbox(),
      inflow: link?.setPaused === undefined ? null : new Inflow(this.clock, link, holdCalls),
    }
  }

  /** Whether a link to a worker of this name is open. A name is free for another worker when it is not. */
  isLinkedTo(name: string): boolean {
    return this.peers.namesake(name)?.link?.closed === false
  }

  /** Notes a worker that died before this one began, or a former life of this one: references to its values fail with WORKER_DIED. */
  noteDeath(worker: WorkerInfo, detail: string): void {
    this.peers.noteDeath(worker, detail)
  }

  /**
   * Returns the name and id of a worker, by its name, its id or its info.
   * @throws UNKNOWN_WORKER if this worker does not know it
   */
  abstract resolve(target: Target, op?: string): WorkerInfo

  /** Returns the living workers that this worker knows, itself included. Workers that are leaving and guests (such as a main thread) are not in the list. */
  abstract workers(): WorkerInfo[]

  /** The error that everything about this worker meets, if it is known to be dead. */
  deathOf(id: WorkerId): PostgradError | null {
    return this.peers.deathOf(id)
  }

  reachable(id: WorkerId): Peer | undefined {
    const peer = this.peers.get(id)
    return peer === undefined || this.isClosed || peer.link?.closed ? undefined : peer
  }

  /** Blocks that peers have not read yet. */
  get blocksOnTheWay(): number {
    let count = 0
    for (const { ledger } of this.peers) count += ledger.transport?.inFlight ?? 0
    return count
  }

  /** Messages that wait for a device. */
  get lateMessages(): number {
    let count = 0
    for (const { outbox } of this.peers) count += outbox.size
    return count
  }

  /** They will not be sent: what is sent from now on need not wait for them. */
  dropLateMessages(): void {
    for (const { outbox } of this.peers) outbox.close()
  }

  /** Peers that have not read them. */
  get unread(): WorkerInfo[] {
    return [...this.peers].filter(({ ledger }) => (ledger.transport?.inFlight ?? 0) > 0).map(({ info }) => info)
  }

  // --- where parts install themselves

  /** One object per worker and key, made when it is first asked for. `WorkerSlot` is the typed form. */
  slot<T>(key: symbol, make: () => T): T {
    if (!this.slots.has(key)) this.slots.set(key, make())
    return this.slots.get(key) as T
  }

  /** Takes one-way messages of a type; runs in this worker's own scope. */
  handle(type: MessageType, handler: Handler): void {
    this.messages.handle(type, handler)
  }

  /** `handler` gets messages of a type that could not be read, in their turn, if they say which pass they were about. `isFailure`: the sender could not have its values. */
  handleUnreadable(type: MessageType, handler: (pass: PassHead, error: unknown, from: WorkerInfo, isFailure: boolean) => void): void {
    this.messages.handleUnreadable(type, ({ pass, error, peer, failed }) => {
      if (pass !== null) handler(pass, error, peer.info, failed !== null)
    })
  }

  /** Puts something between the messages of calls and their ends; see `Interceptor`. */
  intercept(interceptor: Interceptor): void {
    this.messages.interceptors.push(interceptor)
  }

  /** Sends a one-way message, past the interceptors. @throws UNKNOWN_WORKER, WORKER_DIED, RPC_SHUT_DOWN */
  post(to: WorkerId, type: MessageType, body: readonly unknown[], envelope?: Envelope): void {
    this.messages.post(this.peers.resolve(to), type, body, envelope)
  }

  /** Puts a task into the mailbox's task lane; of those that wait the highest `priority` runs first. */
  pushTask(task: Runnable, priority: number): void {
    this.pump.mailbox.pushTask(task, priority)
    this.pump.wake()
  }

  /** Runs `fn` in this worker's own scope, after the calls that wait in the mailbox. */
  later(fn: () => void): void {
    this.pump.mailbox.push(Lane.call, { run: () => inOwnScope(this.scope, fn) })
    this.pump.wake()
  }

  /**
   * Looks at the links in the middle of long work of this thread (a pause of a kernel): what has arrived is read into the mailbox, what was sent
   * is flushed, and no user code runs. Returns how much waits.
   */
  lookAround(): number {
    return inScope(this.scope, () => this.pump.look())
  }

  /** `fn` runs each time that the mailbox has become empty, before what was sent is posted. */
  onDrained(fn: () => void): void {
    this.pump.onDrained(fn)
  }

  /** `fn` runs when a link to another worker was opened. */
  onPeerConnect(fn: (peer: WorkerInfo) => void): void {
    this.connectListeners.push(fn)
  }

  /** `fn` runs once per dead peer, after everything that was received from it. */
  onPeerDeath(fn: (peer: WorkerInfo, error: PostgradError) => void): void {
    this.peers.liveness.watch(({ worker }) => fn(worker, this.deathOf(worker.id)!))
  }

  /** `fn` runs when this worker shuts down, before its links close; its argument gives the error for what that cuts short. */
  onClose(fn: (closedBy: () => PostgradError) => void): void {
    this.closeListeners.push(fn)
  }

  /** A message that can be read and cannot be right: a dead letter. */
  refuseInvalid(from: WorkerInfo, type: MessageType, why: string): void {
    this.messages.refuseInvalid(from, type, why)
  }

  /** A dead letter. `from` is who sent it; null: it arose here. */
  letter(reason: DeadLetterReason, what: string, from: WorkerInfo | null = null): void {
    const letter = { reason, atMs: this.clock.now(), from: from === null ? null : from.name, what }
    this.letters.add(letter)
    this.observer?.deadLetter(letter)
    if (from === null) return
    if (REFUSALS.has(reason)) this.refused(from.id)
    else if (LATE.has(reason)) this.idle(from.id)
  }

  /** A message of this worker came to nothing, as late ones do. In a restricted role that counts as a refusal, or the worker could send such messages as fast as it likes. */
  idle(id: WorkerId): void {
    const peer = this.peers.get(id)
    if (peer !== undefined && this.messages.gate?.isRestricted(peer) === true) this.refused(id, 1)
  }

  /** A message of this worker was refused, which may happen only so often. Of a worker in a restricted role it costs `amount` of the allowance. */
  refused(id: WorkerId, amount = ANSWERED_REFUSAL): void {
    const peer = this.peers.get(id)
    if (peer === undefined || peer.inflow === null) return
    // Anybody who has the key of a restricted role can come under any number of names, so its role has one allowance.
    const key = this.messages.gate?.isRestricted(peer) === true ? peer.role : id
    const allowance = this.allowances.get(key) ?? new Allowance(this.clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    this.allowances.set(key, allowance)
    peer.inflow.onRefused(allowance, key === id ? 1 : amount)
  }

  /** Adds to `debugInfo`. */
  contribute(fn: () => Record<string, number>): void {
    this.counts.push(fn)
  }

  /** Returns the counts of this worker's objects and waits, by name. After a program has cleaned up, each count is as at the start. */
  debugInfo(): Record<string, number> {
    const info: Record<string, number> = {}
    for (const contribute of this.counts) {
      for (const [key, count] of Object.entries(contribute())) {
        assert(!(key in info), `two counts are called ${key}`)
        info[key] = count
      }
    }
    return info
  }

  /** Adds to `waits`: what a package above waits for. */
  contributeWaits(fn: () => Iterable<Wait>): void {
    this.waitLists.push(fn)
  }

  protected contributedWaits(): Wait[] {
    return this.waitLists.flatMap((contribute) => [...contribute()])
  }

  // --- ends

  private onLinkClosed(peer: Peer, { by, detail }: LinkClosed): void {
    if (by === 'self' || this.isClosed) return
    const { mailbox } = this.pump
    // Nobody reads any more what its calls give.
    mailbox.releaseCalls(peer.source)
    mailbox.pushLast(peer.source, Lane.control, { run: () => this.onDeath(peer, detail) })
    this.pump.runNow()
  }

  /** Runs after everything received from the peer. */
  private onDeath(peer: Peer, detail: string): void {
    peer.outbox.close()
    peer.ledger.transport?.close()
    peer.inflow?.close()
    this.allowances.delete(peer.info.id)
    try {
      const death = this.peers.deathBy(peer, detail)
      this.observer?.death(peer.info.name, peer.info.id, death.cause)
      this.peers.liveness.report(death)
    } finally {
      this.requests.onDeath(peer)
      peer.link = ENDED_LINK
      this.peers.forgetTheDead()
    }
  }

  /** The error of all that the close cuts short. Made for the first of them: most workers close with nothing under way, and its stack costs 10 µs. */
  get closedBy(): PostgradError {
    this.closedError ??= shutDownError('close', this.info)
    return this.closedError
  }

  /** Rejects waits with RPC_SHUT_DOWN, answers requests of others that have not begun, closes links. Then nothing is delivered any more; blocks that nobody has read are lost. Idempotent. */
  end(): void {
    if (this.isClosed) return
    try {
      for (const listener of this.closeListeners) listener(() => this.closedBy)
    } finally {
      this.dropLateMessages()
      this.pump.stop((item) => this.messages.stopped(item))
      this.isClosed = true
      this.requests.close()
      for (const peer of this.peers) {
        const { ledger, link, inflow } = peer
        this.requests.failAll(peer)
        ledger.telling?.cancel()
        inflow?.close()
        link?.close()
        ledger.transport?.end()
      }
      // Last: its readers get the ends of what was waited for.
      endTrace(this)
    }
  }
}

function throwLater(clock: Clock, error: unknown): void {
  clock.defer(() => {
    throw error
  })
}
