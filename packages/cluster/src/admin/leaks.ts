/** Finds references that no worker has disposed of when `cluster.ts` closes a cluster, and makes the error. PyTorch: `checkRRefLeaks`. */
import { PostgradError } from '@postgrad/base'
import type { ReferenceLeak } from '@postgrad/rpc'
import { describeLeaks, referenceLeaks } from '@postgrad/rpc/internal'
import type { RemoteWorker } from './remote-worker.js'

/**
 * How `close` treats references that were not disposed of: 'ignore' does nothing, 'warn' prints a process warning, 'error' rejects with RREF_LEAK. PyTorch:
 * `ignore_rref_leak`.
 */
export type LeakPolicy = 'ignore' | 'warn' | 'error'

/** Asks before any worker closes, since that ends the others' references to it. Leaves out workers that do not answer. */
export async function leaksOf(threads: readonly RemoteWorker[], timeoutMs: number): Promise<readonly ReferenceLeak[]> {
  const answers = await Promise.allSettled(threads.map((thread) => thread.ask('references', [], { timeoutMs })))
  const tables = answers.flatMap((answer, i) => (answer.status === 'fulfilled' ? [[threads[i]!.info.name, answer.value] as const] : []))
  return referenceLeaks(Object.fromEntries(tables))
}

export function referencesLeft(leaks: readonly ReferenceLeak[]): PostgradError {
  return new PostgradError('RREF_LEAK', {
    op: 'cluster.close',
    message: `${leaks.length} reference${leaks.length === 1 ? ' was' : 's were'} left:\n${describeLeaks(leaks)}\n`,
    remedy:
      'Give each up with dispose() or using; launch with { referenceStacks: true } to see where they were made, or without referenceLeaks.',
    values: { leaks: leaks.map(({ rrefId, ...leak }) => ({ ...leak, rrefId: String(rrefId) })) },
  })
}
