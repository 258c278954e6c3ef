/**
 * Which workers are members of a cluster, in which life, and which are linked: a state machine without ports, timers and promises. Its methods take events,
 * and return commands for its driver (`members.ts`). Threads and the simulation use the same machine. Rules MEM-n in `SPEC.md`.
 *
 * Note [Who is linked with whom]. A newcomer starts with its ends of links to all members of that moment, so that its program finds them while it loads. The
 * other ends wait at the controller until the newcomer's whole group has loaded, since nobody may call it earlier. Then, in one step, each member learns of
 * the group and gets its ends, and newcomers are linked with members that joined meanwhile. So of any two workers the one that loaded later has linked
 * them, once. If a worker dies before it gets an end, the end is dropped, which closes the other one: its holder learns of a death.
 *
 *     join ─→ starting ──loaded──→ loaded ──all of the group──→ joining ──all have answered──→ member ──leaving──→ leaving
 *                │                    │                            │                              │                    │
 *                └──── failed, or one of the group is gone ────────┘ ending ─────── gone ─────────┴────────────────────┴─→ gone
 *
 * A worker learns of each death once: by the end of its link to the dead worker, or, if it never had one, from the controller.
 */
import assert from 'node:assert'
import { PostgradError, type WorkerId } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'

/** The main thread's, whenever it joins: ids of workers begin with 0. */
export const MAIN_ID: WorkerId = WORKER_ID_MAX

/** A worker's state, one gloss a line. */
export type Standing =
  /** It is being started: it loads its program. */
  | 'starting'
  /** It has loaded its program and waits for the rest of its group. */
  | 'loaded'
  /** Its group has loaded, and the members learn of it. */
  | 'joining'
  /** All who were members when it joined can call it. */
  | 'member'
  /** It is about to end in peace: newcomers are not linked with it. */
  | 'leaving'
  /** One of its group could not join, so that it has to end. */
  | 'ending'
  /** It has ended, in any way. */
  | 'gone'

/** Another worker, as a worker sees it. */
export interface PeerInfo {
  readonly info: WorkerInfo
  /** No group counts it: a main thread that has joined. */
  readonly isGuest: boolean
}

/** What one of a joining group begins with. */
export interface Birth {
  readonly worker: WorkerInfo
  /** How many workers had this name before. */
  readonly life: number
  /** Its end of the link to each of these is there. */
  readonly peers: readonly PeerInfo[]
  /** Who ended before it began, and of whom others may still speak. */
  readonly gone: readonly WorkerInfo[]
  readonly group: number
}

/** A worker that has become a member. */
export interface Joined {
  readonly worker: WorkerInfo
  /** The dead worker whose name it took; null where there was none. */
  readonly former: WorkerId | null
}

/** The machine's commands to its driver, in this order, one gloss a line. */
export type Command =
  /** Make a link between two workers, and keep both ends until they are given away. */
  | { readonly do: 'connect'; readonly a: WorkerInfo; readonly b: WorkerInfo }
  /** Start a worker and give it its ends of the links to its peers; then say `loaded` or `failed`. */
  | { readonly do: 'spawn'; readonly birth: Birth }
  /** Notify a worker of deaths, and of newcomers with its ends of the links to them; then, if there is a group, call `answered`. */
  | {
      readonly do: 'tell'
      readonly to: WorkerId
      readonly peers: readonly PeerInfo[]
      readonly gone: readonly WorkerInfo[]
      readonly group: number | null
    }
  /** Close what is kept of the link between the two: nobody gets it any more. */
  | { readonly do: 'drop'; readonly a: WorkerId; readonly b: WorkerId }
  /** End a worker wherever it is; then say `gone`. */
  | { readonly do: 'end'; readonly id: WorkerId }
  /** All of the group are members. */
  | { readonly do: 'joined'; readonly group: number; readonly workers: readonly Joined[] }
  /** All of the group have ended, since one of them could not join. */
  | { readonly do: 'failed'; readonly group: number }

