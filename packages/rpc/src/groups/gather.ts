/**
 * The leader's side of `meet`: it holds each member's call until all have arrived, then every call returns the same values. So
 * deadlines, deaths and errors are as of calls. One object per worker. The rules GRP-6 to GRP-10 and GRP-15 to GRP-17 are in SPEC.md.
 * PyTorch: `_all_gather`, `_gather_to_leader`, `_broadcast_to_followers` in `torch/distributed/rpc/api.py`.
 *
 * Note [Abandoned rounds]
 *
 * If each member counted its own rounds, they would be out of step for good once one has missed a round that the others abandoned. So the leader counts. The
 * same members under the same name (or none) are a *meeting*. An arrival joins the first open round that its member has not come to, or begins one.
 * When time runs out, all open rounds of a meeting fail, and its era goes up by one. An arrival says in which era its member believes to be:
 *
 *     the era of the meeting         joins
 *     an earlier one                 the member does not know of the failure: the call fails at once
 *     none (null)                    an earlier call of the member has failed: joins whatever is current
 *
 * So each member fails once, however many rounds were abandoned, and its next call meets the others. An answer says the era.
 */
import { PostgradError } from '@postgrad/base'
import { callCancelled, timeLimit } from '@postgrad/base/internal'
import type { Timer } from '@postgrad/transport'
import { setDeadline } from '@postgrad/transport/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import { currentServing, type ServedCall } from '../core/served-call.js'
import { WorkerSlot } from '../core/slots.js'
import { keyOf, type Wait } from '../core/waits.js'
import type { WorkerCore } from '../core/worker-core.js'
import { groupTimeout } from './group-errors.js'

/** The arguments of an arrival. */
export interface Coming {
  /** The operation of users that it is part of, which errors name. */
  readonly op: string
  /** Sorted by name. */
  readonly members: readonly WorkerInfo[]
  /** Its name; null for the next of the unnamed. */
  readonly round: string | null
  readonly era: number | null
  readonly from: string
  readonly value: unknown
  /** 0: no limit. */
  readonly timeoutMs: number
}

/** To all, in the order of the members. */
export interface Met {
  readonly era: number
  readonly values: readonly unknown[]
}

interface Arrival {
  readonly served: ServedCall | null
  readonly value: unknown
  readonly limitMs: number
  readonly timer: Timer | null
  resolve(met: Met): void
  reject(error: PostgradError): void
}

interface Round {
  /** Its name, or the how many-th of its meeting it is, from 1 on. */
  readonly name: string | number
  readonly arrived: Map<string, Arrival>
}

interface Meeting {
  readonly key: string
  readonly op: string
  readonly members: readonly WorkerInfo[]
  readonly name: string | null
  era: number
  begun: number
  /** In the order in which they began. */
  open: Round[]
  /** The failure that ended the last era, for members that do not know of it. */
  givenUp: { readonly round: Round; readonly timeoutMs: number; readonly missing: readonly string[] } | null
}

/** The built-in function that `meet` calls on the leader. */
export const ARRIVE = 'postgrad.arrive'
/** A round with such a limit, in ms, or with none, waits for what members' programs do: see Note [Programs that are over] in `standstill.ts`. */
export const STANDING_MS = 30 * 60 * 1000
/** So many named rounds that were abandoned are remembered for those who still come to them. */
export const NAMES_KEPT = 1000

/** The members of a round call this on their leader. */
export function arrive(coming: Coming): Promise<Met> {
  const serving = currentServing()
  // It comes from another worker, and may be anything.
  if (!isComing(coming) || (serving !== null && serving.caller.name !== coming.from)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: ARRIVE,
      expected: 'the arguments of a member of the round',
      got: 'something else',
      remedy: 'Use initProcessGroup().',
    })
  }
  return GATHERS.here.arrive(coming)
}

class Gathers {
  private readonly worker: WorkerCore
  private readonly meetings = new Map<string, Meeting>()

