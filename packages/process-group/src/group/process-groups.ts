/**
 * All process groups of one worker: gives each its messages, and notifies it of the deaths of its members and the worker's end. `form.ts` makes groups;
 * users call `api/`.
 *
 * Note [Messages of groups that are not known]
 *
 * Members learn that a group is there one after the other, and the first may send before the last knows. So while this worker takes part in making one, what comes
 * for a group that it does not know is held, and given to it or, when no group is being made any more, answered. The answer (UNKNOWN) ends what waits for
 * this worker in a group in which it is not, as when its own part of `initProcessGroup` ran out of time. Ids of groups are given once in a cluster's life, so a
 * group that is made again of the same workers gets no message of its predecessor; those are dropped.
 */
import type { PostgradError } from '@postgrad/base'
import { Tombstones } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import { currentRuntime, type WorkerRuntime } from '@postgrad/rpc/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { groupExists } from '../common/errors.js'
import { type Body, dropValues, NOTHING, What } from '../common/protocol.js'
import { type GroupSpec, ProcessGroup } from './process-group.js'

/** So many messages of one worker are held while groups are being made. */
const HELD_MAX = 4096
/** So many groups that were destroyed are remembered. */
const DESTROYED_KEPT = 1024

interface Held {
  readonly from: WorkerInfo
  readonly body: Body
}

export class ProcessGroups {
  readonly runtime: WorkerRuntime
  /** That of `initProcessGroup`; null before and after. */
  defaultGroup: ProcessGroup | null = null
  private readonly groups = new Map<bigint, ProcessGroup>()
  private readonly destroyed = new Tombstones(DESTROYED_KEPT)
  private held: Held[] = []
  /** Whose messages could not be read while groups are being made: it may have been one of those. */
  private readonly lost = new Map<number, unknown>()
  private isInitializing = false
  /** How many groups this worker takes part in making. */
  private forming = 0

  constructor(runtime: WorkerRuntime) {
    this.runtime = runtime
    runtime.handle(MessageType.COLLECTIVE, (message, from) => this.onMessage(message, from))
    runtime.messages.handleUnreadable(MessageType.COLLECTIVE, ({ peer, error, failed }) => {
      const group = failed === null ? undefined : this.groups.get(failed.body[0] as bigint)
      if (group === undefined && this.forming > 0) this.lost.set(peer.info.id, error)
      for (const each of group === undefined ? this.values() : [group]) each.onUnreadable(peer.info.id, error)
    })
    runtime.onPeerDeath((peer, error) => this.onPeerDeath(peer.id, error))
    runtime.onClose((closedBy) => this.onClose(closedBy))
    runtime.contribute(() => ({
      processGroups: this.groups.size,
      collectives: this.sum((group) => group.pending),
      collectivesUnread: this.held.length + this.sum((group) => group.unread),
    }))
  }

  /** With this worker as a member. */
  values(): ProcessGroup[] {
    return [...this.groups.values()]
  }

  /** The first of these workers whose heap is this one's, as it is seen here: what names the heap among them. Itself, where it is none of them. */
  heapAmong(workers: readonly number[]): number {
    const { info, peers } = this.runtime
    return workers.find((id) => id === info.id || peers.get(id)?.ledger.transport?.reach === 'shared') ?? info.id
  }

  /** Runs `make`, which makes the default group. @throws (rejects) PROCESS_GROUP_EXISTS */
  async initialize(make: () => Promise<ProcessGroup>): Promise<ProcessGroup> {
    if (this.defaultGroup !== null || this.isInitializing) throw groupExists()
    this.isInitializing = true
    try {
      return await make()
    } finally {
      this.isInitializing = false
    }
  }

  /** Runs `make`, which makes groups by `add`: what comes for them meanwhile is held. */
  async whileForming<T>(make: () => Promise<T>): Promise<T> {
    this.forming++
    try {
      return await make()
    } finally {
      this.forming--
      if (this.forming === 0) {
        this.lost.clear()
        for (const { from, body } of this.held.splice(0)) this.give(body, from)
      }
    }
  }

  /** A group that has come about. */
  add(spec: Omit<GroupSpec, 'onDestroyed'>): ProcessGroup {
    const group = new ProcessGroup(this.runtime, { ...spec, onDestroyed: (ended) => this.forget(ended) })
    if (group.rank < 0) return group
    this.groups.set(group.id, group)
    const { held } = this
    this.held = held.filter(({ body }) => body[0] !== group.id)
    for (const { from, body } of held) if (body[0] === group.id) this.give(body, from)
    for (const { id } of group.workers) {
      const death = this.runtime.deathOf(id)
      if (death !== null) group.onDeath(id, death)
      if (this.lost.has(id)) group.onUnreadable(id, this.lost.get(id))
    }
    return group
  }

  private forget(group: ProcessGroup): void {
    this.groups.delete(group.id)
    this.destroyed.add(group.id)
    if (this.defaultGroup === group) this.defaultGroup = null
  }

  private onMessage({ body }: Message, from: WorkerInfo): void {
    const of = body as unknown as Body
    const isKnown = this.groups.has(of[0]) || this.destroyed.has(of[0])
    if (isKnown || this.forming === 0) {
      this.give(of, from)
      return
    }
    if (this.held.filter((one) => one.from.id === from.id).length < HELD_MAX) this.held.push({ from, body: of })
    else this.refuse(of, from, 'there are too many for a group that is not known yet')
  }

  private give(body: Body, from: WorkerInfo): void {
    const [id, what, , , , values] = body
    const group = this.groups.get(id)
    if (group === undefined) {
      if (this.destroyed.has(id)) {
        dropValues(values)
        return
      }
      this.refuse(body, from, 'no such group')
      if (what !== What.left && what !== What.unknown) {
        this.runtime.messages.postIfReachable(from.id, MessageType.COLLECTIVE, [id, What.unknown, 0, 0, '', NOTHING, null])
      }
      return
    }
    const rank = group.rankOf(from.id)
    const problem = rank < 0 || rank === group.rank ? 'its sender is not another member of the group' : group.onMessage(rank, body)
    if (problem !== null) this.refuse(body, from, problem)
  }

  private refuse([, , , , , values]: Body, from: WorkerInfo, why: string): void {
    dropValues(values)
    this.runtime.refuseInvalid(from, MessageType.COLLECTIVE, why)
  }

  private onPeerDeath(worker: number, error: PostgradError): void {
    this.held = this.held.filter(({ from, body }) => {
      if (from.id === worker) dropValues(body[5])
      return from.id !== worker
    })
    for (const group of this.values()) group.onDeath(worker, error)
  }

  private onClose(closedBy: () => PostgradError): void {
    for (const { body } of this.held.splice(0)) dropValues(body[5])
    for (const group of this.values()) group.close(closedBy())
    this.groups.clear()
    this.defaultGroup = null
  }

  private sum(count: (group: ProcessGroup) => number): number {
    return this.values().reduce((sum, group) => sum + count(group), 0)
  }
}

const SLOT = Symbol('postgrad.processGroups')

/** The process groups of a worker, made when they are first asked for. */
export function processGroupsOf(runtime: WorkerRuntime): ProcessGroups {
  return runtime.slot(SLOT, () => new ProcessGroups(runtime))
}

/** Those of the worker that runs this code. @throws RPC_NOT_INITIALIZED */
export function currentProcessGroups(): ProcessGroups {
  return processGroupsOf(currentRuntime())
}
