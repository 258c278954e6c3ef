/**
 * Dead letters: what a worker received or held and could not do, counted by reason. The last few are kept. A letter
 * describes the message in plain values and does not hold it, so it keeps no tensor alive.
 */

/** Each with its meaning. */
export const DEAD_LETTER_REASONS = {
  stopped: 'the worker had stopped',
  tombstone: 'it was about a context that had been released',
  'unknown-request': 'a reply to nothing that waits: answered twice, timed out or cancelled',
  'unknown-reference': 'it was about an RRef that is not here',
  unreadable: 'it could not be decoded',
  invalid: 'it can be read, but its sender may not say it, or it names what is not there',
  failed: 'its handler threw an error',
  draining: 'this worker took no more calls',
  'mailbox-full': 'its sender had more calls waiting here than it may',
  expired: 'its deadline had passed before its turn came',
  cancelled: 'its caller had given it up before its turn came',
  'link-closed': 'no link was left to send it on',
  'unwatched-crash': 'an actor ended by an error and nobody watched it, or what remote was to make failed and nobody used the reference',
  'stale-pass': 'it belonged to a backward pass that had been aborted',
} as const

/**
 * Why a worker did not process a message:
 *
 * - `stopped`: the worker had stopped.
 * - `tombstone`: the message was about a released context.
 * - `unknown-request`: a reply for which nothing waits: sent twice, timed out or cancelled.
 * - `unknown-reference`: the message was about an RRef that this worker does not have.
 * - `unreadable`: the message could not be decoded.
 * - `invalid`: the message was read, but its sender may not send it, or it names an object that does not exist.
 * - `failed`: the message's handler threw an error.
 * - `draining`: the worker was draining and took no more calls.
 * - `mailbox-full`: the sender had too many calls waiting on this worker.
 * - `expired`: the call's deadline had passed before its turn.
 * - `cancelled`: the caller had cancelled the call before its turn.
 * - `link-closed`: no link to the receiver was open any more.
 * - `unwatched-crash`: an actor crashed and no code watched it, or `remote` failed and no code used the reference.
 * - `stale-pass`: the message belonged to an aborted backward pass.
 */
export type DeadLetterReason = keyof typeof DEAD_LETTER_REASONS

/** A message that a worker could not process, or an error that no code noticed. The record has plain values only, so it keeps no message alive. */
export interface DeadLetter {
  /** Why the message was not processed. */
  readonly reason: DeadLetterReason
  /** When it happened, in ms on the worker's clock. */
  readonly atMs: number
  /** The name of the worker that sent the message; null if it arose on this worker. */
  readonly from: string | null
  /** A description for people: 'CALL myAdd', 'PROPAGATE_GRADIENTS'. */
  readonly what: string
}

export const LETTERS_KEPT = 32

const NO_LETTERS = Object.fromEntries(Object.keys(DEAD_LETTER_REASONS).map((reason) => [reason, 0])) as Record<DeadLetterReason, number>

export class DeadLetters {
  readonly counts: Record<DeadLetterReason, number>
  private readonly kept: DeadLetter[] = []
  private readonly keptMax: number
  private next = 0

  constructor(keptMax = LETTERS_KEPT) {
    this.keptMax = keptMax
    this.counts = { ...NO_LETTERS }
  }

  add(letter: DeadLetter): void {
    this.counts[letter.reason]++
    if (this.keptMax === 0) return
    this.kept[this.next] = letter
    this.next = (this.next + 1) % this.keptMax
  }

  get total(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0)
  }

  /** The last few, oldest first. */
  last(): readonly DeadLetter[] {
    return this.kept.length < this.keptMax ? this.kept.slice() : [...this.kept.slice(this.next), ...this.kept.slice(0, this.next)]
  }
}