interface Member extends PeerInfo {
  /** Null once all of it are members. */
  group: Group | null
  standing: Standing
  /** The workers that it knows and that have not ended: it has an end of a link to each, and learns of its death by that. */
  readonly knows: Set<WorkerId>
  /** Members whose ends of the links to this newcomer wait at the controller. */
  readonly doors: Set<WorkerId>
  /** Who had its name when it joined. */
  former: WorkerId | null
}

interface Group {
  readonly number: number
  readonly members: Member[]
  /** Members that know of it and have not answered. */
  readonly unanswered: Set<WorkerId>
}

export class Roster {
  /** All that have not ended, and of each name the one that has it. */
  private readonly members = new Map<WorkerId, Member>()
  /** Of each name the worker that joined last, dead or alive. */
  private readonly names = new Map<string, WorkerId>()
  /** How many workers each name has had. */
  private readonly lives = new Map<string, number>()
  private readonly groups = new Map<number, Group>()
  /** Who has ended, in that order. */
  readonly ended: WorkerInfo[] = []
  private nextId = 0
  private nextGroup = 0

  /** In the order in which their names came, which a restart keeps; dead ones included, those that are being started and guests excluded. */
  get workers(): readonly WorkerInfo[] {
    return [...this.names.values()].map((id) => this.members.get(id)!.info)
  }

  /** All that have not ended, guests included. */
  get living(): readonly WorkerInfo[] {
    return [...this.members.values()].filter(isAlive).map(({ info }) => info)
  }

  /** A worker's state; `gone` too for one that never existed. */
  standingOf(id: WorkerId): Standing {
    return this.members.get(id)?.standing ?? 'gone'
  }

  /** A worker whose group has not joined yet, and its group; null for any other. */
  newcomer(id: WorkerId): { readonly worker: WorkerInfo; readonly group: number } | null {
    const member = this.members.get(id)
    return member?.group == null ? null : { worker: member.info, group: member.group.number }
  }

  /** Whether a worker of this name is being started, or has failed to and has not ended yet. */
  isStarting(name: string): boolean {
    return this.starting(name) !== undefined
  }

  /**
   * Workers of these names are wanted, all or none: at a launch, a join, or a restart of one whose life is over.
   * @throws WORKER_NAME_TAKEN, WORKER_IDS_SPENT
   */
  join(names: readonly string[]): { readonly group: number; readonly commands: readonly Command[] } {
    for (const name of names) this.checkFree(name)
    if (this.nextId + names.length > MAIN_ID) throw idsSpent()
    const there = this.linkable()
    const group = this.begin()
    for (const name of names) this.add(group, { name, id: this.nextId++ }, false)
    const newcomers = group.members
    const commands: Command[] = []
    for (const [index, a] of newcomers.entries()) {
      for (const b of newcomers.slice(index + 1)) commands.push(link(a, b))
      for (const member of there) {
        commands.push(link(a, member))
        // Its end is given away when the group has been loaded.
        member.knows.delete(a.info.id)
        a.doors.add(member.info.id)
      }
    }
    for (const { info, knows } of newcomers) {
      const life = this.lives.get(info.name) ?? 0
      this.lives.set(info.name, life + 1)
      const peers = [...knows].map((id) => peerOf(this.members.get(id)!))
      commands.push({ do: 'spawn', birth: { worker: info, life, peers, gone: [...this.ended], group: group.number } })
    }
    return { group: group.number, commands }
  }

  /** A guest comes who has been loaded already: the main thread, which no group counts. @throws WORKER_NAME_TAKEN */
  enter(info: WorkerInfo): { readonly group: number; readonly commands: readonly Command[] } {
    const taken = this.starting(info.name) ?? this.holder(info.name)
    if (taken !== undefined) throw mainNameTaken(taken.info)
    const group = this.begin()
    this.add(group, info, true)
    return { group: group.number, commands: this.link(group, [...this.ended]) }
  }

