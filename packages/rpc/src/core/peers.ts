/**
 * The workers that one worker knows, by id and by name: those that are linked with it, and itself. Of a dead worker only its death is kept, in `Liveness`: a cluster
 * that starts its workers again may see any number of deaths.
 */
import { Liveness, type NoticedDeath } from '@postgrad/actor/internal'
import type { PostgradError, WorkerId } from '@postgrad/base'
import { checkWorkerId, workerDied } from '@postgrad/base/internal'
import type { Clock } from '@postgrad/transport'
import { nameTaken, unknownWorker } from '../common/rpc-errors.js'
import { checkWorkerName, type Target, type WorkerInfo } from '../common/worker-info.js'
import { type Peer, Standing } from './peer.js'

export class Peers {
  readonly liveness = new Liveness()
  private readonly clock: Clock
  private readonly departed: (info: WorkerInfo) => Peer
  private readonly remedyOf: ((detail: string) => string) | undefined
  private readonly byId = new Map<WorkerId, Peer>()
  private readonly idsByName = new Map<string, WorkerId>()

  /** @param departed makes the entry of a dead and forgotten peer: each request to it fails with its death */
  constructor(clock: Clock, departed: (info: WorkerInfo) => Peer, remedyOf?: (detail: string) => string) {
    this.clock = clock
    this.departed = departed
    this.remedyOf = remedyOf
  }

  /** Self included. */
  [Symbol.iterator](): Iterator<Peer> {
    return this.byId.values()
  }

  /** A worker that was started again has its old name and a fresh id; the name then means the new one. */
  add(peer: Peer): void {
    this.byId.set(peer.info.id, peer)
    this.idsByName.set(peer.info.name, peer.info.id)
  }

  /** Notes who takes the name of a worker that has ended. @throws WORKER_NAME_TAKEN, WORKER_NAME_INVALID, WORKER_ID_OUT_OF_RANGE */
  admit(info: WorkerInfo): void {
    checkWorkerName(info.name)
    checkWorkerId(info.id)
    const namesake = this.namesake(info.name)
    const isKnown = this.byId.has(info.id) || this.liveness.deathOf(info.id) !== undefined
    if (isKnown || (namesake !== undefined && !namesake.link?.closed)) throw nameTaken(info)
  }

  /** Those whose deaths have been reported, and of which no call is served any more: a call that makes a value for others outlives its caller. */
  forgetTheDead(): void {
    for (const [id, { served }] of this.byId) if (served.size === 0 && this.liveness.deathOf(id) !== undefined) this.byId.delete(id)
  }

  /** Undefined for one that never was a peer, and for the dead. */
  get(id: WorkerId): Peer | undefined {
    return this.byId.get(id)
  }

  /** Dead or alive; undefined for one that is not known. */
  infoOf(id: WorkerId): WorkerInfo | undefined {
    return this.byId.get(id)?.info ?? this.liveness.deathOf(id)?.worker
  }

  /** The peer that has this name; undefined for a name that is known by a death alone. */
  namesake(name: string): Peer | undefined {
    return this.byId.get(this.idsByName.get(name) ?? -1)
  }

  /** Self included, the dead, those that are leaving and guests excluded. */
  members(): WorkerInfo[] {
    const here = [...this].filter(
      (peer) => !peer.isGuest && peer.standing < Standing.leaving && this.liveness.deathOf(peer.info.id) === undefined,
    )
    return here.map(({ info }) => info)
  }

  /** The peer has come so far. */
  stands(id: WorkerId, standing: Standing): void {
    const peer = this.byId.get(id)
    if (peer !== undefined && peer.standing < standing) peer.standing = standing
  }

  /** Also one that is dead. @throws UNKNOWN_WORKER */
  resolve(target: Target, op = 'call'): Peer {
    const id = typeof target === 'string' ? this.idsByName.get(target) : typeof target === 'number' ? target : target?.id
    const peer = id === undefined ? undefined : this.byId.get(id)
    const info = peer?.info ?? (id === undefined ? undefined : this.infoOf(id))
    if (info !== undefined && (typeof target !== 'object' || target.name === info.name)) return peer ?? this.departed(info)
    throw unknownWorker(
      op,
      target,
      [...this].map(({ info }) => info),
    )
  }

  // --- deaths

  /** A worker that died before this one began: what is about it meets its death, and is not taken for a stranger's. */
  noteDeath(worker: WorkerInfo, detail: string): void {
    if (this.byId.has(worker.id)) return
    this.liveness.report({ worker, cause: 'exited', detail, atMs: this.clock.now() })
    if (this.namesake(worker.name) === undefined) this.idsByName.set(worker.name, worker.id)
  }

  /** The error that everything about this worker meets, if it is known to be dead. */
  deathOf(id: WorkerId): PostgradError | null {
    const death = this.liveness.deathOf(id)
    return death === undefined ? null : this.error('worker', death)
  }

  /** The error for a peer whose link has ended, also before that has its turn. */
  diedError(peer: Peer, op: string): PostgradError {
    return this.error(op, this.liveness.deathOf(peer.info.id) ?? this.deathBy(peer, ''))
  }

  private error(op: string, death: NoticedDeath): PostgradError {
    const remedy = death.cause === 'left' ? undefined : this.remedyOf?.(death.detail)
    return workerDied(op, death, { restartedAs: this.restartedAs(death.worker), ...(remedy === undefined ? {} : { remedy }) })
  }

  /** The worker that has its name now. */
  private restartedAs({ name, id }: WorkerInfo): WorkerId | null {
    const namesake = this.namesake(name)
    return namesake === undefined || namesake.info.id === id ? null : namesake.info.id
  }

  /** The death that the end of its link is. */
  deathBy({ info, standing }: Peer, detail: string): NoticedDeath {
    const hasLeft = standing !== Standing.member
    return { worker: info, cause: hasLeft ? 'left' : 'link-closed', detail: hasLeft ? '' : detail, atMs: this.clock.now() }
  }
}
