/**
 * The limit on calls of one worker that wait at another, as both ends of the pair count them. `OutgoingCalls` counts calls that were sent and, as far as the
 * receiver has said, not begun; `IncomingCalls` counts those received and not begun. The sender refuses a call beyond the window before it notes anything of
 * it, so a mailbox is bounded without a queue before it. Fetches have a window of their own, of the same size. Rules CRE-1 to CRE-13 in SPEC.md;
 * `peer-ledger.ts` has those of one peer.
 *
 *     sender                                               receiver
 *     sent − begun < window, else MAILBOX_FULL ── CALL ──▸ received − begun
 *              begun  ◂── PROGRESS [begun, bytes] ──────── after each half window of calls that have begun, or earlier
 */
import { PostgradError } from '@postgrad/base'
import type { Clock } from '@postgrad/transport'
import type { WorkerInfo } from '../common/worker-info.js'

/** Calls of one worker that may wait at another. */
export const CALLS_WAITING_MAX = 16_384
/** Their bytes; the call that reaches this is the last that is sent. */
export const CALL_BYTES_WAITING_MAX = 64 * 2 ** 20

/** Limits on the calls of one worker that wait at another. If a limit is reached, further calls fail with MAILBOX_FULL. */
export interface MailboxOptions {
  /** How many calls of one worker may wait at another, sent and not begun. Default 16,384. */
  readonly callsMax?: number
  /** How many bytes these calls may have, with the large tensors that are passed through shared memory. The call that reaches the limit is still sent. Default 64 MiB. */
  readonly bytesMax?: number
}

/** @throws INVALID_ARGUMENT */
export function checkMailbox({
  callsMax = CALLS_WAITING_MAX,
  bytesMax = CALL_BYTES_WAITING_MAX,
}: MailboxOptions = {}): Required<MailboxOptions> {
  for (const [name, value] of Object.entries({ callsMax, bytesMax })) {
    if (Number.isSafeInteger(value) && value >= 1) continue
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'mailbox',
      expected: `${name} as an integer ≥ 1`,
      got: String(value),
      remedy: 'Leave it out for the default.',
    })
  }
  return { callsMax, bytesMax }
}

/** A wait for room. */
export interface CreditWaiter {
  resolve(): void
  reject(error: unknown): void
}

/** The sender's side. */
export class OutgoingCalls {
  readonly window: Required<MailboxOptions>
  /** In the order in which they came. */
  readonly waiters = new Set<CreditWaiter>()
  sent = 0
  sentBytes = 0
  /** Of these, as far as the receiver has said. */
  private begun = 0
  private begunBytes = 0
  private readonly clock: Clock
  /** Places that `reserve` gave in this turn of the event loop and no call has taken yet. */
  private reserved = 0
  private isReleaseDue = false

  constructor(window: Required<MailboxOptions>, clock: Clock) {
    this.window = window
    this.clock = clock
  }

  /** Those that wait there, as far as is known. */
  get calls(): number {
    return this.sent - this.begun
  }

  get bytes(): number {
    return this.sentBytes - this.begunBytes
  }

  get isFull(): boolean {
    return this.calls >= this.window.callsMax || this.bytes >= this.window.bytesMax
  }

  onSent(bytes: number): void {
    this.sent++
    this.sentBytes += bytes
    if (this.reserved > 0) this.reserved--
  }

  /** One of them left with so many bytes less. */
  onShrunk(bytes: number): void {
    this.sentBytes -= bytes
    this.wake()
  }

  /** Whether so many were sent at all. */
  hasSent(calls: number, bytes: number): boolean {
    return calls <= this.sent && bytes <= this.sentBytes
  }

  /** The receiver has begun so many of them in total; a smaller number than an earlier one says nothing. */
  onProgress(begun: number, begunBytes: number): void {
    this.begun = Math.max(this.begun, begun)
    this.begunBytes = Math.max(this.begunBytes, begunBytes)
    this.wake()
  }

  /** Whether there is room for one more call than what was promised already. The place is kept until the end of the turn. */
  reserve(): boolean {
    if (this.isFull || this.calls + this.reserved >= this.window.callsMax) return false
    this.reserved++
    if (!this.isReleaseDue) {
      this.isReleaseDue = true
      this.clock.defer(() => {
        this.isReleaseDue = false
        this.reserved = 0
        this.wake()
      })
    }
    return true
  }

  /** The receiver has died. */
  fail(makeError: () => unknown): void {
    for (const waiter of [...this.waiters]) waiter.reject(makeError())
  }

  private wake(): void {
    for (const waiter of this.waiters) {
      if (!this.reserve()) return
      waiter.resolve()
    }
  }
}

/** The receiver's side. */
export class IncomingCalls {
  private received = 0
  private receivedBytes = 0
  begun = 0
  begunBytes = 0
  private readonly window: Required<MailboxOptions>
  /** `begun` in the last message to the sender. */
  private told = 0
  private toldBytes = 0

  constructor(window: Required<MailboxOptions>) {
    this.window = window
  }

  /** Those that wait here. */
  get calls(): number {
    return this.received - this.begun
  }

  get bytes(): number {
    return this.receivedBytes - this.begunBytes
  }

  /** Returns whether it is within the window. It counts in either case. */
  onReceived(bytes: number): boolean {
    const isWithin = this.calls < this.window.callsMax && this.bytes < this.window.bytesMax
    this.received++
    this.receivedBytes += bytes
    return isWithin
  }

  /**
   * Returns whether to notify the sender: after half a window of calls or bytes. In ordinary traffic that is a message in thousands, and a sender
   * that sees no room left has at least half a window here, so it is notified when these begin.
   */
  onBegun(bytes: number): boolean {
    this.begun++
    this.begunBytes += bytes
    return 2 * (this.begun - this.told) >= this.window.callsMax || 2 * (this.begunBytes - this.toldBytes) >= this.window.bytesMax
  }

  /** Begun, and the sender does not know. */
  get untold(): number {
    return this.begun - this.told
  }

  onTold(): void {
    this.told = this.begun
    this.toldBytes = this.begunBytes
  }
}

/** Why a call was not sent, or was not run; `toHere` is the name of a fetch. */
export function mailboxFull(op: string, worker: WorkerInfo, { calls, bytes }: { calls: number; bytes: number }): PostgradError {
  const isFetch = op === 'toHere'
  const first = isFetch ? 'Have fewer fetches under way' : `Await ready('${worker.name}') before each call, or have fewer calls under way`
  return new PostgradError('MAILBOX_FULL', {
    op,
    message: `${calls} ${isFetch ? 'fetches' : 'calls'} (${bytes} bytes) of this worker wait at worker '${worker.name}' and have not begun; it has no room for another`,
    remedy: `${first}; the window is { mailbox: { callsMax, bytesMax } }.`,
    values: { worker: worker.name, workerId: worker.id, calls, bytes },
  })
}