  /** A newcomer has loaded its program. */
  loaded(id: WorkerId): readonly Command[] {
    const member = this.members.get(id)
    if (member?.standing !== 'starting') return []
    member.standing = 'loaded'
    const group = member.group!
    return group.members.every(({ standing }) => standing === 'loaded') ? this.link(group, []) : []
  }

  /** A newcomer cannot join: all of its group have to end. */
  failed(id: WorkerId): readonly Command[] {
    const member = this.members.get(id)
    return member === undefined || !isNewcomer(member) ? [] : this.giveUp(member.group!)
  }

  /** A worker has learned of a group, or need not be waited for. */
  answered(id: WorkerId, number: number): readonly Command[] {
    const group = this.groups.get(number)
    if (group === undefined || !group.unanswered.delete(id) || group.unanswered.size > 0) return []
    return this.settle(group)
  }

  /** A member is about to end in peace. */
  leaving(id: WorkerId): readonly Command[] {
    const member = this.members.get(id)
    if (member?.standing !== 'member') return []
    member.standing = 'leaving'
    return this.closeDoors(member)
  }

  /** A worker has ended, however that came. Idempotent. */
  gone(id: WorkerId): readonly Command[] {
    const member = this.members.get(id)
    if (member === undefined || !isAlive(member)) return []
    const { info, group } = member
    member.standing = 'gone'
    this.ended.push(info)
    const commands = this.closeDoors(member)
    for (const other of member.doors) commands.push({ do: 'drop', a: id, b: other })
    for (const other of this.members.values()) {
      const knew = other.knows.delete(id)
      if (!knew && hearsNews(other)) commands.push({ do: 'tell', to: other.info.id, peers: [], gone: [info], group: null })
    }
    if (this.names.get(info.name) !== id) this.members.delete(id)
    for (const { number } of [...this.groups.values()]) commands.push(...this.answered(id, number))
    if (group === null) return commands
    commands.push(...this.giveUp(group))
    if (group.members.some(isAlive)) return commands
    this.groups.delete(group.number)
    commands.push({ do: 'failed', group: group.number })
    return commands
  }

  /** Forgets a name whose worker has ended. */
  forget(name: string): void {
    const member = this.holder(name)
    if (member === undefined || isAlive(member)) return
    this.names.delete(name)
    this.members.delete(member.info.id)
  }

  // --- inside

  private begin(): Group {
    const group: Group = { number: this.nextGroup++, members: [], unanswered: new Set() }
    this.groups.set(group.number, group)
    return group
  }

  private add(group: Group, info: WorkerInfo, isGuest: boolean): void {
    const standing = isGuest ? 'loaded' : 'starting'
    const member: Member = { info, isGuest, group, standing, knows: new Set(), doors: new Set(), former: null }
    group.members.push(member)
    this.members.set(info.id, member)
  }

  /** The group has loaded: see Note [Who is linked with whom]. All this happens at once. */
  private link(group: Group, gone: readonly WorkerInfo[]): Command[] {
    const commands: Command[] = []
    const news = new Map<Member, PeerInfo[]>(group.members.map((newcomer) => [newcomer, []]))
    for (const member of this.linkable()) {
      for (const newcomer of group.members) {
        if (newcomer.doors.delete(member.info.id)) member.knows.add(newcomer.info.id)
        else {
          commands.push(link(newcomer, member))
          news.get(newcomer)!.push(peerOf(member))
        }
      }
      news.set(member, group.members.map(peerOf))
    }
    for (const newcomer of group.members) {
      assert(newcomer.doors.size === 0, 'the door of a process that is not a member has been closed')
      newcomer.standing = 'joining'
      if (newcomer.isGuest) continue
      newcomer.former = this.names.get(newcomer.info.name) ?? null
      this.names.set(newcomer.info.name, newcomer.info.id)
    }
    for (const [{ info, isGuest }, peers] of news) {
      const past = isGuest && group.members[0]!.info === info ? gone : []
      if (peers.length + past.length === 0) continue
      group.unanswered.add(info.id)
      commands.push({ do: 'tell', to: info.id, peers, gone: past, group: group.number })
    }
    if (group.unanswered.size === 0) commands.push(...this.settle(group))
    return commands
  }

