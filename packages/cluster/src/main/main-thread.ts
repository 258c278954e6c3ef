/**
 * The main thread as a guest of its cluster: a runtime of its own, made and linked with every worker when `cluster.call`, `remote` or `runHere` is first
 * used. In its scope everything works as in a worker; no group counts it. `members.ts` links it, `cluster.ts` above is what users hold. The rules
 * are CLU-75 to CLU-84. PyTorch: the master process, which is a worker as any other.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import type { References, WorkerInfo } from '@postgrad/rpc'
import { type Counts, threadRegistry, WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import type { Heap } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import type { BootData } from '../admin/protocol.js'
import { PeerLinks } from '../host/peer-links.js'
import { type Linked, MAIN_ID, type Members } from '../membership/members.js'
import { explainDeaths, type FindDeath } from './death-cause.js'

/** Default of `launch({ mainName })`. */
export const MAIN_NAME = 'main'

export interface MainOptions {
  readonly name: string
  /** What workers are born with. */
  readonly common: Pick<BootData, 'seed' | 'device' | 'rpcTimeoutMs' | 'mailbox' | 'referenceStacks'>
  /** Null: none is shared. */
  readonly heap: Heap | null
  readonly clock: Clock
  readonly members: Members
}

/** What the main thread asks of its cluster. */
export interface MainHost {
  /** Null while the cluster takes work. */
  closedError(op: string): PostgradError | null
  readonly endOf: FindDeath
}

export class MainThread {
  private readonly options: MainOptions
  private readonly host: MainHost
  /** Null before it joins. */
  private runtime: WorkerRuntime | null = null
  /** Every worker can call it. */
  private isLinked = false
  private readonly heard = new Set<number>()
  private entering: Promise<WorkerRuntime> | null = null

  constructor(options: MainOptions, host: MainHost) {
    this.options = options
    this.host = host
  }

  /**
   * What `fn` gives in the scope of the main thread's runtime, after that has joined. Code that runs in this scope already keeps what surrounds it: its context,
   * its deadline.
   * Rejects with WORKER_NAME_TAKEN, CLUSTER_CLOSED, and what `fn` throws.
   */
  async run<T>(op: string, fn: () => T): Promise<Awaited<T>> {
    this.admit(op)
    // In the turn of the caller if possible, so that its calls and those of its references leave in their order.
    const runtime = this.isLinked ? this.runtime! : await this.enter(op)
    this.admit(op)
    try {
      return await (currentScope().worker === runtime ? fn() : runtime.run(fn))
    } catch (error) {
      throw await this.explained(op, error)
    }
  }

  /** What it has sent and received, by its id; null while anything is under way here, empty if it has not joined. */
  countsIfQuiet(): ReadonlyMap<number, Counts> | null {
    if (this.runtime === null || this.runtime.isClosed) return new Map()
    const counts = this.runtime.countsIfQuiet()
    return counts === null ? null : new Map([[MAIN_ID, counts]])
  }

  /** Whether a call of the main thread was, or will be, rejected with the death of this worker: its link may end before the thread does, or after. */
  hearsOf(workerId: number): boolean {
    return this.heard.has(workerId) || this.isWaitingFor(workerId)
  }

  /** By its name, if it has joined. */
  references(): Record<string, References> {
    return this.runtime === null ? {} : { [this.options.name]: this.runtime.references() }
  }

  /** Gives up the references that it holds. Returns whether there were any. */
  release(): boolean {
    if (this.runtime === null || this.runtime.references().held.length === 0) return false
    this.runtime.rrefs.releaseAll()
    return true
  }

  async close(): Promise<void> {
    await this.runtime?.close()
  }

  private enter(op: string): Promise<WorkerRuntime> {
    this.entering ??= this.join(op).finally(() => {
      this.entering = null
    })
    return this.entering
  }

  private async join(op: string): Promise<WorkerRuntime> {
    const { name, members, common } = this.options
    if (common.device !== null) await device(common.device as DeviceSpec).ready()
    // It may have been closed meanwhile, which nobody would tell a runtime that is made now.
    this.admit(op)
    await members.enter(name, (gone) => this.begin(gone))
    this.isLinked = true
    return this.runtime!
  }

  private begin(gone: readonly WorkerInfo[]): Linked {
    const { name, common, heap, clock } = this.options
    const { seed, rpcTimeoutMs, mailbox, referenceStacks } = common
    const runtime = new WorkerRuntime({
      name,
      id: MAIN_ID,
      isGuest: true,
      clock,
      registry: threadRegistry,
      generator: workerGenerator(seed, name, 0),
      // As at workers: who waits has been told.
      onHandlerError: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
      referenceStacks,
      ...(common.device === null ? {} : { device: device(common.device as DeviceSpec) }),
      ...(rpcTimeoutMs === null ? {} : { rpcTimeoutMs }),
      ...(mailbox === null ? {} : { mailbox }),
    })
    installDistAutograd(runtime)
    // Before what waits for it is rejected.
    runtime.onPeerDeath(({ id }) => {
      if (this.isWaitingFor(id)) this.heard.add(id)
    })
    for (const worker of gone) runtime.noteDeath(worker, 'before the main thread joined')
    const links = new PeerLinks(runtime, heap)
    this.runtime = runtime
    return { info: runtime.info, hasHeap: heap !== null, isGuest: true, connect: (peers) => links.openAll(peers) }
  }

  private isWaitingFor(workerId: number): boolean {
    for (const { info, pending } of this.runtime?.peers ?? []) if (info.id === workerId) return pending.size > 0
    return false
  }

  private admit(op: string): void {
    const error = this.host.closedError(op)
    if (error !== null) throw error
  }

  private async explained(op: string, error: unknown): Promise<unknown> {
    const isOwnEnd = isPostgradError(error, 'RPC_SHUT_DOWN') && error.workers.length === 0 && error.values.worker === this.options.name
    if (isOwnEnd) return this.host.closedError(op) ?? error
    await explainDeaths(error, this.host.endOf)
    return error
  }
}
