/**
 * The plan of a SMART pass: which send functions of which workers will get gradients (Note [SMART] in `lineage.ts`). The root makes it, gradients carry it,
 * `pass.ts` counts by it.
 *
 *     aborted: 2 passes of this root        2, 17, 23                  how many, their counters
 *     worker1: messages 0 to 9,999          1,  1, 0, 10000            worker, intervals, then for each: gap after the one before, length
 *     worker4: messages 3, and 6 to 8       4,  2, 3, 1, 2, 3
 *
 * It travels with the first gradients that one worker posts to another, in the lineage field of the envelope. The root sends each receiver the parts of
 * the workers that it reaches; a forwarder leaves out its own part, since it has begun.
 *
 * Gradients of this pass may overtake the abort of an earlier one, which comes by another link: so the plan names the root's aborted passes that its
 * participants have not acknowledged, and a worker that begins drops them first (DA-25).
 */
import { PostgradError, type WorkerId } from '@postgrad/base'
import { LOCAL_ID_MAX, WORKER_ID_MAX } from '@postgrad/base/internal'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'
import type { Lineage, LineageNode } from '../lineage/lineage.js'
import { malformed } from '../lineage/lineage-field.js'

/** Gaps and lengths of a worker's intervals. */
type Part = readonly number[]

export class PassPlan {
  /** Counters of passes. */
  readonly aborted: readonly number[]
  private readonly parts: ReadonlyMap<WorkerId, Part>
  /** At the root: from whose messages those of a worker came, as `pair` has it, the root's own left out. Null elsewhere. */
  private readonly behind: ReadonlySet<number> | null

  constructor(aborted: readonly number[], parts: ReadonlyMap<WorkerId, Part>, behind: ReadonlySet<number> | null = null) {
    this.aborted = aborted
    this.parts = parts
    this.behind = behind
  }

  /** The workers with a part, as far as is known here; at the root: all who take part. */
  workers(): Iterable<WorkerId> {
    return this.parts.keys()
  }

  has(worker: WorkerId): boolean {
    return this.parts.has(worker)
  }

  /** The send functions of this worker, in the order in which their messages left. @throws LINEAGE_MALFORMED for a plan that names others */
  sendsOf({ self, sends }: Lineage): SendRpcBackward[] {
    const planned: SendRpcBackward[] = []
    const part = this.parts.get(self) ?? []
    let number = 0
    for (let i = 0; i < part.length; i += 2) {
      number += part[i]!
      const end = number + part[i + 1]!
      if (end > sends.length) throw malformed(`a plan names message ${end - 1} of a worker that has sent ${sends.length}`)
      for (; number < end; number++) {
        const send = sends[number]
        if (send === null || send === undefined) throw malformed(`a plan names message ${number}, which has not left`)
        planned.push(send)
      }
    }
    return planned
  }

  /** For the first gradients that `self` posts to `receiver`. */
  fieldFor(receiver: WorkerId, self: WorkerId): number[] {
    const field: number[] = [this.aborted.length, ...this.aborted]
    for (const worker of this.behind === null ? this.parts.keys() : reach(receiver, this.behind)) {
      const part = this.parts.get(worker)
      if (worker === self || part === undefined) continue
      field.push(worker, part.length / 2)
      for (const number of part) field.push(number)
    }
    return field
  }
}

/** The plan of a pass whose roots came from these messages. @throws LINEAGE_INCOMPLETE, PLAN_TOO_LARGE */
export function planOf(lineage: Lineage, roots: readonly LineageNode[], aborted: readonly number[]): PassPlan {
  const { self } = lineage
  const visit = lineage.nextVisit()
  const numbers = new Map<WorkerId, number[]>()
  let behind = NO_PAIRS
  const stack = [...roots]
  for (const node of stack) node.visit = visit
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const { worker, deps } = node
    if (deps === null) throw incomplete(node)
    if (node.isMessage) {
      const ofWorker = numbers.get(worker)
      if (ofWorker === undefined) numbers.set(worker, [node.code / 2])
      else ofWorker.push(node.code / 2)
    }
    for (const dep of deps) {
      if (dep.worker !== worker && dep.worker !== self && worker !== self) {
        if (behind === NO_PAIRS) behind = new Set()
        behind.add(pair(worker, dep.worker))
      }
      if (dep.visit === visit) continue
      dep.visit = visit
      stack.push(dep)
    }
  }
  let length = 0
  for (const [worker, list] of numbers) {
    const part = intervals(list)
    length += part.length
    numbers.set(worker, part)
  }
  if (length > PLAN_LENGTH_MAX) throw tooLarge(length / 2)
  return new PassPlan(aborted, numbers, behind)
}

/** How many numbers the intervals of a plan may have: some 4 MB. */
const PLAN_LENGTH_MAX = 2 ** 19
const WORKERS = 2 ** 16
const NO_PAIRS = new Set<number>()

/** Two workers in one number. */
function pair(worker: WorkerId, behind: WorkerId): number {
  return worker * WORKERS + behind
}

/** `from` and the workers after it. */
function reach(from: WorkerId, behind: ReadonlySet<number>): Set<WorkerId> {
  const reached = new Set([from])
  for (let before = 0; before < reached.size; ) {
    before = reached.size
    for (const both of behind) if (reached.has(Math.floor(both / WORKERS))) reached.add(both % WORKERS)
  }
  return reached
}

function intervals(numbers: number[]): number[] {
  if (numbers.length === 1) return [numbers[0]!, 1]
  numbers.sort((a, b) => a - b)
  const part: number[] = []
  let end = 0
  for (const number of numbers) {
    if (part.length > 0 && number === end) part[part.length - 1]!++
    else part.push(number - end, 1)
    end = number + 1
  }
  return part
}

/** @throws LINEAGE_MALFORMED */
export function readPlan(field: readonly number[]): PassPlan {
  const parts = new Map<WorkerId, Part>()
  const first = 1 + (field[0] ?? field.length)
  if (first > field.length) throw malformed('the plan that it needs is missing')
  const aborted = field.slice(1, first)
  if (aborted.some((counter) => counter > LOCAL_ID_MAX)) throw malformed('a counter has more than 48 bits')
  for (let at = first; at < field.length; ) {
    const worker = field[at]!
    const count = field[at + 1]
    if (count === undefined || 2 * count > field.length - at - 2) throw malformed('a plan ends too early')
    if (worker > WORKER_ID_MAX) throw malformed(`a plan names worker ${worker}`)
    if (parts.has(worker)) throw malformed(`a plan has two parts for worker ${worker}`)
    parts.set(worker, field.slice(at + 2, at + 2 + 2 * count))
    at += 2 + 2 * count
  }
  return new PassPlan(aborted, parts)
}

function tooLarge(intervals: number): PostgradError {
  return new PostgradError('PLAN_TOO_LARGE', {
    op: 'backward',
    expected: `a pass over at most ${PLAN_LENGTH_MAX / 2} groups of consecutive messages`,
    got: `one over ${intervals}: the roots do not depend on the messages between these groups`,
    remedy: 'Split the forward pass over several contexts.',
    values: { intervals, intervalsMax: PLAN_LENGTH_MAX / 2 },
  })
}

function incomplete({ worker, code }: LineageNode): PostgradError {
  return new PostgradError('LINEAGE_INCOMPLETE', {
    op: 'backward',
    message: `nothing is known of message ${Math.floor(code / 2)} of worker ${worker}, on which the roots depend: a message that described it could not be read`,
    remedy: "Repeat the forward pass in a fresh context, or use one with { mode: 'fast' }.",
    values: { workerId: worker },
  })
}
