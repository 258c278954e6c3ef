/** A link that wraps another. */
import type { Link, LinkReceiver } from './link.js'

/** Passes everything on. A subclass that watches or changes the frames overrides a method. If the other link cannot be paused, `setPaused` does nothing. */
export class ForwardingLink implements Link {
  protected readonly link: Link

  constructor(link: Link) {
    this.link = link
  }

  get closed(): boolean {
    return this.link.closed
  }

  get unreadBytes(): number {
    return this.link.unreadBytes ?? 0
  }

  open(receiver: LinkReceiver): void {
    this.link.open(receiver)
  }

  send(...sent: Parameters<Link['send']>): void {
    this.link.send(...sent)
  }

  flush(): void {
    this.link.flush()
  }

  poll(): number {
    return this.link.poll()
  }

  close(): void {
    this.link.close()
  }

  setPaused(isPaused: boolean): void {
    this.link.setPaused?.(isPaused)
  }

  idle(): void {
    this.link.idle?.()
  }

  abandon(detail: string): void {
    this.link.abandon?.(detail)
  }
}
