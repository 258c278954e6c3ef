/**
 * Finds programs that are over although others wait for them in operations of a group, from what all workers say of themselves. `standstill-watch.ts`
 * asks the workers, and notifies the group. The rules STA-1 to STA-4 are in SPEC.md.
 *
 * Note [Programs that are over]
 *
 * A program is over when its main has returned and its worker gets no other one (`postgrad run`), or when its worker has called `shutdown()`. Its worker still serves.
 * So a rank whose program is over may yet call what others wait for: in a function that somebody calls there. It will not if nobody can call it any more.
 *
 * Each worker says, in a turn of its own, either that something is under way there, or
 *     - whether its program is over,
 *     - in operations of which groups it waits, and for whom,
 *     - how many messages it has sent to and received from each other worker.
 * Something is under way where a call waits for its reply or is being served, a value is waited for, a message waits in the mailbox, or what an operation has sent has not
 * left. A pass may wait: it continues by messages, in the mailbox, and by the operations that it has begun. A `recv` or `send` that ends by itself (its own `signal`, or a
 * time shorter than PyTorch's default) is not such a wait: it breaks no group, and its program continues.
 *
 * If all workers have said so, the counts of each pair are equal, and each program that is not over waits in an operation, then nothing is under way. By Note [The end of a
 * group] in `shutdown.ts` no message is under way at the cut that the answers make, and all of them hold there at once. Only a message or a turn of a program could change
 * that. Nothing waits in a mailbox or is served, so only a program could send the first message. A program that is over sends none. Each other one waits in
 * operations, which end by messages. So an operation that waits for a worker whose program is over, and which waits in nothing itself, waits for ever: that group is broken.
 *
 * So no right program is refused. A call under way to such a worker is a request that waits at its caller; a reply in flight makes the counts of a pair differ; a method of a
 * reference, and a call that it makes in turn, are served somewhere until they end; a program that computes waits in no operation, or answers only when it has computed.
 * With several groups each program that is not over may wait in another: none of them can call anybody either. A worker outside of the group is asked as well, since it may
 * call. So is one that leaves; a guest, and a worker that may not answer here, is seen in the counts of the others, and then nobody counts as gone.
 *
 * A program may begin an operation, and do something without a message before it awaits that: sleep, read a file. It counts as waiting. So all have to say the same
 * twice, a second apart. If it then calls a worker whose program is over, and that function calls what others wait for, it comes too late.
 */
import type { WorkerId } from '@postgrad/base'
import type { Said } from './group-protocol.js'
import { Tally } from './traffic.js'

/** A worker that will not call what members of a group wait for. */
export type Gone = readonly [group: string, worker: WorkerId]

/** By what all workers have said: `said` must have every one of them. Empty: none is known to be gone. */
export function goneIn(said: ReadonlyMap<WorkerId, Said>): readonly Gone[] {
  const ids = [...said.keys()]
  const tally = new Tally()
  const over = new Set<WorkerId>()
  const awaited: Gone[] = []
  for (const [id, one] of said) {
    if (one === null) return []
    const [isOver, waits, counts] = one
    tally.note(id, counts)
    if (waits.length > 0) for (const [group, on] of waits) awaited.push(...on.map((worker) => [group, worker] as const))
    else if (isOver) over.add(id)
    else return []
  }
  if (tally.unsettled(ids).length > 0 || ids.some((id) => tally.seesOthers(id, ids))) return []
  const gone = awaited.filter(([, worker]) => over.has(worker))
  return gone.filter(([group, worker], i) => gone.findIndex((other) => other[0] === group && other[1] === worker) === i)
}
