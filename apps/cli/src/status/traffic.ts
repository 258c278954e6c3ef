/** Counts the messages of each worker while somebody watches. */
import type { Traffic } from './snapshot.js'

export class TrafficCounts {
  private readonly counts = new Map<string, { sent: number; received: number }>()
  private watchers = 0

  /** @returns whether this is the first one */
  begin(): boolean {
    return this.watchers++ === 0
  }

  /** @returns whether this was the last one */
  end(): boolean {
    if (--this.watchers > 0) return false
    this.counts.clear()
    return true
  }

  tell(worker: string, kind: string): void {
    if (kind !== 'sent' && kind !== 'received') return
    const counts = this.counts.get(worker) ?? { sent: 0, received: 0 }
    this.counts.set(worker, counts)
    counts[kind]++
  }

  of(worker: string): Traffic | null {
    if (this.watchers === 0) return null
    return { ...(this.counts.get(worker) ?? { sent: 0, received: 0 }) }
  }
}
