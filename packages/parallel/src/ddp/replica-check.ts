/**
 * Checks that all replicas have the same bits, as they should: every so many reductions, ranks compare a digest of their parameters and buffers (option `checkReplicas` of the module). Ranks gather one
 * digest each; only if these differ, they gather the digest of each tensor, to name the first that differs.
 */

import { builtin } from '@postgrad/base/internal'
import { allGatherObject, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import { replicasDiffer } from './ddp-errors.js'
import type { Named } from './replica.js'

/** So many hexadecimal digits of a digest are compared: 64 bits. */
const DIGITS = 16

const APART = new WeakSet<Tensor>()

/** Replicas have other values of these between two averagings: nothing of their models is compared from here on. */
export function letGoApart(parameters: Iterable<Tensor>): void {
  for (const p of parameters) APART.add(p)
}

export class ReplicaCheck {
  private readonly group: ProcessGroup
  /** After so many reductions; 0 is never. */
  private readonly every: number
  private checkedAt = 0

  constructor(group: ProcessGroup, every: number) {
    this.group = group
    this.every = every
  }

  /**
   * All ranks call it after the same reductions. If replicas differ, it is due again before the next forward. `buffers`: those that should be alike. `hasInputs`: a rank that has none left in a `join` does
   * not step, so its tensors do not count.
   * @throws (rejects) REPLICAS_DIFFER, on all ranks alike, and as all collectives
   */
  async run(reductions: number, parameters: Named, buffers: Named, hasInputs: boolean): Promise<void> {
    if (this.every === 0 || this.group.size === 1 || reductions - this.checkedAt < this.every) return
    if (parameters.some(([, p]) => APART.has(p))) return
    const named = [...parameters, ...buffers]
    const own = hasInputs ? await digestsOf(named) : null
    const { group } = this
    const all = await allGatherObject(own === null ? null : digestOf(own.join()), { group })
    if (new Set(all.filter((each) => each !== null)).size > 1) {
      const rows = await allGatherObject(own, { group })
      const [first] = rows.filter((row) => row !== null)
      const place = first!.findIndex((digest, i) => rows.some((row) => row !== null && row[i] !== digest))
      const digests = rows.map((row) => row?.[place] ?? null)
      const [kind, number] = place < parameters.length ? (['parameter', place] as const) : (['buffer', place - parameters.length] as const)
      throw replicasDiffer({ name: named[place]![0], kind, number, reductions, digests }, group)
    }
    this.checkedAt = reductions
  }
}

async function digestsOf(named: Named): Promise<string[]> {
  const digests: string[] = []
  for (const [, each] of named) digests.push(digestOf(await each.data()))
  return digests
}

/** SHA-1: nobody forges weights here, and no other digest of Node is as cheap both with and without the processor's help. */
function digestOf(data: string | NodeJS.ArrayBufferView): string {
  const { createHash } = builtin<typeof import('node:crypto')>('node:crypto')
  return createHash('sha1').update(data).digest('hex').slice(0, DIGITS)
}
