/**
 * Who is in a cluster: starts workers' threads in groups (those of `launch`, of a `join`, one of a `restart`), gives each a fresh id, and sees that
 * every two living workers have a channel of their own. `cluster.ts` above is what users hold, `remote-worker.ts` below is one of them.
 *
 * Note [Who is linked with whom]. A newcomer is born with channels to all who are ready then, so that its program finds them while it loads; their
 * ends of these channels stay here until it is ready, since nobody may call it earlier. In that moment, which is one turn of this thread, they are
 * posted, with channels to those who have become ready meanwhile. So of any two workers the one that was ready later has linked them, once. A
 * port that its receiver does not live to see, or that is closed here, closes the other end: whoever has it learns of a death.
 */
import { PostgradError } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import type { JobFromWorker, Progress } from '@postgrad/jobs/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Heap, HeapHandle } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import type { PayloadCodec } from '@postgrad/wire/internal'
import type { BootData, PeerEnd } from '../admin/protocol.js'
import { type OutputSink, RemoteWorker } from '../admin/remote-worker.js'
import { type LinkEnd, type ResourceLimits, type WorkerHost, withEnds } from '../host/worker-host.js'
import { attempt, launchFailed } from './launch-failed.js'

export interface MembersOptions {
  /** What all of them are born with. */
  readonly common: Omit<BootData, 'info' | 'life' | 'gone' | 'peers' | 'heap'>
  readonly host: WorkerHost
  readonly heap: Heap | null
  readonly payloads: PayloadCodec
  readonly clock: Clock
  readonly stdout: OutputSink | undefined
  readonly stderr: OutputSink | undefined
  readonly env: () => NodeJS.ProcessEnv | undefined
  readonly resourceLimits: (name: string) => ResourceLimits | undefined
  /** Whoever dies is started anew without being asked for. */
  readonly isSupervised: boolean
  readonly onProgress: (progress: Progress, worker: string) => void
  readonly onJob: (message: JobFromWorker, thread: RemoteWorker) => void
  readonly onChange: () => void
}

/** Who gets an end of a channel to each newcomer: a member, or the main thread when it has joined. */
export interface Linked {
  readonly info: WorkerInfo
  readonly hasHeap: boolean
  readonly isGuest: boolean
  /** Opens its ends of channels to others. */
  connect(peers: readonly PeerEnd[]): Promise<unknown>
}

interface Member extends Linked {
  readonly thread: RemoteWorker
  /** It is about to end in peace, and gets no new peers. */
  isLeaving: boolean
  /** The dead worker whose name it took. */
  former: Member | null
}

/** The end that `member` gets of the channel to the newcomer `to`, once that is ready. */
interface Door {
  readonly member: Linked
  readonly to: Member
  readonly end: LinkEnd
}

/** The main thread's, whenever it joins: ids of workers begin with 0. */
export const MAIN_ID = WORKER_ID_MAX
/** How long a worker that is busy may keep a newcomer waiting, in ms; it then learns of it when it comes to itself. */
const CONNECT_MS = 5000

export class Members {
  private readonly options: MembersOptions
  /** Of each name the worker that was ready last, dead or alive. */
  private readonly ready = new Map<string, Member>()
  private readonly starting = new Map<string, Member>()
  /** How many workers each name has had. */
  private readonly lives = new Map<string, number>()
  /** Workers whose thread has ended. */
  private readonly gone: WorkerInfo[] = []
  /** The main thread; null before it joins. */
  private main: Linked | null = null
  private nextId = 0

  constructor(options: MembersOptions) {
    this.options = options
  }

  /** In the order in which their names came, which a restart keeps; dead ones included, those that have not been ready yet excluded. */
  get workers(): readonly WorkerInfo[] {
    return this.threads.map(({ info }) => info)
  }

  get threads(): readonly RemoteWorker[] {
    return [...this.ready.values()].map(({ thread }) => thread)
  }

  /** Every thread that may still be running. */
  get running(): readonly RemoteWorker[] {
    return [...this.ready.values(), ...this.starting.values()].map(({ thread }) => thread).filter((thread) => !thread.dead)
  }

  isStarting(name: string): boolean {
    return this.starting.has(name)
  }

