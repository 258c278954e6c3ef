/**
 * One worker: everything that belongs to it hangs off this object, so that a simulated cluster is N of them in one thread. What comes
 * from the machine (clock, links, generator, device) is passed in. Packages above add theirs with `slot`, `handle` and `intercept`.
 */
import assert from 'node:assert'
import type { DeadLetter, DeadLetterReason } from '@postgrad/actor/internal'
import { Future, PostgradError, type WorkerId } from '@postgrad/base'
import {
  type Canceller,
  callCancelled,
  checkSignal,
  checkTime,
  checkWorkerId,
  collect,
  currentScope,
  IdCounter,
  inScope,
  Lane,
  onAbort,
  outOfTime,
  Scope,
  type ScopePatch,
  timeLimit,
} from '@postgrad/base/internal'
import type { Device, Generator } from '@postgrad/tensor'
import type { HeapRoad } from '@postgrad/tensor/internal'
import type { Clock, Link } from '@postgrad/transport'
import { type Codec, chainOf, type Message, MessageType, type PassHead, setWatched } from '@postgrad/wire/internal'
import type { ActorCell } from '../actors/actor-cell.js'
import { Actors } from '../actors/actors.js'
import { notAnActor, Watches } from '../actors/watches.js'
import type { Delivery, Peer, Runnable } from '../agent/delivery.js'
import { RequestCallback } from '../agent/request-callback.js'
import { type Envelope, RpcAgent, timedOut, wrongReply } from '../agent/rpc-agent.js'
import { handleStreams } from '../agent/stream-serving.js'
import type { Wait, Waits } from '../agent/waits.js'
import type { PendingCall } from '../calls/pending-calls.js'
import { checkWindow, RemoteStream, STREAM_CALL, STREAM_WINDOW, type StreamOptions } from '../calls/stream.js'
import type { MailboxOptions } from '../core/call-credits.js'
import { type CallOptions, checkArgs } from '../core/call-options.js'
import { type AnyClass, type AnyFunction, type FunctionRegistry, threadRegistry } from '../core/function-registry.js'
import type { Interceptor } from '../core/interceptor.js'
import { OwnCall, type ServedCall } from '../core/served-call.js'
import type { Counts } from '../core/traffic.js'
import { checkWorkerName, type Target, type WorkerInfo } from '../core/worker-info.js'
import { Membership } from '../groups/membership.js'
import { type CallInterceptor, CallInterceptors } from '../observe/call-interceptors.js'
import { Inspection, type InspectListener, InspectStream, type InspectStreamOptions } from '../observe/inspection.js'
import { Metrics, type WorkerMetrics } from '../observe/metrics.js'
import type { OwnerRRef, RRef, RRefOptions } from '../references/rref.js'
import { type ReceivedFork, RRefContext } from '../references/rref-context.js'
import type { References } from '../references/rref-table.js'
import { exposeBuiltIns } from './built-ins.js'

export type { Runnable } from '../agent/delivery.js'

/** PyTorch's default, in ms. */
export const RPC_TIMEOUT_MS = 60_000

export interface WorkerOptions {
  readonly name: string
  readonly id: WorkerId
  readonly clock: Clock
  /**
   * It is linked with the workers, calls and is called, and is no member of their group: `workers()`, the groups that name nobody and `shutdown` leave it out, for
   * itself too. Default false.
   */
  readonly isGuest?: boolean
  /** What may be called here; default the names of this thread (`expose`). */
  readonly registry?: FunctionRegistry
  /** Where kernels run; default the thread's. */
  readonly device?: Device
  /** Random numbers of this worker; default the thread's. */
  readonly generator?: Generator
  /** Default deadline of a call in ms; 0 is none. */
  readonly rpcTimeoutMs?: number
  /** How much may wait of one worker's calls at another. The same for all workers of a cluster: each end counts by its own. */
  readonly mailbox?: MailboxOptions
  /** What the finalizer of a reference does: release it at its owner, or (in a simulation, where nothing may depend on the collector) only count. */
  readonly finalizers?: 'release' | 'report'
  /** Keeps the stack of where each reference was made, for `references()`: 2 µs for each. Default false. */
  readonly referenceStacks?: boolean
  /** Gets what no user code can catch; default: thrown in a turn of its own, where it is an uncaught exception (a simulation's run fails with it). */
  readonly onBug?: (error: unknown) => void
  /** Gets what the handler of a message threw, which is a dead letter and ends what the message was about; default as `onBug`, so that no test overlooks it. */
  readonly onHandlerError?: (error: unknown) => void
}

