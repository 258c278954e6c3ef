/**
 * The workers of a cluster and their membership: does what `membership/members.ts` asks for, by a `WorkerHost`.
 * `cluster.ts` and `lifecycle.ts` use it; each worker is a `RemoteWorker`.
 */
import type { WorkerId } from '@postgrad/base'
import type { JobFromWorker, Progress } from '@postgrad/jobs/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Clock } from '@postgrad/transport'
import type { PayloadCodec } from '@postgrad/wire/internal'
import type { BootData, WorkerPeer } from '../admin/protocol.js'
import { type OutputSink, RemoteWorker } from '../admin/remote-worker.js'
import { type LinkEnd, type ResourceLimits, type WorkerHost, withEnds } from '../host/worker-host.js'
import { launchFailed } from '../membership/launch-failed.js'
import { type Change, type MemberControl, Members, type MembersHost, type PeerEnd } from '../membership/members.js'
import type { PeerLinks } from '../membership/peer-links.js'
import { type Birth, MAIN_ID } from '../membership/roster.js'

export interface RemoteMembersOptions {
  /** What all of them are born with. */
  readonly common: Omit<BootData, 'info' | 'life' | 'gone' | 'peers'>
  readonly host: WorkerHost
  readonly payloads: PayloadCodec
  readonly clock: Clock
  readonly stdout: OutputSink | undefined
  readonly stderr: OutputSink | undefined
  readonly env: () => NodeJS.ProcessEnv | undefined
  readonly resourceLimits: (name: string) => ResourceLimits | undefined
  /** Dead workers are restarted without a request. */
  readonly isSupervised: boolean
  readonly onProgress: (progress: Progress, worker: string) => void
  readonly onJob: (message: JobFromWorker, thread: RemoteWorker) => void
  /** Nobody waits for one of them any more, or it has ended. */
  readonly onChange: () => void
}

/** How long a worker that is busy may keep a newcomer waiting, in ms; it then learns of it when it comes to itself. */
const CONNECT_MS = 5000

export class RemoteMembers implements MembersHost<LinkEnd> {
  private readonly options: RemoteMembersOptions
  private readonly members = new Members<LinkEnd>(this)
  /** Of each worker that has not ended, and of those whose names have no other. */
  private readonly threadsById = new Map<WorkerId, RemoteWorker>()

  constructor(options: RemoteMembersOptions) {
    this.options = options
  }

  /** In the order in which their names came, which a restart keeps; dead ones included, those that have not been ready yet excluded. */
  get workers(): readonly WorkerInfo[] {
    return this.members.roster.workers
  }

  get threads(): readonly RemoteWorker[] {
    return this.workers.map(({ id }) => this.threadsById.get(id)!)
  }

  /** Every thread that may still be running. */
  get running(): readonly RemoteWorker[] {
    return this.members.roster.living.flatMap(({ id }) => this.threadsById.get(id) ?? []).filter((thread) => !thread.dead)
  }

  isStarting(name: string): boolean {
    return this.members.roster.isStarting(name)
  }

  /**
   * Starts workers under these names and resolves when all of them have loaded the program and are linked with everybody. If one cannot, none of them
   * stays, and the earlier workers continue.
   * @param op whose failure it is
   * Rejects with WORKER_NAME_TAKEN, WORKER_IDS_SPENT, CLUSTER_CLOSED, or LAUNCH_FAILED with the worker in `values` and why in `cause`.
   */
  async start(op: string, names: readonly string[], timeoutMs: number): Promise<readonly RemoteWorker[]> {
    this.noteEnded()
    const joined = await this.members.start(names, { op, timeoutMs })
    return joined.map(({ id }) => this.threadsById.get(id)!)
  }

  /**
   * The main thread joins: it is linked with all that are ready, and with newcomers from now on. Resolves when they can call it. A worker that is busy for more
   * than 5 s learns of it when it comes to itself.
   * @param make gets nothing done if the name is taken
   * Rejects with WORKER_NAME_TAKEN.
   */
  async enter(name: string, op: string, make: () => PeerLinks<WorkerPeer>): Promise<void> {
    await this.members.enter({ name, id: MAIN_ID }, { op, timeoutMs: CONNECT_MS }, () => {
      const links = make()
      return { start: () => null, connect: (peers, gone) => links.connect(peers, gone) }
    })
  }

  /** The main thread has left, or ended. */
  gone(id: WorkerId): void {
    this.members.gone(id)
  }

  /** It is about to end in peace: newcomers are not linked with it any more. */
  depart(thread: RemoteWorker): void {
    this.members.depart(thread.info.id)
  }

  /** Forgets a name whose worker has ended. */
  remove(name: string): void {
    this.noteEnded()
    this.members.forget(name)
    this.sweep()
  }

  /** None is left, and none will be started. */
  async shutDown(): Promise<void> {
    await this.options.host.close()
  }

  // --- what `Members` asks for

  connect(a: WorkerInfo, b: WorkerInfo): readonly [LinkEnd, LinkEnd] {
    // Newcomers are linked with each other before they are started.
    for (const worker of [a, b]) if (this.members.roster.standingOf(worker.id) === 'starting') this.options.host.admit(worker)
    return this.options.host.link(a, b)
  }

  close(end: LinkEnd): void {
    end.close()
  }

  spawn({ worker, life, gone }: Birth, peers: readonly PeerEnd<LinkEnd>[], { timeoutMs }: Change): MemberControl<LinkEnd> {
    const { common, host, payloads, clock, stdout, stderr, env, resourceLimits, onProgress, onJob, onChange } = this.options
    host.admit(worker)
    const thread = new RemoteWorker({
      host,
      boot: { ...common, info: worker, life, gone, peers },
      payloads,
      clock,
      stdout,
      stderr,
      resourceLimits: resourceLimits(worker.name),
      env: env(),
      onProgress,
      onJob,
      onChange,
    })
    this.threadsById.set(worker.id, thread)
    void thread.ended.then(() => this.members.gone(worker.id))
    return {
      start: () => thread.ask('start', [], { timeoutMs }),
      connect: (others, dead) => {
        const ends = others.map(({ end }) => end)
        return thread.ask('connect', [withEnds(others, ends), dead], { timeoutMs: CONNECT_MS })
      },
    }
  }

  end(id: WorkerId): void {
    void this.threadsById.get(id)!.terminate()
  }

  joined({ id }: WorkerInfo, former: WorkerId | null): void {
    const thread = this.threadsById.get(id)
    // The main thread.
    if (thread === undefined) return
    thread.standing = this.options.isSupervised ? 'supervised' : 'single'
    if (former === null) return
    this.threadsById.get(former)?.onRestarted(thread.info)
    this.threadsById.delete(former)
  }

  ended(id: WorkerId): void {
    this.options.host.release(id)
    this.sweep()
  }

  joinError({ op }: Change, { name, id }: WorkerInfo, cause: unknown): unknown {
    return launchFailed(op, name, cause ?? this.threadsById.get(id)!.death(op))
  }

  /** A thread is known to have ended a turn before the waits for its end resolve. */
  private noteEnded(): void {
    for (const [id, thread] of [...this.threadsById]) if (thread.dead) this.members.gone(id)
  }

  /** Nobody asks any more for threads that have ended and whose names others have. */
  private sweep(): void {
    const { roster } = this.members
    for (const [id, thread] of this.threadsById) {
      // Of several that end at once each is asked for until its own end has been noted.
      if (thread.dead && roster.standingOf(id) === 'gone' && !this.workers.some((worker) => worker.id === id)) this.threadsById.delete(id)
    }
  }
}