  constructor(worker: WorkerCore) {
    this.worker = worker
    worker.onPeerDeath((peer, error) => {
      // A later arrival looks for the death itself.
      for (const meeting of [...this.meetings.values()]) if (meeting.members.some(({ id }) => id === peer.id)) this.forget(meeting, error)
    })
    worker.onClose((closedBy) => {
      for (const meeting of [...this.meetings.values()]) this.forget(meeting, closedBy())
    })
    worker.contribute(() => ({ gathers: [...this.meetings.values()].reduce((sum, { open }) => sum + open.length, 0) }))
    worker.contributeWaits(() => this.waits())
  }

  async arrive(coming: Coming): Promise<Met> {
    const { op, members, era, from, value, timeoutMs } = coming
    const limitMs = timeLimit(op, timeoutMs)
    for (const { id } of members) {
      const death = this.worker.deathOf(id)
      if (death !== null) throw death
    }
    const meeting = this.meeting(coming)
    // A later era than the meeting's is from a meeting that was forgotten: all was well then.
    if (meeting.givenUp !== null && era !== null && era < meeting.era) throw this.tooLate(meeting, from)
    return new Promise((resolve, reject) => {
      const round = this.roundFor(meeting, from)
      const expire = () => this.giveUp(meeting, round, timeoutMs)
      const timer = setDeadline(this.worker.clock, limitMs, expire)
      const served = currentServing()
      round.arrived.set(from, { served, value, limitMs, timer, resolve, reject })
      if (round.arrived.size === members.length) this.complete(meeting, round)
      else served?.signal.addEventListener('abort', () => this.takeBack(meeting, round, from), { once: true })
    })
  }

  /** How many calls are served here only since a round without a limit waits for others. */
  get standing(): number {
    let count = 0
    for (const { open } of this.meetings.values()) {
      for (const { arrived } of open)
        for (const { served, limitMs } of arrived.values()) if (served !== null && limitMs >= STANDING_MS) count++
    }
    return count
  }

  /** Members of the meeting that have not come to a round in which others wait. */
  missing(key: string): readonly WorkerInfo[] {
    const meeting = this.meetings.get(key)
    if (meeting === undefined) return []
    return meeting.members.filter(({ name }) => meeting.open.some(({ arrived }) => !arrived.has(name)))
  }

  private meeting(coming: Coming): Meeting {
    const key = meetingKey(coming)
    let meeting = this.meetings.get(key)
    if (meeting === undefined) {
      const { op, members, round: name } = coming
      meeting = { key, op, members, name, era: 0, begun: 0, open: [], givenUp: null }
      this.meetings.set(key, meeting)
    }
    return meeting
  }

  private roundFor(meeting: Meeting, from: string): Round {
    let round = meeting.open.find(({ arrived }) => !arrived.has(from))
    if (round === undefined) {
      meeting.begun++
      round = { name: meeting.name ?? meeting.begun, arrived: new Map() }
      meeting.open.push(round)
    }
    return round
  }

  private complete(meeting: Meeting, round: Round): void {
    remove(meeting.open, round)
    // All know of abandoned rounds. A name that is used once must leave no entry, and starts again with era 0.
    const isOver = meeting.name !== null && meeting.open.length === 0
    if (isOver) this.meetings.delete(meeting.key)
    const values = meeting.members.map(({ name }) => round.arrived.get(name)!.value)
    for (const { timer, resolve } of round.arrived.values()) {
      timer?.cancel()
      resolve({ era: isOver ? 0 : meeting.era, values })
    }
  }

  /** An arrival has run out of time: see Note [Abandoned rounds]. */
  private giveUp(meeting: Meeting, round: Round, timeoutMs: number): void {
    const missing = missingIn(meeting, round)
    meeting.givenUp = { round, timeoutMs, missing }
    meeting.era++
    const elsewhere = this.elsewhere(meeting, round, missing)
    this.fail(meeting, groupTimeout(meeting.op, timeoutMs, missing, [], { round: round.name, elsewhere }))
    if (meeting.name !== null) this.forgetOldNames()
  }

