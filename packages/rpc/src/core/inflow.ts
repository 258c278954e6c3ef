/**
 * How much one peer of another process may have waiting at this worker, and how often it may be refused. Beyond either bound its link is not read, so that the rest stays
 * with the peer. The windows of calls and fetches (`call-credits.ts`) bound what is within them; this bounds everything else: calls beyond a window, replies, items of
 * streams, cancels, releases, gradients, and what cannot be read. Rules CRE-16 to CRE-19 in SPEC.md; `message-path.ts` and `reading-share.ts` count here, the link below pauses.
 *
 *     socket ─▸ read ─▸ mailbox: within a window │ everything else ─▸ its turn ─▸ served, or refused
 *       ▴                          ▴ held               waiting, bytes                  allowance
 *       └───────────────── setPaused ────────────────────┴───────────────────────────────┘
 *
 * Note [Why every pause ends]. A pause waits for nothing that a peer does. A message that counts in `waiting` gets its turn from the mailbox alone: a dispatch never
 * waits, and calls that wait for replies of others have begun by then. Messages may wait for calls that are held (MB-5), but calls are held only until an allowance has grown, or while the link is
 * read. An allowance grows with time. So two workers that pause each other both continue: each works its own
 * mailbox empty. Frames that let the other end continue (acknowledgements, PROGRESS) are late by the pause and never lost, a paused link sends as ever, and it takes no
 * silence for a death meanwhile. Calls within the windows do not pause a link, so gradients and replies still pass the calls of their sender (MB-18).
 *
 * Note [Answers that nobody reads]. A link is not paused because its peer leaves bytes unread: two workers that send each other much would wait for each other for ever, since neither
 * would read the acknowledgements. Instead, this worker does not begin the peer's calls: they wait in its line of the mailbox, where the windows bound them. All else is
 * read, and has its turn unless it belongs to a held call. So the acknowledgements of the peer are read, and then its calls begin again. If so many messages wait for held calls that the
 * link is paused, the calls begin until half of those messages have had their turn. A peer that takes nothing keeps its own calls waiting, and nobody else's; if
 * it is refused `REFUSALS_MAX` times meanwhile, its link ends.
 */
import type { Clock, Link, Timer } from '@postgrad/transport'
import { Allowance } from '@postgrad/transport/internal'

/** Messages of one peer that wait for their turn, beyond the windows, and their bytes; one frame more may come on top. */
export const OTHERS_WAITING_MAX = 1024
export const OTHER_BYTES_WAITING_MAX = 64 * 2 ** 20
/** A peer (the peers of a restricted role together) may be refused so often at once, and then so often a second: 500 refusals take some 30 ms. */
export const REFUSALS_MAX = 1024
export const REFUSALS_PER_SECOND = 500
/** Of one link. Below this no link is paused, whatever others of its role have used up; above it a link is paused if the allowance is used up, too. */
const OWN_REFUSALS_MAX = 10
const OWN_REFUSALS_PER_SECOND = 10
/** While a peer has left so much unread, next to the frame that is under way, its calls do not begin; they do again below half of it. */
export const UNREAD_BYTES_MAX = 64 * 2 ** 20
/** Between two checks whether it has read. */
const UNREAD_LOOK_MS = 10

/** The time that reading from a restricted role may take at once, in ms, and then in a second, while this worker also works with others. */
export const READING_MS_MAX = 100
export const READING_MS_PER_SECOND = 250
/** Of one link, whatever others of its role have used up. */
const OWN_READING_MS_MAX = 10
const OWN_READING_MS_PER_SECOND = 10

/** A time for which a link is not read; it can become longer. */
class Pause {
  private readonly clock: Clock
  private readonly onChange: () => void
  private timer: Timer | null = null
  private untilMs = 0

  constructor(clock: Clock, onChange: () => void) {
    this.clock = clock
    this.onChange = onChange
  }

  get isOn(): boolean {
    return this.timer !== null
  }

  begin(ms: number): void {
    this.untilMs = this.clock.now() + ms
    this.timer ??= this.clock.setTimer(ms, this.onTime)
    this.onChange()
  }

  cancel(): void {
    this.timer?.cancel()
  }

  private readonly onTime = (): void => {
    const leftMs = this.untilMs - this.clock.now()
    this.timer = leftMs > 0 ? this.clock.setTimer(leftMs, this.onTime) : null
    this.onChange()
  }
}