interface RemoteOptions extends CallOptions {
  /** This worker will hear of the end of the actor that it makes. */
  readonly isWatched?: boolean
}

/** Of `shutdown`. */
export interface ShutdownOptions {
  /** Wait for the whole group (default), or end at once. */
  readonly graceful?: boolean
  /** For the graceful way, in ms; default 0, which is no limit. */
  readonly timeoutMs?: number
}

/** What nobody got. */
export interface DeadLetterReport {
  /** How many there were. */
  readonly total: number
  /** How many there were, by reason. */
  readonly counts: Readonly<Record<DeadLetterReason, number>>
  /** Oldest first. */
  readonly last: readonly DeadLetter[]
}

/** One worker: what it is called, whom it knows, what it serves. `currentWorker()` gives it. */
export class WorkerRuntime {
  /** Its name and id. */
  readonly info: WorkerInfo
  /** Its time. */
  readonly clock: Clock
  /** One counter for contexts, autograd messages, passes, references and forks of this worker. */
  readonly ids: IdCounter
  readonly agent: RpcAgent
  readonly rrefs: RRefContext
  readonly actors: Actors
  readonly watches: Watches
  private defaultTimeoutMs: number
  /** The scope of this worker's own work: no context, no deadline, grad mode on. */
  readonly scope: Scope
  /** What may be called here. */
  readonly registry: FunctionRegistry
  private readonly requests: RequestCallback
  private readonly group: Membership
  private readonly slots = new Map<symbol, unknown>()
  private readonly contributions: (() => Record<string, number>)[] = []
  private readonly waitContributions: (() => Iterable<Wait>)[] = []
  private readonly onBug: (error: unknown) => void
  /** Of the last event that was told to anybody. */
  private lastEvent = 0
  private readonly connectListeners: ((peer: WorkerInfo) => void)[] = []
  private readonly closeListeners: ((closedBy: () => PostgradError) => void)[] = []

  constructor(options: WorkerOptions) {
    checkWorkerName(options.name)
    checkWorkerId(options.id)
    this.info = Object.freeze({ name: options.name, id: options.id })
    this.clock = options.clock
    this.ids = new IdCounter(options.id)
    this.defaultTimeoutMs = checkTime('rpcTimeoutMs', options.rpcTimeoutMs ?? RPC_TIMEOUT_MS, '0 for no limit')
    this.registry = options.registry ?? threadRegistry
    this.scope = new Scope({ worker: this, device: options.device ?? null, generator: options.generator ?? null }, {})
    this.onBug = options.onBug ?? ((error) => throwLater(this.clock, error))
    this.rrefs = new RRefContext(
      {
        info: this.info,
        ids: this.ids,
        now: () => this.clock.now(),
        infoOf: (id) => this.agent.resolve(id).info,
        deathOf: (id) => this.agent.deathOf(id),
        post: (to, type, body) => this.postIfReachable(to, type, body),
        request: (to, type, body, request) => this.request(to, type, body, request),
        callByName: (to, name, args, callOptions) => this.callByName(this.agent.resolve(to), name, args, callOptions, callOptions.op),
        streamByName: (to, name, args, callOptions) => this.streamByName(this.agent.resolve(to), name, args, callOptions, callOptions.op),
        remoteByName: (to, name, args, callOptions) => this.remoteByName(this.agent.resolve(to), name, args, callOptions, callOptions.op),
        wait: (fail, waitOptions) => this.wait(fail, waitOptions),
      },
      options.finalizers ?? 'release',
      options.referenceStacks ?? false,
    )
    this.agent = new RpcAgent({
      info: this.info,
      isGuest: options.isGuest ?? false,
      clock: this.clock,
      scope: this.scope,
      rrefs: this.rrefs,
      mailbox: options.mailbox,
      onBug: this.onBug,
      onHandlerError: options.onHandlerError ?? this.onBug,
    })
    this.actors = new Actors({
      workerId: this.info.id,
      clock: this.clock,
      scope: this.scope,
      takeId: () => this.ids.take(),
      later: (fn) => this.later(fn),
      ownCall: () => new OwnCall(this.info, () => this.agent.shutdownSignal),
      giveUp: (served, reason) => this.agent.giveUp([served], reason),
      letter: (reason, what) => this.letter(reason, what),
      isShared: (rrefId) => this.rrefs.isShared(rrefId),
      makeOwner: (value) => this.rrefs.createOwner({ value }),
      inspection: () => this.agent.inspection,
    })
    this.watches = new Watches({
      info: this.info,
      post: (to, type, body) => this.postIfReachable(to, type, body),
      callByName: (to, name, args) => this.run(() => this.callByName(this.agent.resolve(to), name, args, { timeoutMs: 0 }, name)),
      ready: (to) => this.run(() => this.ready(to, { timeoutMs: 0 })),
      deathOf: (id) => this.agent.deathOf(id),
      cellOf: (rref, value) => this.cellOf(rref, value),
    })
    this.rrefs.onReleased = (rref) => this.actors.onReleased(rref)
    this.requests = new RequestCallback({
      agent: this.agent,
      registry: this.registry,
      rrefs: this.rrefs,
      actors: this.actors,
      servingScope: (delivery) => this.servingScope(delivery),
    })
    handleStreams(this.agent, this.rrefs)
    this.onPeerDeath((peer, error) => this.rrefs.onPeerDeath(peer, error))
    this.group = new Membership({
      isGuest: options.isGuest ?? false,
      agent: this.agent,
      rrefs: this.rrefs,
      serving: () => this.requests.serving,
      close: () => this.close(),
    })
    this.onPeerDeath((peer, error) => this.group.onPeerDeath(peer, error))
    this.onClose(() => this.group.onClose())
    this.onPeerDeath((peer, error) => this.watches.onPeerDeath(peer, error))
    this.onClose((closedBy) => this.watches.onClose(closedBy))
    this.handle(MessageType.ACTOR_DOWN, (message, from) => this.watches.onDown(message, from))
    this.handle(MessageType.ACTOR_UNWATCH, (message, from) => this.watches.onUnwatch(message, from))
    exposeBuiltIns(this.registry)
  }