  /**
   * Starts workers under these names and resolves when all of them have loaded the program and are linked with everybody. If one cannot, none of them
   * stays, and who was there before goes on as before.
   * @param op whose failure it is
   * Rejects with WORKER_NAME_TAKEN, WORKER_IDS_SPENT, CLUSTER_CLOSED, or LAUNCH_FAILED with the worker in `values` and why in `cause`.
   */
  async start(op: string, names: readonly string[], timeoutMs: number): Promise<readonly RemoteWorker[]> {
    for (const name of names) this.checkFree(name)
    if (this.nextId + names.length > MAIN_ID) throw idsSpent()
    const group: Member[] = []
    const doors: Door[] = []
    try {
      this.startThreads(op, names, group, doors)
      const asked = group.map(({ thread }) => thread.ask('start', [], { timeoutMs }))
      await eachOrFirstError(asked, (index, error) => launchFailed(op, names[index]!, error))
      const linked = this.link(group, doors.splice(0))
      for (const member of group) {
        member.former = this.ready.get(member.info.name) ?? null
        this.ready.set(member.info.name, member)
        member.thread.standing = this.options.isSupervised ? 'supervised' : 'single'
      }
      await linked
      for (const { thread } of group) if (thread.dead) throw launchFailed(op, thread.info.name, thread.death(op))
      for (const member of group) {
        member.former?.thread.onRestarted(member.thread.info)
        member.former = null
      }
      return group.map(({ thread }) => thread)
    } catch (error) {
      for (const { end } of doors) end.close()
      await Promise.all(group.map((member) => this.undo(member)))
      throw error
    } finally {
      for (const name of names) this.starting.delete(name)
    }
  }

  /**
   * The main thread joins: it is linked with all that are ready, and with newcomers from now on. Resolves when they can call it. A worker that is busy for more
   * than 5 s learns of it when it comes to itself.
   * @param make gets the workers that have ended
   * @throws WORKER_NAME_TAKEN
   */
  async enter(name: string, make: (gone: readonly WorkerInfo[]) => Linked): Promise<void> {
    const taken = this.starting.get(name) ?? this.ready.get(name)
    if (taken !== undefined) throw mainNameTaken(taken.info)
    const main = make(this.gone)
    const linked = this.link([main], [])
    this.main = main
    await linked
  }

  /** It is about to end in peace: newcomers are not linked with it any more. */
  depart(thread: RemoteWorker): void {
    const member = this.ready.get(thread.info.name)
    if (member?.thread === thread) member.isLeaving = true
  }

  /** Forgets a name whose worker has ended. */
  remove(name: string): void {
    if (this.ready.get(name)?.thread.dead) this.ready.delete(name)
  }

  private startThreads(op: string, names: readonly string[], group: Member[], doors: Door[]): void {
    const { heap, host } = this.options
    const there = this.linked()
    const newcomers = names.map((name) => ({ info: { name, id: this.nextId++ }, slot: heap?.handle() ?? null, peers: [] as PeerEnd[] }))
    const outside: { member: Linked; end: LinkEnd; newcomer: number }[] = []
    newcomers.forEach((a, index) => {
      for (const b of newcomers.slice(index + 1)) {
        const [near, far] = host.link()
        a.peers.push({ info: b.info, end: near, hasHeap: b.slot !== null, isGuest: false })
        b.peers.push({ info: a.info, end: far, hasHeap: a.slot !== null, isGuest: false })
      }
      for (const member of there) {
        const [near, far] = host.link()
        a.peers.push(peerOf(member, near))
        outside.push({ member, end: far, newcomer: index })
      }
    })
    try {
      for (const { info, slot, peers } of newcomers) {
        const thread = attempt(op, info.name, () => this.startThread(info, slot, peers))
        const member = memberOf(thread, slot !== null)
        group.push(member)
        this.starting.set(info.name, member)
      }
    } catch (error) {
      // Those that have no thread to end with.
      for (const { slot } of newcomers.slice(group.length)) this.giveBack(slot)
      for (const { end } of outside) end.close()
      throw error
    }
    for (const { member, end, newcomer } of outside) doors.push({ member, end, to: group[newcomer]! })
  }

  private startThread(info: WorkerInfo, heap: HeapHandle | null, peers: PeerEnd[]): RemoteWorker {
    const { common, host, payloads, clock, stdout, stderr, env, resourceLimits, onProgress, onJob, onChange } = this.options
    const life = this.lives.get(info.name) ?? 0
    const thread = new RemoteWorker({
      host,
      boot: { ...common, info, life, gone: [...this.gone], peers, heap },
      payloads,
      clock,
      stdout,
      stderr,
      resourceLimits: resourceLimits(info.name),
      env: env(),
      onProgress,
      onJob,
      onChange,
    })
    this.lives.set(info.name, life + 1)
    void thread.ended.then(() => {
      this.giveBack(heap)
      this.gone.push(info)
    })
    return thread
  }