export class Inflow {
  /** Messages that have not had their turn, without those in a window, and their bytes. */
  waiting = 0
  bytes = 0
  /** How often the link was paused. */
  pauses = 0
  private readonly clock: Clock
  private readonly link: Link
  /** How often its peer may be refused when others have used up what they share. */
  private readonly own: Allowance
  private readonly ownReading: Allowance
  /** Whether the calls of the peer wait in its line. */
  private readonly holdCalls: (isHeld: boolean) => void
  /** Too much waits. */
  private isFull = false
  /** It was refused too often. */
  private readonly refused: Pause
  /** Reading it takes too much time. */
  private readonly reading: Pause
  /** It leaves too much unread. */
  private unreadTimer: Timer | null = null
  private refusedUnread = 0
  private isPaused = false
  private isHeld = false

  constructor(clock: Clock, link: Link, holdCalls: (isHeld: boolean) => void) {
    this.clock = clock
    this.link = link
    this.own = new Allowance(clock, OWN_REFUSALS_MAX, OWN_REFUSALS_PER_SECOND)
    this.ownReading = new Allowance(clock, OWN_READING_MS_MAX, OWN_READING_MS_PER_SECOND)
    this.refused = new Pause(clock, this.update)
    this.reading = new Pause(clock, this.update)
    this.holdCalls = holdCalls
  }

  /** A message has come that is in no window. */
  onReceived(bytes: number): void {
    this.waiting++
    this.bytes += bytes
    if (this.isFull || (this.waiting < OTHERS_WAITING_MAX && this.bytes < OTHER_BYTES_WAITING_MAX)) return
    this.isFull = true
    this.update()
  }

  /** It has its turn. */
  onTurn(bytes: number): void {
    this.waiting--
    this.bytes -= bytes
    if (!this.isFull || 2 * this.waiting > OTHERS_WAITING_MAX || 2 * this.bytes > OTHER_BYTES_WAITING_MAX) return
    this.isFull = false
    this.update()
  }

  /** A call of the peer begins: those that come after it wait if the peer does not read. */
  onCall(): void {
    if (this.unreadTimer !== null || this.unreadBytes <= UNREAD_BYTES_MAX) return
    this.refusedUnread = 0
    this.unreadTimer = this.clock.setTimer(UNREAD_LOOK_MS, this.onLook)
    this.update()
  }

  /** Nothing came of a message; it costs so much of the allowance. */
  onRefused(allowance: Allowance, amount = 1): void {
    const pauseMs = allowance.spend(amount)
    const isOwn = this.own.spend() > 0
    if (this.unreadTimer !== null && ++this.refusedUnread > REFUSALS_MAX) {
      this.link.abandon?.(`it was refused ${this.refusedUnread} times, and has left ${this.unreadBytes} bytes unread meanwhile`)
      return
    }
    if (pauseMs > 0 && isOwn) this.refused.begin(pauseMs)
  }

  /** Reading a message has taken so long; it costs so much of the allowance. Calls that have been read begin all the same. */
  onRead(allowance: Allowance, ms: number): void {
    const pauseMs = allowance.spend(ms)
    const isOwn = this.ownReading.spend(ms) > 0
    if (pauseMs > 0 && isOwn) this.reading.begin(pauseMs)
  }

  /** The link has ended. */
  close(): void {
    this.refused.cancel()
    this.reading.cancel()
    this.unreadTimer?.cancel()
  }

  private get unreadBytes(): number {
    return this.link.unreadBytes ?? 0
  }

  private readonly onLook = (): void => {
    const isUnread = 2 * this.unreadBytes > UNREAD_BYTES_MAX
    this.unreadTimer = isUnread ? this.clock.setTimer(UNREAD_LOOK_MS, this.onLook) : null
    this.update()
  }

  /** Calls that wait in the mailbox would be refused, too: while the link is not read for refusals they are held. */
  private readonly update = (): void => {
    const isPaused = this.isFull || this.refused.isOn || this.reading.isOn
    // Messages that wait for a held call (MB-5) count as waiting. If they fill the link, the acknowledgement that would end the hold is not read: so calls begin again.
    const isHeld = this.refused.isOn || (this.unreadTimer !== null && !this.isFull)
    if (isHeld !== this.isHeld) {
      this.isHeld = isHeld
      this.holdCalls(isHeld)
    }
    if (isPaused === this.isPaused) return
    this.isPaused = isPaused
    if (isPaused) this.pauses++
    this.link.setPaused?.(isPaused)
  }
}
