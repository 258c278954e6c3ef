/** References that nobody has disposed of when a cluster is closed: who is asked, and how it is said. `cluster.ts` closes. PyTorch: `checkRRefLeaks`. */
import { PostgradError } from '@postgrad/base'
import type { ReferenceLeak } from '@postgrad/rpc'
import { describeLeaks, referenceLeaks } from '@postgrad/rpc/internal'
import type { RemoteWorker } from './remote-worker.js'

/** What a cluster does about references that are left when it is closed. PyTorch: `ignore_rref_leak`. */
export type LeakPolicy = 'ignore' | 'warn' | 'error'

/** While all are still there: the first that closes ends the references of the others to it. Who does not answer is left out. */
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
