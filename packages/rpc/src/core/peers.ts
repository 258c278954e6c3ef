/** The workers that one worker knows, by id and by name: those that are linked with it, itself, and the dead. */
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
  private readonly byId = new Map<WorkerId, Peer>()
  private readonly idsByName = new Map<string, WorkerId>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Self and the dead included. */
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
    if (this.byId.has(info.id) || (namesake !== undefined && !namesake.link?.closed)) throw nameTaken(info)
    if (namesake !== undefined) namesake.restartedAs = info.id
  }

  /** Dead or alive; undefined for one that never was a peer. */
  get(id: WorkerId): Peer | undefined {
    return this.byId.get(id)
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

  /** @throws UNKNOWN_WORKER, WORKER_DIED for one that was never a peer because it died before (`noteDeath`) */
  resolve(target: Target, op = 'call'): Peer {
    const id = typeof target === 'string' ? this.idsByName.get(target) : typeof target === 'number' ? target : target?.id
    const peer = id === undefined ? undefined : this.byId.get(id)
    if (peer !== undefined && (typeof target !== 'object' || target.name === peer.info.name)) return peer
    const death = peer === undefined && id !== undefined ? this.deathOf(id) : null
    if (death !== null) throw death
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
    if (death === undefined) return null
    const peer = this.byId.get(id)
    const restartedAs = peer === undefined ? (this.namesake(death.worker.name)?.info.id ?? null) : peer.restartedAs
    return workerDied('worker', death, { restartedAs })
  }

  /** What is said of a peer whose link has ended, also before that has its turn. */
  diedError(peer: Peer, op: string): PostgradError {
    return workerDied(op, this.liveness.deathOf(peer.info.id) ?? this.deathBy(peer, ''), peer)
  }

  /** The death that the end of its link is. */
  deathBy({ info, standing }: Peer, detail: string): NoticedDeath {
    const hasLeft = standing !== Standing.member
    return { worker: info, cause: hasLeft ? 'left' : 'link-closed', detail: hasLeft ? '' : detail, atMs: this.clock.now() }
  }
}