  /** The group is ready: see Note [Who is linked with whom]. What must happen in one turn has happened when this returns. */
  private async link(group: readonly Linked[], doors: readonly Door[]): Promise<void> {
    const newPeers = new Map<Linked, PeerEnd[]>(group.map((member) => [member, []]))
    for (const member of this.linked()) {
      const ends: PeerEnd[] = []
      for (const newcomer of group) {
        const door = doors.find((open) => open.member === member && open.to === newcomer)
        let end = door?.end
        if (end === undefined) {
          const [near, far] = this.options.host.link()
          end = near
          newPeers.get(newcomer)!.push(peerOf(member, far))
        }
        ends.push(peerOf(newcomer, end))
      }
      newPeers.set(member, ends)
    }
    for (const { member, end } of doors) if (!newPeers.has(member)) end.close()
    const told = [...newPeers].filter(([, ends]) => ends.length > 0)
    await Promise.allSettled(told.map(([member, peers]) => member.connect(peers)))
  }

  /** Those that newcomers are linked with. */
  private linked(): Linked[] {
    const members = [...this.ready.values()].filter(({ thread, isLeaving }) => !thread.dead && !isLeaving)
    return this.main === null ? members : [...members, this.main]
  }

  private async undo({ thread, former }: Member): Promise<void> {
    await thread.terminate()
    const { name } = thread.info
    if (this.ready.get(name)?.thread !== thread) return
    if (former === null) this.ready.delete(name)
    else this.ready.set(name, former)
  }

  /** However a worker ends, what it held goes back, and its slot is free for another. */
  private giveBack(slot: HeapHandle | null): void {
    if (slot !== null) this.options.heap!.reclaim(slot)
  }

  private checkFree(name: string): void {
    if (this.main?.info.name === name) throw mainNameTaken(this.main.info)
    const member = this.starting.get(name) ?? this.ready.get(name)
    if (member === undefined || member.thread.dead) return
    throw new PostgradError('WORKER_NAME_TAKEN', {
      op: 'worker name',
      message: `the name '${name}' belongs to worker ${member.thread.info.id}, which ${this.starting.has(name) ? 'is being started' : 'is alive'}`,
      remedy: this.starting.has(name)
        ? 'Use another name, or await what starts it.'
        : 'Use another name, or cluster.restart(name) for a new worker in its place.',
      values: { worker: name, workerId: member.thread.info.id },
    })
  }
}

function memberOf(thread: RemoteWorker, hasHeap: boolean): Member {
  const connect = (peers: readonly PeerEnd[]): Promise<unknown> => {
    const ends = peers.map(({ end }) => end)
    return thread.ask('connect', [withEnds(peers, ends)], { timeoutMs: CONNECT_MS })
  }
  return { thread, info: thread.info, hasHeap, isGuest: false, connect, isLeaving: false, former: null }
}

function peerOf({ info, hasHeap, isGuest }: Linked, end: LinkEnd): PeerEnd {
  return { info, end, hasHeap, isGuest }
}

/** Resolves when all have, rejects with what `fail` makes of the first failure in time. */
function eachOrFirstError(promises: readonly Promise<unknown>[], fail: (index: number, error: unknown) => unknown): Promise<unknown> {
  return Promise.all(promises.map((promise, index) => promise.catch((error) => Promise.reject(fail(index, error)))))
}

/** @param holder the worker that has the main thread's name, or the main thread itself */
function mainNameTaken({ name, id }: WorkerInfo): PostgradError {
  return new PostgradError('WORKER_NAME_TAKEN', {
    op: 'worker name',
    message: `the name '${name}' belongs to ${id === MAIN_ID ? 'the main thread, which has joined the cluster' : `worker ${id}, so the main thread cannot join as '${name}'`}`,
    remedy: `Give the worker another name, or launch with { mainName } for another name of the main thread.`,
    values: { worker: name, workerId: id },
  })
}

function idsSpent(): PostgradError {
  return new PostgradError('WORKER_IDS_SPENT', {
    op: 'worker id',
    message: `this cluster has given away all of its ${MAIN_ID} ids; each worker gets a fresh one, also when it is started anew`,
    remedy: 'Launch a new cluster.',
  })
}
