/**
 * The leader's side of `barrier` and `allGather`: it holds what has arrived until all have, then everybody's call returns the same values. Calls
 * carry it, so deadlines, deaths and errors come as for calls. One object per worker. The rules GRP-6 to GRP-10 are in SPEC.md.
 * PyTorch: `_all_gather`, `_gather_to_leader`, `_broadcast_to_followers` in `torch/distributed/rpc/api.py`.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, timeLimit } from '@postgrad/base/internal'
import type { Clock, Timer } from '@postgrad/transport'
import { groupTimeout } from './group-errors.js'
import { currentServing, type ServedCall } from './served-call.js'
import { keyOf, type Wait } from './waits.js'
import type { WorkerInfo } from './worker-info.js'

export type GatherOp = 'allGather' | 'barrier'

/** What it needs of its worker. */
interface GatherHost {
  readonly clock: Clock
  slot<T>(key: symbol, make: () => T): T
  deathOf(id: number): PostgradError | null
  onPeerDeath(fn: (peer: WorkerInfo, error: PostgradError) => void): void
  onClose(fn: (closedBy: () => PostgradError) => void): void
  contribute(fn: () => Record<string, number>): void
  contributeWaits(fn: () => Iterable<Wait>): void
}

interface Arrival {
  readonly served: ServedCall | null
  readonly value: unknown
  readonly timer: Timer | null
  resolve(values: readonly unknown[]): void
  reject(error: PostgradError): void
}

/** One round that is under way, or that has failed and which not all members know of yet. */
interface Round {
  readonly members: readonly WorkerInfo[]
  readonly arrived: Map<string, Arrival>
  failed: PostgradError | null
}

/** The built-in function behind both. */
export const ARRIVE = 'postgrad.arrive'
const SLOT = Symbol('postgrad.gathers')

/** What the members of a round call on their leader. */
export function arrive(
  op: GatherOp,
  members: readonly WorkerInfo[],
  sequence: number,
  from: string,
  value: unknown,
  timeoutMs: number,
): Promise<readonly unknown[]> {
  const serving = currentServing()
  // What came from another worker need not be what `gather` sends.
  if (!isRound(op, members, sequence) || !members.some(({ name }) => name === from) || (serving !== null && serving.caller.name !== from)) {
    throw oddArrival(op, 'the arguments of a member of the round')
  }
  const worker = currentScope().worker as unknown as GatherHost
  return worker.slot(SLOT, () => new Gathers(worker)).arrive(op, members, sequence, from, value, timeoutMs)
}

class Gathers {
  private readonly worker: GatherHost
  private readonly rounds = new Map<string, Round>()

  constructor(worker: GatherHost) {
    this.worker = worker
    worker.onPeerDeath((peer, error) => {
      for (const [key, round] of [...this.rounds]) if (round.members.some(({ id }) => id === peer.id)) this.fail(key, round, error)
    })
    worker.onClose((closedBy) => {
      for (const [key, round] of [...this.rounds]) this.fail(key, round, closedBy())
    })
    worker.contribute(() => ({ gathers: this.rounds.size }))
    worker.contributeWaits(() => this.waits())
  }

  arrive(
    op: GatherOp,
    members: readonly WorkerInfo[],
    sequence: number,
    from: string,
    value: unknown,
    timeoutMs: number,
  ): Promise<readonly unknown[]> {
    const key = `${op} ${groupKey(members)} ${sequence}`
    let round = this.rounds.get(key)
    // Whoever came first under the name would be forgotten, and never answered.
    if (round?.arrived.has(from)) throw oddArrival(op, 'one arrival of each member')
    if (round === undefined) {
      round = { members, arrived: new Map(), failed: this.deathAmong(members) }
      this.rounds.set(key, round)
    }
    return new Promise((resolve, reject) => {
      const limitMs = timeLimit(op, timeoutMs)
      const expire = () => this.fail(key, round, groupTimeout(op, timeoutMs, this.missing(round)))
      const timer = round.failed !== null || limitMs === Number.POSITIVE_INFINITY ? null : this.worker.clock.setTimer(limitMs, expire)
      round.arrived.set(from, { served: currentServing(), value, timer, resolve, reject })
      if (round.failed !== null) this.fail(key, round, round.failed)
      else if (round.arrived.size === members.length) this.complete(key, round)
    })
  }

  private complete(key: string, { members, arrived }: Round): void {
    this.rounds.delete(key)
    const values = members.map(({ name }) => arrived.get(name)!.value)
    for (const { timer, resolve } of arrived.values()) {
      timer?.cancel()
      resolve(values)
    }
  }

  /** For all who wait, and for those who come later; the last of them takes it away. */
  private fail(key: string, round: Round, error: PostgradError): void {
    round.failed ??= error
    for (const { timer, reject } of round.arrived.values()) {
      timer?.cancel()
      reject(round.failed)
    }
    const isLate = ({ name, id }: WorkerInfo) => !round.arrived.has(name) && this.worker.deathOf(id) === null
    if (!round.members.some(isLate)) this.rounds.delete(key)
  }

  /** Each that has come waits for those that have not. */
  private *waits(): Generator<Wait> {
    for (const [key, { members, arrived, failed }] of this.rounds) {
      if (failed !== null) continue
      const on = members.filter(({ name }) => !arrived.has(name))
      for (const [name, { served }] of arrived) {
        const what = `${key.split(' ')[0]} of ${members.length} workers, in which ${name} waits for ${on.map((each) => each.name).join(', ')}`
        yield { kind: 'gather', what, on, requestId: null, within: keyOf(served) }
      }
    }
  }

  private deathAmong(members: readonly WorkerInfo[]): PostgradError | null {
    for (const { id } of members) {
      const death = this.worker.deathOf(id)
      if (death !== null) return death
    }
    return null
  }

  private missing({ members, arrived }: Round): string[] {
    return members.filter(({ name }) => !arrived.has(name)).map(({ name }) => name)
  }
}

function isRound(op: unknown, members: unknown, sequence: unknown): boolean {
  return (
    (op === 'allGather' || op === 'barrier') &&
    Array.isArray(members) &&
    members.every((member) => typeof member?.name === 'string' && typeof member.id === 'number') &&
    Number.isSafeInteger(sequence)
  )
}

function oddArrival(op: unknown, expected: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op: String(op), expected, got: 'something else', remedy: 'Use allGather() or barrier().' })
}

/** Names do not suffice: a worker that was started anew begins to count again. */
export function groupKey(members: readonly WorkerInfo[]): string {
  return members.map(({ name, id }) => `${name}#${id}`).join(',')
}
