/**
 * Ids of contexts, references and groups that must not come back. The older of two generations is forgotten as a whole, since taking the oldest
 * out of one Set each time costs ten times as much.
 */
export class Tombstones {
  private readonly min: number
  private newer = new Set<bigint>()
  private older = new Set<bigint>()

  /** The last `min` ids are remembered, and at most twice as many. */
  constructor(min: number) {
    this.min = min
  }

  add(id: bigint): void {
    if (this.newer.size === this.min) {
      this.older = this.newer
      this.newer = new Set()
    }
    this.newer.add(id)
  }

  has(id: bigint): boolean {
    return this.newer.has(id) || this.older.has(id)
  }

  delete(id: bigint): void {
    this.newer.delete(id)
    this.older.delete(id)
  }
}