  /** Default deadline of a call in ms; 0 is none. */
  get rpcTimeoutMs(): number {
    return this.defaultTimeoutMs
  }

  /** For calls that are made from now on. @throws TIMEOUT_INVALID */
  setRpcTimeout(timeoutMs: number): void {
    this.defaultTimeoutMs = checkTime('setRpcTimeout', timeoutMs, '0 for no limit')
  }

  // --- membership

  /**
   * Opens a link to another worker, which may be a guest; large tensors take the road through a heap that both share, if there is one.
   * @throws WORKER_NAME_TAKEN, WORKER_NAME_INVALID, WORKER_ID_OUT_OF_RANGE, RPC_SHUT_DOWN
   */
  connect(peer: WorkerInfo, link: Link, road: HeapRoad | null = null, isGuest = false): void {
    this.agent.connect(peer, link, road, isGuest)
    this.group.onConnect(peer)
    for (const listener of this.connectListeners) listener(peer)
  }

  /** Whether a link to a worker of this name is open. A name is free for another worker when it is not. */
  isLinkedTo(name: string): boolean {
    return this.agent.isLinkedTo(name)
  }

  /** Tells of a worker that died before this one began, its own former life among them: references to what it owned then fail with WORKER_DIED. */
  noteDeath(worker: WorkerInfo, detail: string): void {
    this.agent.noteDeath(worker, detail)
  }

  /** The worker of that name or id. @throws UNKNOWN_WORKER */
  resolve(target: Target, op?: string): WorkerInfo {
    return this.agent.resolve(target, op).info
  }

  /** Self included; the dead, those that are leaving, and guests (a main thread that has joined) excluded. */
  workers(): WorkerInfo[] {
    return this.agent.workers()
  }

  /** The error that everything about this worker meets, if it is known to be dead. */
  deathOf(id: WorkerId): PostgradError | null {
    return this.agent.deathOf(id)
  }

  // --- what users call

  /** Runs `fn` as this worker. */
  run<T>(fn: () => T): T {
    return inScope(this.scope, fn)
  }

  /** As the function `call`, from this worker. */
  call(to: Target, fn: AnyFunction, args: readonly unknown[], options: CallOptions = {}): Future<unknown> {
    try {
      return this.callByName(this.agent.resolve(to), this.registry.nameOf(fn), args, options)
    } catch (error) {
      return Future.rejected(error)
    }
  }

  /** Calls what is exposed under `name` on another worker, whether or not this worker has it. */
  protected callByName(
    peer: Peer,
    name: string,
    args: readonly unknown[],
    { timeoutMs: timeoutOption, signal }: CallOptions,
    op: string = name,
  ): Future<unknown> {
    const future = new Future<unknown>()
    try {
      checkArgs(args, op)
      const timeoutMs = this.timeLeft(timeoutOption, op, peer.info)
      checkSignal(signal, op, peer.info)
      const out = this.agent.prepare(peer, MessageType.CALL, [name, args], op)
      this.agent.intercept(out, peer)
      const waiter = new CallWaiter(future, op, peer, timeoutMs)
      waiter.requestId = this.agent.request(peer, out, waiter, timeoutMs)
      future.cancelWith(waiter)
      if (signal !== undefined) future.cancelOn(signal)
    } catch (error) {
      future.reject(error)
    }
    collect(future)
    return future
  }

