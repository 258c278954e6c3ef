/**
 * Workers as threads of other processes of this machine: a native crash, or a lack of memory, ends only one process and its workers. Workers of one
 * process are linked by ports and share a heap, as those of a thread host; workers of different ones by Unix sockets, which they open themselves.
 * `worker-host.ts` says what a host is, `process-protocol.ts` has the messages, `process-agent.ts` is the other end.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { PostgradError, type WorkerId } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Clock, Timer } from '@postgrad/transport'
import { oneOfSeveral, StayAwake } from '@postgrad/transport/internal'
import { runPayloads } from '../admin/run-payloads.js'
import { sharedHeap } from '../host/shared-heap.js'
import type { Control, Counter, HostedExit, HostedWorker, LinkEnd, OpenedLink, SpawnOptions, WorkerHost } from '../host/worker-host.js'
import { environmentFor, flagsFor } from './node-flags.js'
import { withOwnBuffers } from './own-buffers.js'
import type { FromProcess, ProcessEndToken, SocketBoot, ToProcess } from './process-protocol.js'
import { newSockets, ProcessSockets } from './process-sockets.js'
import { makeSocketFolder, removeSocketFolder } from './socket-folder.js'

export interface ProcessHostOptions {
  /** What a process loads first: it calls `runAgent`. */
  readonly entry: URL
  /** In which process a worker of this name runs, from 0. A worker that is started again comes to the same. */
  readonly placeOf: (name: string) => number
  /** The main thread, as workers know it. */
  readonly main: WorkerInfo
  readonly clock: Clock
  /** How much address space the heap of each process takes at most; default as much as fits. */
  readonly heapBytes?: number | undefined
}

/** A process that does not answer is ended after this. */
const KILL_MS = 2000

export class ProcessHost implements WorkerHost {
  private readonly options: ProcessHostOptions
  private readonly sockets: SocketBoot
  private readonly processes = new Map<number, WorkerProcess>()
  private readonly placed = new Map<WorkerId, number>()
  private nextKey = 0
  /** Null before the main thread has joined. */
  private own: ProcessSockets | null = null
  private stayAwake: StayAwake | null = null
  private readonly removeFolder: () => void

  constructor(options: ProcessHostOptions) {
    this.options = options
    oneOfSeveral()
    const folder = makeSocketFolder()
    this.sockets = newSockets(folder)
    this.removeFolder = () => removeSocketFolder(folder)
    process.once('exit', this.removeFolder)
  }

  admit(worker: WorkerInfo): void {
    if (this.placed.has(worker.id)) return
    const place = this.options.placeOf(worker.name)
    this.placed.set(worker.id, place)
    this.processAt(place).say({ do: 'admit', worker })
  }

  link(a: WorkerInfo, b: WorkerInfo): readonly [LinkEnd, LinkEnd] {
    const place = this.placed.get(a.id)
    if (place !== undefined && place === this.placed.get(b.id)) {
      const key = this.nextKey++
      const close = (end: ProcessEndToken): void => this.processes.get(place)?.say({ do: 'close-end', end })
      return [new TokenEnd({ kind: 'port', key, a, b, side: 0 }, close), new TokenEnd({ kind: 'port', key, a, b, side: 1 }, close)]
    }
    const close = (holder: WorkerInfo, peer: WorkerInfo): void => this.tellEnded(holder.id, peer.id)
    return [
      new TokenEnd({ kind: 'socket', holder: a, peer: b }, () => close(a, b)),
      new TokenEnd({ kind: 'socket', holder: b, peer: a }, () => close(b, a)),
    ]
  }

  open(end: LinkEnd): OpenedLink {
    const { token } = end as TokenEnd
    this.stayAwake ??= new StayAwake()
    this.own ??= new ProcessSockets(this.sockets, this.options.main, { heap: sharedHeap(), stayAwake: this.stayAwake }, warn)
    return this.own.link((token as ProcessEndToken & { readonly kind: 'socket' }).peer)
  }

  spawn(options: SpawnOptions): HostedWorker {
    return this.processAt(this.placed.get(options.worker.id)!).spawn(options)
  }

  release(id: WorkerId): void {
    const place = this.placed.get(id)
    if (place === undefined) return
    this.placed.delete(id)
    this.processes.get(place)?.release(id)
    // Also one that was never started.
    this.tellEnded(id)
  }

  async close(): Promise<void> {
    await Promise.all([...[...this.processes.values()].map((one) => one.end()), this.own?.close()])
    this.stayAwake?.close()
    process.off('exit', this.removeFolder)
    this.removeFolder()
  }

