/**
 * The main thread as a guest of its cluster: a runtime of its own, which `cluster.call`, `remote` or `runHere` makes at the first use and links with every
 * worker. In its scope everything works as in a worker; no group counts it. `remote-members.ts` links it, `cluster.ts` calls it for users. The rules
 * are CLU-75 to CLU-84. PyTorch: the master process, which is a worker like any other.
 */
import { isPostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { References } from '@postgrad/rpc'
import type { Counts, WorkerRuntime } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import { makeRuntime, type RuntimeBoot } from '../admin/make-runtime.js'
import type { WorkerPeer } from '../admin/protocol.js'
import type { WorkerHost } from '../host/worker-host.js'
import { PeerLinks } from '../membership/peer-links.js'
import { MAIN_ID } from '../membership/roster.js'
import type { Gate } from './gate.js'
import type { RemoteMembers } from './remote-members.js'

/** Default of `launch({ mainName })`. */
export const MAIN_NAME = 'main'

export interface MainOptions {
  readonly name: string
  /** What workers are born with. */
  readonly common: RuntimeBoot
  readonly host: WorkerHost
  readonly clock: Clock
  readonly members: RemoteMembers
}

export class MainThread {
  private readonly options: MainOptions
  private readonly gate: Gate
  /** Null before it joins. */
  private runtime: WorkerRuntime | null = null
  /** Every worker can call it. */
  private isLinked = false
  private isEnding = false
  private readonly heard = new Set<number>()
  private entering: Promise<WorkerRuntime> | null = null

  constructor(options: MainOptions, gate: Gate) {
    this.options = options
    this.gate = gate
  }

  /**
   * Runs `fn` in the scope of the main thread's runtime, after that has joined. Code that is in this scope already keeps its context and deadline.
   * Rejects with WORKER_NAME_TAKEN, CLUSTER_CLOSED, and what `fn` throws.
   */
  run<T>(op: string, fn: () => T): Promise<Awaited<T>> {
    return this.gate.through(op, async () => {
      // In the turn of the caller if possible, so that its calls and those of its references leave in their order.
      const runtime = this.isLinked ? this.runtime! : await this.enter(op)
      this.gate.admit(op)
      try {
        return await (currentScope().worker === runtime ? fn() : runtime.run(fn))
      } catch (error) {
        throw this.isOwnEnd(error) ? (this.gate.closedError(op) ?? error) : error
      }
    }) as Promise<Awaited<T>>
  }

  /** What it has sent and received; null while anything is under way here, undefined if it is not linked with anybody. */
  countsIfQuiet(): Counts | null | undefined {
    return this.runtime === null || this.runtime.isClosed ? undefined : this.runtime.countsIfQuiet()
  }

  /** `fn` runs whenever nothing is under way here any more. Returns what ends that. */
  onQuiet(fn: () => void): () => void {
    return this.runtime?.onQuiet(fn) ?? (() => {})
  }

  /** Whether a call of the main thread was, or will be, rejected with the death of this worker: its link may end before the thread does, or after. */
  hearsOf(workerId: number): boolean {
    return this.heard.has(workerId) || this.isWaitingFor(workerId)
  }

  /** Whether its link to this worker has ended, which it may learn before the cluster learns that the thread has. */
  hasLost(workerId: number): boolean {
    const { runtime } = this
    if (runtime === null || runtime.isClosed) return false
    return runtime.peers.get(workerId)?.link?.closed === true || runtime.deathOf(workerId) !== null
  }

  /** By its name, if it has joined. */
  references(): Record<string, References> {
    return this.runtime === null ? {} : { [this.options.name]: this.runtime.references() }
  }

  /** Disposes of the references that it holds. Returns whether there were any. */
  release(): boolean {
    if (this.runtime === null || this.runtime.references().held.length === 0) return false
    this.runtime.rrefs.releaseAll()
    return true
  }

  /** With its cluster. */
  async close(): Promise<void> {
    this.isEnding = true
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
    // The cluster may be closed by now, which a runtime that is made now would not learn.
    this.gate.admit(op)
    await members.enter(name, op, () => this.begin())
    this.isLinked = true
    return this.runtime!
  }

  private begin(): PeerLinks<WorkerPeer> {
    const { name, common, host, clock, members } = this.options
    const runtime = makeRuntime({ name, id: MAIN_ID }, 0, clock, common, { isGuest: true })
    // Before what waits for it is rejected.
    runtime.onPeerDeath(({ id }) => {
      if (this.isWaitingFor(id)) this.heard.add(id)
    })
    // Newcomers learn that it has gone: nobody opens a link to it, which would end on threads, but be dialled forever between processes.
    runtime.onClose(() => {
      if (!this.isEnding) members.gone(MAIN_ID)
    })
    this.runtime = runtime
    return new PeerLinks(runtime, ({ end }) => host.open(end))
  }

  private isWaitingFor(workerId: number): boolean {
    for (const { info, pending } of this.runtime?.peers ?? []) if (info.id === workerId) return pending.size > 0
    return false
  }

  private isOwnEnd(error: unknown): boolean {
    return isPostgradError(error, 'RPC_SHUT_DOWN') && error.workers.length === 0 && error.values.worker === this.options.name
  }
}