  /** See `ready` in `api.ts`. */
  ready(to: Target, { timeoutMs, signal }: CallOptions = {}): Future<void> {
    const future = new Future<void>()
    try {
      const peer = this.agent.resolve(to)
      this.agent.whenReady(peer, future, this.timeLeft(timeoutMs, 'ready', peer.info), signal)
    } catch (error) {
      future.reject(error)
    }
    return future
  }

  /** As the function `remote`, from this worker. */
  remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[], options: RemoteOptions = {}): RRef {
    return this.remoteByName(this.agent.resolve(to), this.registry.nameOf(fn), args, options)
  }

  /** Calls a function that every worker has by itself. */
  callBuiltIn(to: Target, name: string, args: readonly unknown[], options: CallOptions = {}): Future<unknown> {
    return this.callByName(this.agent.resolve(to), name, args, options)
  }

  /** As the function `stream`, from this worker. */
  stream(to: Target, fn: AnyFunction, args: readonly unknown[], options: StreamOptions = {}): RemoteStream<unknown> {
    let peer: Peer
    let name: string
    try {
      peer = this.agent.resolve(to)
      name = this.registry.nameOf(fn)
    } catch (error) {
      const failed = new RemoteStream<unknown>('stream', 1)
      failed.onError(error)
      return failed
    }
    return this.streamByName(peer, name, args, options)
  }

  /** Gives the items of what the exposed `name` gives on another worker, one by one. */
  protected streamByName(
    peer: Peer,
    name: string,
    args: readonly unknown[],
    { timeoutMs, window = STREAM_WINDOW, signal }: StreamOptions,
    op: string = name,
  ): RemoteStream<unknown> {
    const stream = new RemoteStream<unknown>(op, window)
    try {
      checkArgs(args, op)
      checkWindow(op, window)
      timeLimit(op, timeoutMs ?? this.rpcTimeoutMs)
      const left = this.timeLeft(0, op, peer.info)
      checkSignal(signal, op, peer.info)
      const out = this.agent.prepare(peer, MessageType.CALL, [STREAM_CALL, [name, args, window]], op)
      this.agent.intercept(out, peer)
      const requestId = this.agent.request(peer, out, stream, left)
      const cancel = (reason: unknown) => {
        if (!peer.pending.cancel(requestId, reason)) stream.onCancelled(callCancelled(op, peer.info, reason))
      }
      const unlisten = signal === undefined ? () => {} : onAbort(signal, () => cancel(signal.reason))
      const limit = timeoutMs === undefined ? {} : { timeoutMs }
      stream.begin({
        cancel,
        taken: (items) => this.agent.progress.taken(peer, requestId, items),
        stop: () => this.agent.postIfReachable(peer.info.id, MessageType.CALL_CANCEL, [requestId, true]),
        wait: (fail) =>
          this.wait(fail, { ...limit, op, what: `the next item of a stream from worker '${peer.info.name}'`, isCancelled: true }),
        discard: ({ received }) => {
          if (received !== null) this.rrefs.discard(received as readonly ReceivedFork[])
        },
        ended: unlisten,
      })
    } catch (error) {
      stream.onError(error)
    }
    return stream
  }

  /** Leaves what the exposed `name` gives on another worker, whether or not this worker has it. */
  protected remoteByName(peer: Peer, name: string, args: readonly unknown[], options: RemoteOptions, op: string = name): RRef {
    checkArgs(args, op)
    const left = this.timeLeft(options.timeoutMs, op, peer.info)
    checkSignal(options.signal, op, peer.info)
    const make = peer.link === null ? this.remoteToSelf : this.remoteToPeer
    return make.call(this, peer, name, args, left, options, op)
  }

  private remoteToPeer(
    peer: Peer,
    name: string,
    args: readonly unknown[],
    timeoutMs: number,
    { signal, isWatched = false }: RemoteOptions,
    op: string,
  ): RRef {
    const user = this.rrefs.createUser(peer.info)
    const out = this.agent.prepare(peer, MessageType.REMOTE_CALL, [name, args, user.rrefId, user.forkId], op)
    if (isWatched) setWatched(out)
    this.agent.intercept(out, peer)
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op,
      onReply: ({ body: [rrefId, forkId, error] }) => {
        if (rrefId !== user.rrefId || forkId !== user.forkId) this.rrefs.failUser(user, wrongReply(op, peer.info, 'another reference'))
        else if (error === null) this.rrefs.confirm(user)
        else this.rrefs.failUser(user, error)
      },
      onError: (error) => this.rrefs.failUser(user, error),
      timedOut: () => creationTimedOut(op, peer.info, timeoutMs),
    }
    const requestId = this.agent.request(peer, out, waiting, timeoutMs)
    this.rrefs.created(user)
    if (signal !== undefined) this.rrefs.onEnd(user, this.cancelRemoteOn(signal, peer, requestId))
    return user
  }

  private remoteToSelf(
    peer: Peer,
    name: string,
    args: readonly unknown[],
    timeoutMs: number,
    { signal, isWatched = false }: RemoteOptions,
    op: string,
  ): RRef {
    const owner = this.rrefs.createOwner()
    // The reference's own id stands for the fork, as in PyTorch.
    const out = this.agent.prepare(peer, MessageType.REMOTE_CALL, [name, args, owner.rrefId, owner.rrefId], op)
    if (isWatched) setWatched(out)
    this.agent.intercept(out, peer)
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op,
      onReply: () => {},
      onError: (error) => owner.setError(error),
      timedOut: () => creationTimedOut(op, peer.info, timeoutMs),
    }
    const requestId = this.agent.request(peer, out, waiting, timeoutMs)
    this.rrefs.hold(owner)
    if (signal !== undefined) {
      const end = this.cancelRemoteOn(signal, peer, requestId)
      owner.waiters.add({ resolve: end, reject: end })
    }
    return owner
  }

  /** Also after the reference was confirmed: the function may still be at it. Returns what stops it. */
  private cancelRemoteOn(signal: AbortSignal, peer: Peer, requestId: number): () => void {
    return onAbort(signal, () => {
      if (!peer.pending.cancel(requestId, signal.reason)) this.agent.tellCancelled(peer, requestId)
    })
  }

  // --- for packages above

  /** Takes one-way messages of a type; runs in this worker's own scope. */
  handle(type: MessageType, handler: (message: Message, from: WorkerInfo) => void): void {
    this.agent.handle(type, ({ message, peer }) => handler(message, peer.info))
  }

  /** Hears of messages of a type that could not be read, in their turn, if they say which pass they were about. */
  handleUnreadable(type: MessageType, handler: (pass: PassHead, error: unknown, from: WorkerInfo) => void): void {
    this.agent.unreadableHandlers.set(type, ({ pass, error, peer }) => {
      if (pass !== null) handler(pass, error, peer.info)
    })
  }

  intercept(interceptor: Interceptor): void {
    this.agent.interceptors.push(interceptor)
  }

  /** See `intercept`. Returns what takes it away. */
  interceptCalls(interceptor: CallInterceptor): () => void {
    const { agent } = this
    agent.callInterceptors ??= new CallInterceptors({ info: this.info, clock: this.clock, onBug: this.onBug })
    const interceptors = agent.callInterceptors
    interceptors.add(interceptor)
    return () => {
      interceptors.remove(interceptor)
      if (interceptors.isEmpty && agent.callInterceptors === interceptors) agent.callInterceptors = null
    }
  }

  /** Sends a one-way message, past the interceptors. @throws UNKNOWN_WORKER, WORKER_DIED, RPC_SHUT_DOWN */
  post(to: WorkerId, type: MessageType, body: readonly unknown[], envelope?: Envelope): void {
    this.agent.post(this.agent.resolve(to), type, body, envelope)
  }

  /** Puts a task into the mailbox's task lane; of those that wait the highest `priority` runs first. */
  pushTask(task: Runnable, priority: number): void {
    this.agent.pump.mailbox.pushTask(task, priority)
    this.agent.pump.wake()
  }

  /** `fn` runs when a link to another worker was opened. */
  onPeerConnect(fn: (peer: WorkerInfo) => void): void {
    this.connectListeners.push(fn)
  }

  /** A message that can be read and cannot be right: a dead letter. */
  refuseInvalid(from: WorkerInfo, type: MessageType, why: string): void {
    this.agent.refuseInvalid(this.agent.resolve(from.id), type, why)
  }

  /** A dead letter that arose here. */
  letter(reason: DeadLetterReason, what: string): void {
    this.agent.letter(reason, null, what)
  }

  /** Runs `fn` in this worker's own scope, behind the calls that wait in the mailbox. */
  later(fn: () => void): void {
    this.agent.pump.mailbox.push(Lane.call, { run: fn })
    this.agent.pump.wake()
  }

  /**
   * Looks at the links in the middle of long work of this thread (a pause of a kernel): what has arrived is read into the mailbox, what was sent
   * leaves, and no user code runs. Returns how much waits.
   */
  lookAround(): number {
    return inScope(this.scope, () => this.agent.pump.look())
  }

  /** `fn` runs each time that the mailbox has become empty, before what was sent is posted. */
  onDrained(fn: () => void): void {
    this.agent.pump.onDrained(() => (currentScope() === this.scope ? fn() : inScope(this.scope, fn)))
  }

  /** `fn` runs once per dead peer, behind everything that was received from it. */
  onPeerDeath(fn: (peer: WorkerInfo, error: PostgradError) => void): void {
    this.agent.liveness.watch(({ worker }) => fn(worker, this.agent.deathOf(worker.id)!))
  }

  /** `fn` runs when this worker shuts down, before its links close; its argument gives the error for what that cuts short. */
  onClose(fn: (closedBy: () => PostgradError) => void): void {
    this.closeListeners.push(fn)
  }

  /** One object per worker and key, made when it is first asked for. */
  slot<T>(key: symbol, make: () => T): T {
    if (!this.slots.has(key)) this.slots.set(key, make())
    return this.slots.get(key) as T
  }

  /** Adds to `debugInfo`. */
  contribute(fn: () => Record<string, number>): void {
    this.contributions.push(fn)
  }

  get codec(): Codec {
    return this.agent.codec
  }

  // --- what happens here

  /**
   * `listener` is told of everything that happens at this worker from now on: messages sent and received, calls begun and ended, dead letters, deaths,
   * full mailboxes. It runs in the middle of that and should be short; what it throws goes to `onBug`. Returns its removal.
   * PyTorch has none but its profiler.
   */
  inspect(listener: InspectListener): () => void {
    const { listeners } = this.inspection()
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      this.endIdleInspection()
    }
  }

  /** The same for a reader that takes its time: `for await (const event of worker.inspectStream())`. What is too much for it is dropped and counted. @throws INVALID_ARGUMENT */
  inspectStream({ capacity = 1024 }: InspectStreamOptions = {}): InspectStream {
    return new InspectStream((listener) => this.inspect(listener), capacity)
  }

  /**
   * How many calls wait here, how long they waited and ran, by actor too. Counting begins with the first call of this and goes on until
   * `stopMetrics`; before, it costs nothing. PyTorch: `get_debug_info` with `enable_gil_profiling`.
   */
  metrics(): WorkerMetrics {
    const inspection = this.inspection()
    inspection.metrics ??= new Metrics(this.clock.now())
    const { mailbox } = this.agent.pump
    const lanes = Object.fromEntries(Object.entries(Lane).map(([name, lane]) => [name, mailbox.depth(lane)]))
    return inspection.metrics.read(this.clock.now(), lanes as unknown as WorkerMetrics['lanes'])
  }

  /** Counts no more, and forgets what was counted. */
  stopMetrics(): void {
    if (this.agent.inspection !== null) this.agent.inspection.metrics = null
    this.endIdleInspection()
  }

  /** What this worker received or held and could not do: how much by reason, and the last few. */
  deadLetters(): DeadLetterReport {
    const { counts, total } = this.agent.deadLetters
    return { total, counts: { ...counts }, last: this.agent.deadLetters.last() }
  }

  private inspection(): Inspection {
    this.agent.inspection ??= new Inspection(this.clock, this.onBug, this.lastEvent)
    return this.agent.inspection
  }

  private endIdleInspection(): void {
    const { inspection } = this.agent
    if (inspection === null || !inspection.isIdle) return
    this.lastEvent = inspection.lastSeq
    this.agent.inspection = null
  }

  // --- state and end

  /** Adds to `waits`: what a package above waits for. */
  contributeWaits(fn: () => Iterable<Wait>): void {
    this.waitContributions.push(fn)
  }

  /** What this worker's programs and the calls that it serves wait for, now. */
  waits(): Waits {
    const { waits, serving } = this.agent.whoWaits()
    for (const contribute of this.waitContributions) waits.push(...contribute())
    return { waits, serving }
  }

  /** What this worker holds and waits for; all of it is back at its start when a program has cleaned up. */
  debugInfo(): Record<string, number> {
    const info: Record<string, number> = {
      pendingCalls: this.agent.pendingCount,
      servingCalls: this.requests.serving,
      openLinks: this.agent.openLinks,
      deadLetters: this.agent.deadLetters.total,
      ...this.rrefs.debugInfo(),
      actors: this.actors.count,
      ...this.watches.debugInfo(),
    }
    for (const contribute of this.contributions) {
      for (const [key, count] of Object.entries(contribute())) {
        assert(!(key in info), `two counts are called ${key}`)
        info[key] = count
      }
    }
    return info
  }

  /**
   * PyTorch's `_get_debug_info`: what its agent says (`agent.…`), with the counts of references and of autograd (`debugInfo`), their keys disjoint. Its
   * numbers of threads have no counterpart: a worker is one.
   */
  getDebugInfo(): Record<string, number> {
    const { pendingCalls, servingCalls, openLinks, deadLetters, ...others } = this.debugInfo() as Record<string, number>
    return {
      'agent.clientActiveCalls': pendingCalls!,
      'agent.serverActiveCalls': servingCalls! + this.agent.pump.mailbox.depth(Lane.call),
      'agent.serverActiveAsyncCalls': servingCalls!,
      'agent.openLinks': openLinks!,
      'agent.deadLetters': deadLetters!,
      ...others,
    }
  }

  /** Which of its values others refer to, who they are, and which references it holds itself; for how long, and where they were made if that is kept. */
  references(): References {
    return this.rrefs.references()
  }

  /**
   * Ends this worker: waits up to `drainMs` for the calls that it has made, those that it serves, and until large tensors that it has sent are
   * read; then rejects what waits with RPC_SHUT_DOWN and closes its links. Callers of what has not begun here learn that it was not run (WORKER_DRAINING),
   * who else waits for it that it has died. Later calls meet RPC_SHUT_DOWN. Idempotent.
   */
  async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    const isIdle = () => this.agent.pendingCount + this.requests.serving + this.agent.blocksOnTheWay === 0
    if (drainMs > 0 && !this.agent.isClosed && !isIdle()) await this.group.untilIdle(isIdle, drainMs)
    if (this.agent.isClosed) return
    this.agent.inspection?.closing(this.info.name, () => this.references())
    const closedBy = () => this.agent.closedBy
    try {
      for (const listener of this.closeListeners) listener(closedBy)
    } finally {
      this.agent.close()
    }
  }

  /**
   * Ends this worker by its own decision: calls of others that come from now on are refused with WORKER_DRAINING, those that wait are served, its own are
   * awaited, then it closes. Its peers need not agree, as they do with `leave`, so a function that waits for a call back into this worker fails. Not to be
   * awaited by a function that is served. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; RPC_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0 is no limit), when it has closed all the same
   */
  async drain({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.drain(timeLimit('drain', timeoutMs))
  }

  /**
   * Ends this worker while the others go on: waits for its own calls, asks its peers to make no more, serves those that were made before, gives its
   * references up, closes when what it sent has been read. Peers find it left, not died. Values that it owns go with it. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0 is no limit), when it has left all the same
   */
  async leave({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.leave(timeLimit('leave', timeoutMs))
  }

  /**
   * Ends this worker. Graceful: together with all others, when each has called this and no call is under way anywhere, also none that another, or a
   * callback, has brought about; references are given up first. Whatever goes wrong, the local end comes about. A guest leaves. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT with the names after `timeoutMs` (default 0, no limit); WORKER_DIED when a member dies meanwhile
   */
  async shutdown({ graceful = true, timeoutMs = 0 }: ShutdownOptions = {}): Promise<void> {
    const limitMs = timeLimit('shutdown', timeoutMs)
    await (graceful ? this.group.shutdown(limitMs) : this.close())
  }

  /** What this worker has sent to its peers and received, if nothing is under way here; else null. See `unsettled`. */
  countsIfQuiet(): Counts | null {
    return this.group.countsIfQuiet()
  }

  // --- inside

  private servingScope({ message, expiresMs, served }: Delivery): Scope {
    const patch: ScopePatch = { deadlineMs: expiresMs, serving: served, chain: chainOf(message) }
    for (const interceptor of this.agent.interceptors) {
      if (interceptor.servingScope !== undefined) Object.assign(patch, interceptor.servingScope(message))
    }
    return new Scope(patch, this.scope)
  }

  /**
   * The time that a call may take: its own, and never more than what is left to the call that is being served.
   * @throws RPC_TIMEOUT, and CALL_CANCELLED when that one has been given up
   */
  private timeLeft(timeoutOption: number | undefined, op: string, to: WorkerInfo): number {
    const own = timeLimit(op, timeoutOption ?? this.rpcTimeoutMs)
    const { deadlineMs, serving } = currentScope()
    let left = own
    if (deadlineMs !== Number.POSITIVE_INFINITY) {
      left = Math.min(own, deadlineMs - this.clock.now())
      if (left <= 0) {
        throw outOfTime(op, `worker '${to.name}' was not called`, { worker: to.name, workerId: to.id, timeoutMs: 0 })
      }
    }
    const givenUp = (serving as ServedCall | null)?.givenUp ?? null
    if (givenUp !== null && !this.agent.isClosed) throw callCancelled(op, to, givenUp)
    return left
  }

  /** @throws NOT_AN_ACTOR */
  private cellOf(rref: OwnerRRef, value: unknown): ActorCell {
    if (typeof value === 'object' && value !== null && this.registry.isInstance(value)) return this.actors.of(rref, value)
    throw notAnActor('monitor', value === null ? 'null' : typeof value)
  }

  private wait(
    fail: (error: unknown) => void,
    {
      timeoutMs,
      op,
      what,
      rrefId,
      isCancelled = false,
    }: RRefOptions & { op: string; what: string; rrefId?: bigint; isCancelled?: boolean },
  ): () => void {
    const left = this.timeLeft(timeoutMs, op, this.info)
    const waiting: PendingCall = {
      deadlineMs: Number.POSITIVE_INFINITY,
      parent: null,
      op,
      about: () => ({ kind: 'value', what, ...(rrefId === undefined ? {} : { rrefId }) }),
      onReply: () => {},
      onError: fail,
      timedOut: (isInherited) =>
        isInherited ? outOfTime(op, `${what} is not waited for`, { timeoutMs: left }) : notThereInTime(op, what, left, isCancelled),
    }
    return this.agent.wait(waiting, left, op)
  }

  private request(
    to: WorkerId,
    type: MessageType,
    body: readonly unknown[],
    { timeoutMs, signal, op, intercepted }: RRefOptions & { op: string; intercepted: boolean },
  ): Future<Message> {
    try {
      const peer = this.agent.resolve(to)
      const left = this.timeLeft(timeoutMs, op, peer.info)
      checkSignal(signal, op, peer.info)
      const out = this.agent.prepare(peer, type, body, op)
      if (intercepted) this.agent.intercept(out, peer)
      const reply = this.agent.requestMessage(peer, out, left, op)
      if (signal !== undefined) reply.cancelOn(signal)
      return reply
    } catch (error) {
      return Future.rejected(error)
    }
  }

  private postIfReachable(to: WorkerId, type: MessageType, body: readonly unknown[]): void {
    const peer = this.agent.reachable(to)
    if (peer !== undefined) this.agent.post(peer, type, body)
  }
}

/** Waits for the reply of a call and hands its value over. */
class CallWaiter implements PendingCall, Canceller {
  deadlineMs = Number.POSITIVE_INFINITY
  parent: ServedCall | null = null
  requestId = 0
  readonly op: string
  private readonly future: Future<unknown>
  private readonly peer: Peer
  private readonly timeoutMs: number

  constructor(future: Future<unknown>, op: string, peer: Peer, timeoutMs: number) {
    this.future = future
    this.op = op
    this.peer = peer
    this.timeoutMs = timeoutMs
  }

  cancel(reason: unknown): void {
    this.peer.pending.cancel(this.requestId, reason)
  }

  onReply(message: Message): void {
    this.future.resolve(message.body[0])
  }

  onError(error: unknown): void {
    this.future.reject(error)
  }

  timedOut(isInherited: boolean): PostgradError {
    return timedOut(this.op, this.peer.info, this.timeoutMs, isInherited)
  }
}

function creationTimedOut(op: string, to: WorkerInfo, timeoutMs: number): PostgradError {
  return new PostgradError('RREF_CREATION_TIMEOUT', {
    op,
    message: `RRef creation on worker '${to.name}' timed out (${Math.round(timeoutMs)} ms); the value may or may not exist there`,
    remedy: 'Make it again, or pass a longer { timeoutMs } to remote().',
    values: { worker: to.name, workerId: to.id, timeoutMs },
  })
}

/** `isCancelled`: who makes it is told to end. */
function notThereInTime(op: string, what: string, timeoutMs: number, isCancelled: boolean): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op,
    message: `${what} was not there after ${Math.round(timeoutMs)} ms`,
    remedy: `Pass { timeoutMs } (0 is no limit), or look at the function that makes it; it ${isCancelled ? 'was cancelled' : 'goes on'}.`,
    values: { timeoutMs },
  })
}

function throwLater(clock: Clock, error: unknown): void {
  clock.defer(() => {
    throw error
  })
}
