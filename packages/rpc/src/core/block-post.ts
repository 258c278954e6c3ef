/**
 * Blocks of the shared heap on their way to one peer: held from the moment at which a message names them until the peer has read it. Links keep
 * order and lose nothing, so messages are only counted: "all up to n are read" gives back every block that they named, whether or not a message
 * could be read, and needs no words in it. `message-path.ts` above tells what happened, `HeapRoad` (tensor) below holds.
 */
import type { HeapRoad } from '@postgrad/tensor/internal'
import type { Timer } from '@postgrad/transport'

export class BlockPost {
  readonly road: HeapRoad
  private sent = 0
  private received = 0
  /** Received when the peer was last told. */
  private told = 0
  /** A message among those received since may have named blocks. */
  private isDue = false
  /** A message to the peer is being written. It may copy a tensor, and in the pauses of that copy arrive others. */
  private isWriting = false
  /** Set while the word is bound to leave by itself. */
  telling: Timer | null = null

  constructor(road: HeapRoad) {
    this.road = road
  }

  onWriting(): void {
    this.isWriting = true
  }

  onSent(): void {
    this.isWriting = false
    this.sent++
    this.road.sent(this.sent)
  }

  /** The peer has read so many messages; false, and without effect, if not so many have left. */
  onTaken(messages: number): boolean {
    if (messages > this.sent) return false
    this.road.taken(messages)
    return true
  }

  /** The message that was being written will not leave. */
  onUnsent(): void {
    this.isWriting = false
    this.road.unsent()
  }

  /** @param read whether it could be; if not, it may have named anything */
  onReceived(read: boolean): void {
    this.received++
    if (this.road.hasTaken || !read) this.isDue = true
    this.road.hasTaken = false
  }

  /** Whether the peer waits for a word. */
  get isTellable(): boolean {
    return this.isDue && this.told !== this.received
  }

  /**
   * How many messages the peer should hear have been read; null: nothing that it waits for, or a message to it is being written, with which
   * another would take what that has named so far. It is asked again behind that.
   */
  due(): number | null {
    if (!this.isTellable || this.isWriting) return null
    this.isDue = false
    this.told = this.received
    return this.received
  }
}
