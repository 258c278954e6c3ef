/**
 * The root of a pass keeps a row of counters here per participant, and learns from them whether the pass has ended. `root-passes.ts`
 * feeds it; it knows no messages.
 *
 *   worker    received   sent →
 *   root          2      {a: 2, b: 1}          a: received 2, sent to it 2       balanced
 *   a             2      {root: 2}             b: received 1, sent to it 1       balanced
 *   b             1      {}                    root: received 2, sent to it 2    balanced      ⇒ the pass has ended
 *
 * Note [Termination]
 * ~~~~~~~~~~~~~~~~~~
 * After Mattern (Algorithms for distributed termination detection, 1987). A worker is passive in a pass when none of its node tasks is queued or
 * running. Only a gradient message makes a passive worker active, only an active worker sends gradient messages, and at first only the
 * root is active. A row is a snapshot that its worker took while it was passive; a worker without a row has the one of the beginning: received 0,
 * sent 0, passive. The root's own row is taken now, and it is passive now.
 *
 * Claim: if for every worker w the sum over all rows of what was sent to w equals what w's row says it received, then no gradient message is
 * on its way and no worker is active, now or ever again in this pass.
 *
 * Proof. Call a send or a receive covered if it happened before its worker's row was taken. Suppose that some receive is not covered: one
 * that has happened, or will, of a message that has been sent. Take a causally first one, e, of message m at w. (1) The send of m is covered:
 * otherwise its sender sent it after its row, at which it was passive, so an uncovered receive made it active again, causally before e. (2) Each
 * covered receive at w belongs to a covered send: otherwise that message's sender had an uncovered receive before it sent, hence causally before the
 * covered receive, hence before w's row, hence before e. So the rows hold, for w, all sends that belong to its covered receives, and also the send
 * of m: sent to w > received at w. Contradiction. So all receives are covered, and every worker has stayed passive since its row; all sends are
 * covered then, and a message that is still on its way would make its receiver's sum unequal. ∎
 *
 * It needs no order between links and no answer to a report. Reports of one worker arrive in order (its link's); the version guards it all the same.
 * It ends: after its last change every worker is passive and reports once more, and over these last rows all sums are equal.
 */
import type { WorkerId } from '@postgrad/base'

/** A message whose gradients are awaited: its id, the worker that it went to, and what it was, for a reader. */
export type MissingSend = readonly [autogradId: bigint, to: WorkerId, what: string]

/** A worker's row. */
export interface PassReport {
  /** Grows with every report of that worker in that pass. */
  readonly version: number
  /** Gradient messages received. */
  readonly received: number
  /** Gradient messages sent: receivers, each once, and their numbers. */
  readonly sent: readonly (readonly [WorkerId, number])[]
  /** How many send functions of the worker have no gradient yet. */
  readonly missingCount: number
  /** Some of them. */
  readonly missingSample: readonly MissingSend[]
}

export class PassLedger {
  private readonly rows = new Map<WorkerId, PassReport>()
  /** Per worker: sent to it − received by it. Only what is not 0 is kept. */
  private readonly open = new Map<WorkerId, number>()

  /** Takes a worker's newest row; an older one than it has is ignored. */
  report(worker: WorkerId, row: PassReport): void {
    const before = this.rows.get(worker)
    if (before !== undefined && before.version >= row.version) return
    this.rows.set(worker, row)
    this.shift(worker, (before?.received ?? 0) - row.received)
    for (const [to, count] of row.sent) this.shift(to, count)
    if (before !== undefined) for (const [to, count] of before.sent) this.shift(to, -count)
  }

  /** Whether everything that was sent was received, over the newest rows. With a passive root: whether the pass has ended. */
  get balanced(): boolean {
    return this.open.size === 0
  }

  /** The workers that have not received, as far as is known here, all that was sent to them (or the other way round, while reports are on their way). */
  unbalanced(): WorkerId[] {
    return [...this.open.keys()]
  }

  /** The workers that took part, as far as is known here: those with a row, and those to which somebody sent. */
  participants(): Set<WorkerId> {
    const all = new Set(this.rows.keys())
    for (const row of this.rows.values()) for (const [to] of row.sent) all.add(to)
    return all
  }

  /** The rows of workers that miss gradients for some of their send functions, by worker id. */
  incomplete(): [WorkerId, PassReport][] {
    return [...this.rows].filter(([, row]) => row.missingCount > 0).sort(([a], [b]) => a - b)
  }

  private shift(worker: WorkerId, by: number): void {
    if (by === 0) return
    const now = (this.open.get(worker) ?? 0) + by
    if (now === 0) this.open.delete(worker)
    else this.open.set(worker, now)
  }
}