  /** All have answered. */
  private settle(group: Group): Command[] {
    // The group is being given up, but members know of it.
    if (group.members.some(({ standing }) => standing !== 'joining')) return []
    this.groups.delete(group.number)
    const workers = group.members.map(({ info, former }) => ({ worker: info, former }))
    for (const member of group.members) {
      if (member.former !== null) this.members.delete(member.former)
      member.standing = 'member'
      member.group = null
      member.former = null
    }
    return [{ do: 'joined', group: group.number, workers }]
  }

  /** One of the group cannot join, so none of them does; their names go back to former workers. */
  private giveUp(group: Group): Command[] {
    const commands: Command[] = []
    for (const member of group.members) {
      const { info, former } = member
      if (this.names.get(info.name) === info.id) {
        if (former === null) this.names.delete(info.name)
        else this.names.set(info.name, former)
      }
      if (!isAlive(member)) this.members.delete(info.id)
      else if (member.standing !== 'ending') {
        member.standing = 'ending'
        commands.push(...this.closeDoors(member), { do: 'end', id: info.id })
      }
    }
    return commands
  }

  /** Nobody gives this worker its ends of links to newcomers any more: they learn at once that it is as good as gone. */
  private closeDoors({ info }: Member): Command[] {
    const commands: Command[] = []
    for (const newcomer of this.members.values())
      if (newcomer.doors.delete(info.id)) commands.push({ do: 'drop', a: newcomer.info.id, b: info.id })
    return commands
  }

  /** Those that newcomers are linked with. */
  private linkable(): Member[] {
    return [...this.members.values()].filter(({ standing }) => standing === 'member' || standing === 'joining')
  }

  private holder(name: string): Member | undefined {
    return this.members.get(this.names.get(name) ?? -1)
  }

  private starting(name: string): Member | undefined {
    for (const member of this.members.values()) {
      if (member.info.name === name && !member.isGuest && (isNewcomer(member) || member.standing === 'ending')) return member
    }
    return undefined
  }

  private checkFree(name: string): void {
    const main = this.members.get(MAIN_ID)
    if (main?.info.name === name && isAlive(main)) throw mainNameTaken(main.info)
    const member = this.starting(name) ?? this.holder(name)
    if (member === undefined || !isAlive(member)) return
    const isStarting = this.isStarting(name)
    throw new PostgradError('WORKER_NAME_TAKEN', {
      op: 'worker name',
      message: `the name '${name}' belongs to worker ${member.info.id}, which ${isStarting ? 'is being started' : 'is alive'}`,
      remedy: isStarting
        ? 'Use another name, or await what starts it.'
        : 'Use another name, or cluster.restart(name) for a new worker in its place.',
      values: { worker: name, workerId: member.info.id },
    })
  }
}

function isAlive({ standing }: Pick<Member, 'standing'>): boolean {
  return standing !== 'gone'
}

/** One that is about to end gets nothing new. */
function hearsNews({ standing }: Member): boolean {
  return standing !== 'leaving' && standing !== 'ending' && standing !== 'gone'
}

function isNewcomer({ standing }: Pick<Member, 'standing'>): boolean {
  return standing === 'starting' || standing === 'loaded' || standing === 'joining'
}

function peerOf({ info, isGuest }: PeerInfo): PeerInfo {
  return { info, isGuest }
}

/** Each has an end from now on, given away or kept. */
function link(a: Member, b: Member): Command {
  a.knows.add(b.info.id)
  b.knows.add(a.info.id)
  return { do: 'connect', a: a.info, b: b.info }
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
    message: `this cluster has given away all of its ${MAIN_ID} ids; each worker gets a fresh one, also when it is started again`,
    remedy: 'Launch a new cluster.',
  })
}
