/**
 * Whether messages are under way among workers, by the numbers that each has sent and received while it was quiet. Note [The end of a group] in
 * `shutdown.ts` has the proof that these suffice. Used there, and to close a cluster from outside.
 */
import type { WorkerId } from '@postgrad/base'

/** Of each peer that lives: [its id, messages sent to it, messages received from it], without those of groups. */
export type Counts = readonly (readonly [peer: number, sent: number, received: number])[]

/** The last word of each worker whose end is waited for. */
export class Tally {
  private readonly said = new Map<WorkerId, Counts>()

  note(id: WorkerId, counts: Counts): void {
    this.said.set(id, counts)
  }

  has(id: WorkerId): boolean {
    return this.said.has(id)
  }

  forget(id: WorkerId): void {
    this.said.delete(id)
  }

  clear(): void {
    this.said.clear()
  }

  /** Those of `members` that have said nothing; if all have, those to which something is under way from another. Empty: nothing is under way among them. */
  unsettled(members: readonly WorkerId[]): WorkerId[] {
    const silent = members.filter((id) => !this.has(id))
    return silent.length > 0 ? silent : unsettled(new Map(members.map((id) => [id, this.said.get(id)!])))
  }

  /** Whether a worker has a link to one that is not in `members`. */
  seesOthers(id: WorkerId, members: readonly WorkerId[]): boolean {
    return this.said.get(id)?.some(([peer]) => !members.includes(peer)) === true
  }
}

/** Workers to which something is still under way from another of them; `reports` has the last word of each. Empty: nothing is under way. */
export function unsettled(reports: ReadonlyMap<WorkerId, Counts>): WorkerId[] {
  const received = new Map([...reports].map(([id, counts]) => [id, new Map(counts.map(([peer, , count]) => [peer, count]))]))
  const late = new Set<WorkerId>()
  for (const [from, counts] of reports) {
    for (const [to, sent] of counts) {
      const got = received.get(to)?.get(from)
      // A pair of which one end does not know the other any more has no link left.
      if (to !== from && got !== undefined && got !== sent) late.add(to)
    }
  }
  return [...late]
}
