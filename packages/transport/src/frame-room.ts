/**
 * Limits the memory that large frames take while their bytes arrive, by sender (`budget.ts`). A sender announces a large frame before its bytes, and the frame needs room for all of them.
 * If there is none, this end stops reading that link until there is; links of other senders continue. Restricted roles have a smaller room of their own, and a lower limit for a frame.
 */
import { Budget, type Holder, type Share } from './budget.js'
import type { Clock } from './clock.js'

/** Of all frames under way in a process. One frame of the largest is less than an identity's quarter. */
export const FRAME_BYTES_UNDER_WAY_MAX = 2 ** 33
/** Of those of restricted roles. */
export const RESTRICTED_FRAME_BYTES_UNDER_WAY_MAX = 2 ** 30
const RESTRICTED_FRAME_BYTES_MAX = RESTRICTED_FRAME_BYTES_UNDER_WAY_MAX / 4

/** Of one exchange. */
export class FrameRooms {
  readonly waiting = new Set<FrameRoom>()
  private readonly clock: Clock
  private readonly isRestricted: (role: string) => boolean
  private readonly all: Budget
  private readonly restricted: Budget

  constructor(
    clock: Clock,
    isRestricted: (role: string) => boolean,
    bytesMax = FRAME_BYTES_UNDER_WAY_MAX,
    restrictedBytesMax = RESTRICTED_FRAME_BYTES_UNDER_WAY_MAX,
  ) {
    this.clock = clock
    this.isRestricted = isRestricted
    this.all = new Budget(bytesMax)
    this.restricted = new Budget(restrictedBytesMax)
  }

  of(holder: Holder): FrameRoom {
    const isRestricted = this.isRestricted(holder.role)
    const budget = isRestricted ? this.restricted : this.all
    return new FrameRoom(this, budget.share(holder), isRestricted ? RESTRICTED_FRAME_BYTES_MAX : Number.POSITIVE_INFINITY)
  }

  /** Some has become free: each that waits looks once, in the order in which they have begun to wait. */
  freed(): void {
    const waiting = [...this.waiting]
    this.waiting.clear()
    for (const room of waiting) this.clock.defer(() => room.onFree?.())
  }
}

/** Of one connection, which has one frame under way at a time. */
export class FrameRoom {
  /** A larger frame never has room. */
  readonly frameBytesMax: number
  /** Called in a turn of its own when it may have room that had none. */
  onFree: (() => void) | null = null
  private readonly rooms: FrameRooms
  private readonly share: Share
  private isOver = false

  constructor(rooms: FrameRooms, share: Share, frameBytesMax: number) {
    this.rooms = rooms
    this.share = share
    this.frameBytesMax = frameBytesMax
  }

  /** False: it waits, and `onFree` is called. */
  take(bytes: number): boolean {
    if (!this.isOver && this.share.take(bytes) === null) return true
    if (!this.isOver) this.rooms.waiting.add(this)
    return false
  }

  give(): void {
    this.share.end()
    if (this.rooms.waiting.size > 0) this.rooms.freed()
  }

  /** The connection has ended. */
  close(): void {
    this.isOver = true
    this.rooms.waiting.delete(this)
    this.give()
  }
}
