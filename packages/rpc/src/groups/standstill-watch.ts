/**
 * Watches how long this worker waits in operations of groups. It asks all others whether anything is under way, finds programs that are over (`standstill.ts`), and
 * prints who is missing. Each worker answers; only those of a real cluster ask (`watch`).
 */
import type { WorkerId } from '@postgrad/base'
import { Lane } from '@postgrad/base/internal'
import type { Timer } from '@postgrad/transport'
import { CALL_SERVING } from '../calls/call-serving.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Peer } from '../core/peer.js'
import type { Standing, StandingGroup, WaitAbout } from '../core/pending-calls.js'
import { GATHERS } from './gather.js'
import { type AnswerData, type AskData, GroupWhat, type OverData, type Said, type Waiting } from './group-protocol.js'
import type { GroupView } from './group-view.js'
import { goneIn } from './standstill.js'

/** Between two looks. */
const LOOK_MS = 1000
/** A worker that has waited for less does not ask. */
const PATIENCE_MS = 1500
/** So long a rank does not ask for a group if a smaller rank has asked: one that asks is enough. */
const YIELD_MS = 2500

/** Gets a line for the user. */
export type SayLine = (line: string) => unknown

interface Round {
  readonly number: number
  /** The asked workers; their answers so far are in `said`. */
  readonly asked: readonly WorkerId[]
  readonly said: Map<WorkerId, Said>
}

export interface StandingWait extends Standing {
  readonly what: string
  readonly on: readonly WorkerInfo[]
}

export class Standstill {
  /** Its main has returned, and it gets no other one. */
  isMainOver = false
  private readonly view: GroupView
  private readonly hasCalledShutdown: () => boolean
  /** Null: it only answers. */
  private say: SayLine | null = null
  private timer: Timer | null = null
  private rounds = 0
  private round: Round | null = null
  /** When this worker began to ask; null while it does not wait. */
  private askedMs: number | null = null
  /** All answers of the last round, if somebody was gone by them; else ''. */
  private former = ''
  /** The last word of each, also of rounds that are not over. */
  private readonly heard = new Map<WorkerId, Said>()
  /** Waits in rounds of `meet` that have no limit: each is a call to the leader. */
  private readonly rounding = new Set<StandingWait>()
  /** By group: until when a smaller rank asks. */
  private readonly yields = new Map<string, number>()
  /** By group: of which operation a line was printed, here or elsewhere. */
  private readonly told = new Map<string, number>()

  constructor(view: GroupView, hasCalledShutdown: () => boolean) {
    this.view = view
    this.hasCalledShutdown = hasCalledShutdown
  }

  /** From now on this worker asks, and prints. */
  watch(say: SayLine): void {
    this.say = say
  }

  /** A wait in an operation begins. */
  onWait(): void {
    if (this.say !== null && this.timer === null) this.lookLater()
  }

  /** The same in a round. Returns what ends it. */
  onRound(wait: StandingWait): () => void {
    this.rounding.add(wait)
    this.onWait()
    return () => this.rounding.delete(wait)
  }

  onClose(): void {
    this.timer?.cancel()
    this.timer = null
    this.say = null
    this.round = null
  }

  onGone(peer: WorkerInfo): void {
    this.heard.delete(peer.id)
    // Its answer may never come; the next look asks again.
    if (this.round?.asked.includes(peer.id)) this.round = null
  }

  // --- as one that is asked

  onAsk(from: WorkerInfo, [round, groups]: AskData): void {
    const { core } = this.view
    for (const { group } of this.standing()) {
      const rank = rankIn(group, from.id)
      if (groups.includes(group.key) && rank >= 0 && rank < rankIn(group, core.info.id)) {
        this.yields.set(group.key, core.clock.now() + YIELD_MS)
      }
    }
    this.inOwnTurn(() => this.view.say(from.id, GroupWhat.ANSWER, [round, this.said()] satisfies AnswerData))
  }

  /** Null: something is under way here. */
  private said(): Said {
    const { core } = this.view
    const { mailbox } = core.pump
    // Calls that are held (MB-21) do not count in the size.
    if (CALL_SERVING.of(core).count > GATHERS.of(core).standing || mailbox.size > 0 || mailbox.depth(Lane.call) > 0) return null
    // Each round that this worker waits in is one call.
    let calls = 0
    for (const { pending } of core.peers) calls += pending.size
    if (calls > this.rounding.size) return null
    const waits = [...this.rounding].map(({ group, on }) => this.waiting(group, on))
    for (const [, call] of core.requests.waits.entries()) {
      const about = call.about?.()
      if (about?.standing !== undefined) waits.push(this.waiting(about.standing.group, about.on ?? []))
      else if (about?.kind !== 'pass') return null
    }
    return [this.isMainOver || this.hasCalledShutdown(), waits, this.view.counts()]
  }

  private waiting({ key }: StandingGroup, on: readonly WorkerInfo[]): Waiting {
    return [key, on.map(({ id }) => id), this.told.get(key) ?? -1]
  }

  // --- as one that asks

  private lookLater(): void {
    this.timer = this.view.core.clock.setTimer(LOOK_MS, () => {
      this.timer = null
      this.view.core.run(() => this.look())
    })
  }