  /** The caller of an arrival has given it up: its next one joins the same round, if that still waits. */
  private takeBack(meeting: Meeting, round: Round, from: string): void {
    const arrival = round.arrived.get(from)
    if (arrival === undefined || !meeting.open.includes(round)) return
    round.arrived.delete(from)
    arrival.timer?.cancel()
    arrival.reject(callCancelled(meeting.op, null, undefined))
    if (round.arrived.size === 0) remove(meeting.open, round)
    if (meeting.name !== null && meeting.open.length === 0 && meeting.givenUp === null) this.meetings.delete(meeting.key)
  }

  private tooLate({ op, givenUp }: Meeting, from: string): PostgradError {
    const { round, timeoutMs, missing } = givenUp!
    return groupTimeout(op, timeoutMs, missing, [], { round: round.name, late: from })
  }

  private fail(meeting: Meeting, error: PostgradError): void {
    const failed = meeting.open
    meeting.open = []
    for (const { arrived } of failed) {
      for (const { timer, reject } of arrived.values()) {
        timer?.cancel()
        reject(error)
      }
    }
  }

  private forget(meeting: Meeting, error: PostgradError): void {
    this.meetings.delete(meeting.key)
    this.fail(meeting, error)
  }

  private forgetOldNames(): void {
    const idle = [...this.meetings.values()].filter(({ name, open }) => name !== null && open.length === 0)
    for (const { key } of idle.slice(0, -NAMES_KEPT)) this.meetings.delete(key)
  }

  /** Where the missing members wait instead: members that disagree about a name wait for each other. */
  private elsewhere(meeting: Meeting, missed: Round, missing: readonly string[]): string[] {
    const lines: string[] = []
    for (const other of this.meetings.values()) {
      if (groupKey(other.members) !== groupKey(meeting.members)) continue
      for (const round of other.open) {
        const there = round === missed ? [] : missing.filter((name) => round.arrived.has(name))
        for (const name of there) lines.push(`'${name}' waits in ${other.op} '${round.name}'`)
      }
    }
    return lines
  }

  /** Each that has come waits for those that have not. */
  private *waits(): Generator<Wait> {
    for (const meeting of this.meetings.values()) {
      for (const round of meeting.open) {
        const on = meeting.members.filter(({ name }) => !round.arrived.has(name))
        for (const [name, { served }] of round.arrived) {
          const what = `${whatOf(meeting.op, meeting.members, meeting.name)}, in which ${name} waits for ${on.map((each) => each.name).join(', ')}`
          yield { kind: 'gather', what, on, requestId: null, within: keyOf(served) }
        }
      }
    }
  }
}

export const GATHERS = new WorkerSlot('gathers', (worker) => new Gathers(worker))

function missingIn({ members }: Meeting, { arrived }: Round): string[] {
  return members.filter(({ name }) => !arrived.has(name)).map(({ name }) => name)
}

function remove(open: Round[], round: Round): void {
  const at = open.indexOf(round)
  if (at >= 0) open.splice(at, 1)
}

function isComing(coming: Coming): boolean {
  if (typeof coming !== 'object' || coming === null) return false
  const { op, members, round, era, from } = coming
  return (
    typeof op === 'string' &&
    Array.isArray(members) &&
    members.every((member) => typeof member?.name === 'string' && typeof member.id === 'number') &&
    members.some(({ name }) => name === from) &&
    (round === null || typeof round === 'string') &&
    (era === null || Number.isSafeInteger(era))
  )
}

/** The key of a meeting. */
export function meetingKey({ op, members, round }: Pick<Coming, 'op' | 'members' | 'round'>): string {
  return `${groupKey(members)} ${op}${round === null ? '' : ` ${round}`}`
}

/** For those who read what somebody waits in. */
export function whatOf(op: string, members: readonly WorkerInfo[], round: string | null): string {
  return `${op}${round === null ? '' : ` '${round}'`} of ${members.length} workers`
}

/** Names do not suffice: a worker that was started again is another. */
function groupKey(members: readonly WorkerInfo[]): string {
  return members.map(({ name, id }) => `${name}#${id}`).join(',')
}