  /** Notifies all workers that may have a socket to it, or only `to`. */
  private tellEnded(id: WorkerId, to: WorkerId | null = null): void {
    for (const one of this.processes.values()) one.say({ do: 'ended', id, to })
    if (to === null || to === this.options.main.id) this.own?.ended(id)
  }

  private processAt(place: number): WorkerProcess {
    const known = this.processes.get(place)
    if (known !== undefined && !known.hasEnded) return known
    const started = new WorkerProcess(this.options, this.sockets, (id) => this.tellEnded(id))
    this.processes.set(place, started)
    return started
  }
}

/** What travels of it is the token. */
class TokenEnd implements LinkEnd {
  readonly token: ProcessEndToken
  readonly #close: (token: ProcessEndToken) => void

  constructor(token: ProcessEndToken, close: (token: ProcessEndToken) => void) {
    this.token = token
    this.#close = close
  }

  close(): void {
    this.#close(this.token)
  }
}

interface Worker {
  readonly control: ProcessControl
  readonly beats: { value: number }
  readonly options: SpawnOptions
  readonly ended: Promise<void>
  resolveEnded(): void
}

/** One process, from its start until its end. */
class WorkerProcess {
  hasEnded = false
  /** Of a `kill` that the process did not answer yet. */
  private unanswered: Timer | null = null
  /** Null: the machine gave none. */
  private readonly child: ChildProcess | null
  private readonly clock: Clock
  private readonly payloads = runPayloads(null)
  private readonly workers = new Map<WorkerId, Worker>()
  /** Admitted and not released. */
  private readonly admitted = new Set<WorkerId>()
  private readonly gone: Promise<void>
  private readonly onWorkerEnd: (id: WorkerId) => void

  constructor({ entry, clock, heapBytes }: ProcessHostOptions, sockets: SocketBoot, onWorkerEnd: (id: WorkerId) => void) {
    this.clock = clock
    this.onWorkerEnd = onWorkerEnd
    const child = forked(entry)
    this.child = 'error' in child ? null : child
    this.gone = 'error' in child ? child.error.then((error) => this.onFailed(error)) : this.untilGone(child)
    this.say({ do: 'begin', sockets, heapBytes })
  }

  private async untilGone(child: ChildProcess): Promise<void> {
    child.on('message', (message) => this.hear(message as FromProcess))
    // What could not be sent any more: its end follows.
    child.on('error', () => {})
    const exit = new Promise<[code: number | null, signal: NodeJS.Signals | null]>((resolve) => {
      child.once('exit', (code, signal) => resolve([code, signal]))
    })
    // What it has said before its end comes first.
    const silence = new Promise<void>((resolve) => child.once('disconnect', resolve))
    const [[code, signal]] = await Promise.all([exit, silence])
    this.onGone(child.pid ?? 0, code, signal)
  }

  say(message: ToProcess): void {
    if (message.do === 'admit') this.admitted.add(message.worker.id)
    if (this.child?.connected) this.child.send(message)
  }

  release(id: WorkerId): void {
    this.admitted.delete(id)
    this.say({ do: 'release', id })
    if (this.admitted.size === 0) void this.end()
  }

  /** Its process ends when no worker is left in it. */
  async end(): Promise<void> {
    this.hasEnded = true
    this.say({ do: 'end' })
    const timer = this.clock.setTimer(KILL_MS, () => this.child?.kill('SIGKILL'))
    await this.gone
    timer.cancel()
  }

  spawn(options: SpawnOptions): HostedWorker {
    const { worker, boot, ends, stdout, stderr, resourceLimits, env } = options
    const { id } = worker
    const control = new ProcessControl(
      (message, moved) => this.say({ do: 'control', id, message, ends: tokensOf(moved) }),
      () => this.say({ do: 'close-control', id }),
    )
    let resolveEnded!: () => void
    const ended = new Promise<void>((resolve) => {
      resolveEnded = resolve
    })
    const beats = { value: 0 }
    this.workers.set(id, { control, beats, options, ended, resolveEnded })
    this.say({
      do: 'spawn',
      worker,
      boot,
      ends: tokensOf(ends),
      wantsOut: stdout !== undefined,
      wantsErr: stderr !== undefined,
      resourceLimits,
      env,
    })
    const counted: Counter = {
      get value() {
        return beats.value
      },
      add: () => {},
    }
    const taken: Counter = { value: 0, add: () => this.say({ do: 'taken', id }) }
    return { control, beats: counted, taken, kill: () => this.kill(id, ended) }
  }