  private look(): void {
    const waits = this.standing()
    if (waits.length === 0) {
      this.round = null
      this.askedMs = null
      this.former = ''
      for (const map of [this.heard, this.yields, this.told]) map.clear()
      return
    }
    this.lookLater()
    const nowMs = this.view.core.clock.now()
    const long = waits.filter(({ sinceMs }) => nowMs - sinceMs >= PATIENCE_MS)
    const mine = [...new Set(long.map(({ group }) => group.key))].filter((key) => (this.yields.get(key) ?? 0) <= nowMs)
    if (mine.length > 0 && this.round === null) this.ask(mine)
    // A smaller rank that waits has answered by then.
    if (this.askedMs === null || nowMs - this.askedMs < LOOK_MS) return
    for (const key of mine) this.tell(long.filter(({ group }) => group.key === key))
  }

  private ask(groups: readonly string[]): void {
    const { view } = this
    const self = view.info.id
    this.askedMs ??= view.core.clock.now()
    const asked = view.linked().filter((peer) => this.mayAnswer(peer))
    const number = ++this.rounds
    this.round = { number, asked: asked.map(({ info }) => info.id), said: new Map() }
    for (const { info } of asked) if (info.id !== self) view.say(info.id, GroupWhat.ASK, [number, groups] satisfies AskData)
    this.inOwnTurn(() => this.onAnswer(self, [number, this.said()]))
  }

  /** An answer of a guest would be a dead letter, as would one of a role that may not answer. */
  private mayAnswer({ info, isGuest, role }: Peer): boolean {
    const { core } = this.view
    const { authority } = core.options
    if (info.id === core.info.id || authority === undefined) return !isGuest
    return !isGuest && authority.permits({ info, role }, { kind: 'built-in', name: 'GROUP_UPDATE', isOwn: true }) === true
  }

  /** False: nobody has asked for it. */
  onAnswer(from: WorkerId, [number, said]: AnswerData): boolean {
    const { round } = this
    if (number > this.rounds) return false
    // Of a round that was given up.
    if (round === null || number !== round.number || !round.asked.includes(from)) return true
    this.heard.set(from, said)
    for (const [key, , told] of said?.[1] ?? []) this.told.set(key, Math.max(told, this.told.get(key) ?? -1))
    round.said.set(from, said)
    if (round.said.size === round.asked.length) this.judge(round)
    return true
  }

  private judge({ said, asked }: Round): void {
    this.round = null
    const gone = goneIn(said)
    const text = gone.length === 0 ? '' : JSON.stringify(asked.map((id) => [id, said.get(id)]))
    const isSure = text !== '' && text === this.former
    this.former = text
    if (!isSure) return
    const { info } = this.view
    for (const group of this.groups()) {
      for (const [key, worker] of gone.filter(([of]) => of === group.key)) {
        // Notifies all members, so that each names the worker whose program is over.
        for (const { id } of group.workers)
          if (id !== info.id && id !== worker) this.view.say(id, GroupWhat.OVER, [key, worker] satisfies OverData)
        group.onOver(worker)
      }
    }
  }

  /** False: the sender is not in the group, or `worker` is not another member. A group in which nothing waits here knows of it, or is broken. */
  onOver(from: WorkerId, [key, worker]: OverData): boolean {
    for (const group of this.groups()) {
      if (group.key !== key) continue
      if (rankIn(group, from) < 0 || rankIn(group, worker) < 0 || worker === this.view.info.id) return false
      group.onOver(worker)
    }
    return true
  }

  /** In which this worker waits. */
  private groups(): readonly StandingGroup[] {
    return [...new Set(this.standing().map(({ group }) => group))]
  }

  /** One line for the group, by the first rank that waits. */
  private tell(waits: readonly StandingWait[]): void {
    const { view } = this
    const [first] = waits
    if (first === undefined) return
    const { group, number, sinceMs, what, on } = first
    const waitedMs = view.core.clock.now() - sinceMs
    if (group.warnAfterMs === 0 || waitedMs < group.warnAfterMs || number <= (this.told.get(group.key) ?? -1)) return
    const own = rankIn(group, view.info.id)
    const waitsToo = ({ id }: WorkerInfo): boolean => this.heard.get(id)?.[1].some(([key]) => key === group.key) === true
    if (group.workers.some((worker, rank) => rank < own && waitsToo(worker))) return
    this.told.set(group.key, number)
    const names = on.map(
      ({ id, name }) => `rank ${rankIn(group, id)} (${name}${this.heard.get(id)?.[0] === true ? ', whose program is over' : ''})`,
    )
    const missing = names.length === 0 ? 'earlier operations' : names.join(', ')
    this.say?.(`postgrad: rank ${own} (${view.info.name}) has waited ${Math.round(waitedMs / 1000)} s for ${missing} in ${what}`)
  }

  /** The waits of this worker. */
  private standing(): StandingWait[] {
    const found = [...this.rounding]
    for (const [, call] of this.view.core.requests.waits.entries()) {
      const { standing, what, on = [] } = call.about?.() ?? NOTHING
      if (standing !== undefined) found.push({ ...standing, what, on })
    }
    return found
  }

  /** So that what has its turn now counts as under way. */
  private inOwnTurn(fn: () => void): void {
    const { core } = this.view
    core.clock.defer(() => {
      if (!core.isClosed) core.run(fn)
    })
  }
}

const NOTHING: WaitAbout = { kind: 'value', what: '' }

function rankIn({ workers }: StandingGroup, worker: WorkerId): number {
  return workers.findIndex(({ id }) => id === worker)
}
