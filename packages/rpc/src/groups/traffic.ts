/**
 * Whether messages are under way among workers, told from what each says to have sent and received while it was quiet: Note [The end of a group] in
 * `shutdown.ts` has the proof that these sums suffice. Used there, and by who closes a cluster from outside.
 */
import type { WorkerId } from '@postgrad/base'

/** Of each peer that lives: [its id, messages sent to it, messages received from it], without those of groups. */
export type Counts = readonly (readonly [peer: number, sent: number, received: number])[]

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