  private async kill(id: WorkerId, ended: Promise<void>): Promise<void> {
    if (!this.workers.has(id)) return
    this.say({ do: 'kill', id })
    // The process itself may have stopped. If it answers, it ends the worker, however long that takes, and its others continue.
    this.unanswered ??= this.clock.setTimer(KILL_MS, () => this.child?.kill('SIGKILL'))
    await ended
  }

  private answered(): void {
    this.unanswered?.cancel()
    this.unanswered = null
  }

  private hear(message: FromProcess): void {
    switch (message.tell) {
      case 'ending':
        this.answered()
        return
      case 'control':
        this.workers.get(message.id)?.control.deliver(message.message)
        return
      case 'output':
        this.workers.get(message.id)?.options[message.stream]?.(message.text)
        return
      case 'beats':
        for (const [id, value] of message.beats) {
          const worker = this.workers.get(id)
          if (worker !== undefined) worker.beats.value = value
        }
        return
      case 'exit': {
        const { id, exitCode, thrown } = message
        this.exited(id, { exitCode, thrown: thrown === null ? undefined : this.thrownIn(thrown) })
        return
      }
      default:
        message satisfies never
    }
  }

  private thrownIn(payload: Parameters<ReturnType<typeof runPayloads>['decodeReply']>[0]): unknown {
    try {
      return this.payloads.decodeReply(payload)
    } catch (error) {
      return error
    }
  }

  private exited(id: WorkerId, exit: HostedExit): void {
    const worker = this.workers.get(id)
    if (worker === undefined) return
    this.workers.delete(id)
    worker.control.close()
    this.onWorkerEnd(id)
    worker.options.onExit(exit)
    worker.resolveEnded()
  }

  private onFailed(error: Error): void {
    this.hasEnded = true
    const notStarted = tooManyOpenFiles('launch', error) ?? processFailed(error)
    for (const id of [...this.workers.keys()]) this.exited(id, { exitCode: 1, thrown: undefined, notStarted })
  }

  private onGone(pid: number, code: number | null, signal: NodeJS.Signals | null): void {
    this.answered()
    this.hasEnded = true
    const ofProcess = { pid, signal }
    for (const id of [...this.workers.keys()]) this.exited(id, { exitCode: code ?? 1, thrown: undefined, ofProcess })
  }
}

/** A process, or why there is none: nothing may be sent to that, for Node fails on it. */
function forked(entry: URL): ChildProcess | { readonly error: Promise<Error> } {
  try {
    const child = fork(fileURLToPath(entry), [], {
      serialization: 'advanced',
      execArgv: flagsFor(process.execArgv),
      env: environmentFor(process.env),
    })
    return child.pid === undefined ? { error: new Promise((resolve) => child.once('error', resolve)) } : child
  } catch (error) {
    return { error: Promise.resolve(error as Error) }
  }
}

function processFailed(cause: Error): PostgradError {
  return new PostgradError('PROCESS_FAILED', {
    op: 'launch',
    message: `a process could not be started: ${cause.message}`,
    remedy: 'The machine may allow no more processes (ulimit -u), or have no memory left.',
    cause,
  })
}

/** Messages to a worker of another process, and from it. */
class ProcessControl implements Control {
  private readonly post: (message: unknown, moved: readonly object[]) => void
  private readonly end: () => void
  private readonly listeners = new Set<(event: { readonly data: unknown }) => void>()

  constructor(post: (message: unknown, moved: readonly object[]) => void, end: () => void) {
    this.post = post
    this.end = end
  }

  // biome-ignore lint/suspicious/noExplicitAny: comlink's own signature
  postMessage(message: any, transfer: readonly object[] = []): void {
    this.post(message, transfer)
  }

  onMessage(listen: (message: unknown) => void): void {
    this.listeners.add(({ data }) => listen(data))
  }

  addEventListener(_type: string, listener: unknown): void {
    this.listeners.add(listener as (event: { readonly data: unknown }) => void)
  }

  removeEventListener(_type: string, listener: unknown): void {
    this.listeners.delete(listener as (event: { readonly data: unknown }) => void)
  }

  deliver(data: unknown): void {
    const own = withOwnBuffers(data)
    for (const listener of [...this.listeners]) listener({ data: own })
  }

  close(): void {
    this.end()
    this.listeners.clear()
  }
}

/** Buffers are copied on this way; ends are named. */
function tokensOf(moved: readonly object[]): ProcessEndToken[] {
  return moved.flatMap((one) => (one as Partial<TokenEnd>).token ?? [])
}

/** The main thread can still call workers, but they cannot call it. */
function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
