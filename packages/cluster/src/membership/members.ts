/**
 * Performs the roster's commands: keeps both ends of each link until their workers get them, starts and notifies workers through a host, and settles the
 * promise of each change. Clusters (`main/remote-members.ts`) and the simulation are hosts; `roster.ts` decides, and `peer-links.ts` handles the messages
 * at a worker.
 */
import type { WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import { type Birth, type Command, type PeerInfo, Roster } from './roster.js'

/** Another worker, with an end of a link to it. */
export interface PeerEnd<End> extends PeerInfo {
  readonly end: End
}

/**
 * The controller's messages to a worker about membership, over any host, with their link ends. The worker answers each when it is done. The messages of a
 * controller to one worker keep their order, but have no order against messages between workers.
 */
export interface MemberWords<Peer extends PeerInfo> {
  /** Load the program. */
  start: []
  /** `peers` are members now, each with an end of a link; `gone` have ended, and had no link to the worker, or their end of it may have been lost. */
  connect: [peers: readonly Peer[], gone: readonly WorkerInfo[]]
  /** Leave the others in peace; what is under way has so many ms to end. */
  leave: [timeoutMs: number]
  /** End at once: what is under way is cut off. */
  close: []
}

/** How the controller speaks to one worker: promises settle with its answers, and need not when it has ended. */
export type MemberControl<End> = {
  /** Null: it needs no loading. */
  start(...args: MemberWords<PeerEnd<End>>['start']): Promise<unknown> | null
  connect(...args: MemberWords<PeerEnd<End>>['connect']): Promise<unknown>
}

/** What was asked for when a group began. */
export interface Change {
  readonly op: string
  readonly timeoutMs: number
}

export interface MembersHost<End> {
  /** Makes a link; the first end is `a`'s. Either may have died without anybody's knowing: then the other end closes. */
  connect(a: WorkerInfo, b: WorkerInfo): readonly [End, End]
  /** Closes an end that nobody gets, and with it the other one. */
  close(end: End): void
  /** Starts a worker, which opens these ends. `members.gone` reports its end. */
  spawn(birth: Birth, peers: readonly PeerEnd<End>[], change: Change): MemberControl<End>
  /** Ends a worker that was spawned, wherever it is. */
  end(id: WorkerId): void
  /** A worker has become a member, in place of a former one of its name where there was one. */
  joined(worker: WorkerInfo, former: WorkerId | null): void
  /** A worker has ended, spawned or not. */
  ended(id: WorkerId): void
  /** The error of a change whose `worker` could not join. `cause`: what `spawn` threw or `start` rejected with; null: its death. */
  joinError(change: Change, worker: WorkerInfo, cause: unknown): unknown
}

interface Pending {
  readonly change: Change
  /** The first failure. */
  error: unknown
  resolve(workers: readonly WorkerInfo[]): void
  reject(error: unknown): void
}

export class Members<End> {
  readonly roster = new Roster()
  private readonly host: MembersHost<End>
  /** Ends of links that have not been given away, by who gets them and whom they lead to. */
  private readonly ends = new Map<string, End>()
  private readonly controls = new Map<WorkerId, MemberControl<End>>()
  private readonly pending = new Map<number, Pending>()
  /** By a worker that has been sent ends of links and has not answered: the workers at the other ends. */
  private readonly underWay = new Map<WorkerId, Set<WorkerId>>()
  private readonly commands: Command[] = []
  private isPerforming = false

  constructor(host: MembersHost<End>) {
    this.host = host
  }

  /**
   * Starts workers of these names, all or none. Resolves with them when all have been loaded and all members can call them.
   * @throws WORKER_NAME_TAKEN, WORKER_IDS_SPENT; rejects with the host's `joinError` when none of them is left.
   */
  start(names: readonly string[], change: Change): Promise<readonly WorkerInfo[]> {
    const { group, commands } = this.roster.join(names)
    return this.change(group, change, commands)
  }

  /** A guest comes: see `Roster.enter`. `make` gives what the controller speaks to it by. @throws WORKER_NAME_TAKEN */
  enter(info: WorkerInfo, change: Change, make: () => MemberControl<End>): Promise<readonly WorkerInfo[]> {
    const { group, commands } = this.roster.enter(info)
    this.controls.set(info.id, make())
    return this.change(group, change, commands)
  }

  /** It is about to end in peace: newcomers are not linked with it any more. */
  depart(id: WorkerId): void {
    this.perform(this.roster.leaving(id))
  }

  /** The host says that a worker has ended. Idempotent. */
  gone(id: WorkerId): void {
    this.fail(id, null)
    const isNews = this.roster.standingOf(id) !== 'gone'
    const commands = this.roster.gone(id)
    // Ends that were on their way to it may be lost, and then the other ends do not close. Those that are still here are closed by the commands.
    const holders = [...(this.underWay.get(id) ?? [])].filter((other) => !this.ends.has(`${other}>${id}`))
    this.underWay.delete(id)
    this.controls.delete(id)
    if (isNews) this.host.ended(id)
    this.perform(commands)
    const dead = this.roster.ended.at(-1)
    if (dead?.id !== id) return
    for (const other of holders)
      this.controls
        .get(other)
        ?.connect([], [dead])
        .catch(() => {})
  }

  /** Forgets a name whose worker has ended. */
  forget(name: string): void {
    this.roster.forget(name)
  }

  private change(group: number, change: Change, commands: readonly Command[]): Promise<readonly WorkerInfo[]> {
    return new Promise((resolve, reject) => {
      this.pending.set(group, { change, error: null, resolve, reject })
      this.perform(commands)
    })
  }

  /** Commands that follow from a command are done after earlier ones. */
  private perform(commands: readonly Command[]): void {
    this.commands.push(...commands)
    if (this.isPerforming) return
    this.isPerforming = true
    try {
      for (let command = this.commands.shift(); command !== undefined; command = this.commands.shift()) this.performOne(command)
    } finally {
      this.isPerforming = false
    }
  }

  private performOne(command: Command): void {
    switch (command.do) {
      case 'connect': {
        const { a, b } = command
        const [ofA, ofB] = this.host.connect(a, b)
        this.ends.set(`${a.id}>${b.id}`, ofA)
        this.ends.set(`${b.id}>${a.id}`, ofB)
        return
      }
      case 'spawn':
        this.spawn(command.birth)
        return
      case 'tell':
        this.tell(command)
        return
      case 'drop':
        for (const end of [this.take(command.a, command.b), this.take(command.b, command.a)]) if (end !== undefined) this.host.close(end)
        return
      case 'end':
        if (this.controls.has(command.id)) this.host.end(command.id)
        else this.unborn(command.id)
        return
      case 'joined':
        for (const { worker, former } of command.workers) this.host.joined(worker, former)
        this.settled(command.group)!.resolve(command.workers.map(({ worker }) => worker))
        return
      case 'failed': {
        const failed = this.settled(command.group)!
        failed.reject(failed.error)
        return
      }
      default:
        command satisfies never
    }
  }

  private spawn(birth: Birth): void {
    const { worker, group } = birth
    const { id } = worker
    // Another one of its group could not be started: the command that ends this one is on its way.
    if (this.roster.standingOf(id) !== 'starting') return
    const peers = this.endsOf(id, birth.peers)
    try {
      const control = this.host.spawn(birth, peers, this.pending.get(group)!.change)
      this.controls.set(id, control)
      const arrived = this.sendEnds(id, birth.peers)
      const started = control.start()
      if (started === null) {
        arrived()
        this.perform(this.roster.loaded(id))
      } else
        started.then(
          () => {
            arrived()
            this.perform(this.roster.loaded(id))
          },
          (error) => this.cannotJoin(id, error),
        )
    } catch (error) {
      for (const { end } of peers) this.host.close(end)
      this.cannotJoin(id, error)
    }
  }

  private tell({ to, peers, gone, group }: Command & { readonly do: 'tell' }): void {
    const answered = (): void => {
      if (group !== null) this.perform(this.roster.answered(to, group))
    }
    const arrived = this.sendEnds(to, peers)
    this.controls
      .get(to)!
      .connect(this.endsOf(to, peers), gone)
      .then(() => {
        arrived()
        answered()
      }, answered)
  }

  /** Ends of links to these workers are on their way. @returns to be called when they have arrived */
  private sendEnds(to: WorkerId, peers: readonly PeerInfo[]): () => void {
    if (peers.length === 0) return () => {}
    const others = this.underWay.get(to) ?? new Set()
    this.underWay.set(to, others)
    for (const { info } of peers) others.add(info.id)
    return () => {
      for (const { info } of peers) others.delete(info.id)
      if (others.size === 0 && this.underWay.get(to) === others) this.underWay.delete(to)
    }
  }

  /** It was never started. */
  private unborn(id: WorkerId): void {
    for (const [key, end] of this.ends) {
      if (!key.startsWith(`${id}>`)) continue
      this.ends.delete(key)
      this.host.close(end)
    }
    this.gone(id)
  }

  private cannotJoin(id: WorkerId, cause: unknown): void {
    this.fail(id, cause)
    this.perform(this.roster.failed(id))
  }

  /** Keeps why a newcomer's group fails, if nothing else came before. */
  private fail(id: WorkerId, cause: unknown): void {
    const newcomer = this.roster.newcomer(id)
    const pending = newcomer === null ? undefined : this.pending.get(newcomer.group)
    if (pending !== undefined) pending.error ??= this.host.joinError(pending.change, newcomer!.worker, cause)
  }

  private settled(group: number): Pending | undefined {
    const pending = this.pending.get(group)
    this.pending.delete(group)
    return pending
  }

  private endsOf(holder: WorkerId, peers: readonly PeerInfo[]): PeerEnd<End>[] {
    return peers.map((peer) => ({ ...peer, end: this.take(holder, peer.info.id)! }))
  }

  private take(holder: WorkerId, peer: WorkerId): End | undefined {
    const key = `${holder}>${peer}`
    const end = this.ends.get(key)
    this.ends.delete(key)
    return end
  }
}
