/**
 * The workers to start: a count or a list of names, checked before a thread starts. `roster.ts` gives the ids.
 * rpc has the rules for one name (PyTorch: `init_rpc`); this file adds those for the list.
 */
import { PostgradError } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import { checkWorkerName } from '@postgrad/rpc/internal'

/** Ids have 16 bits, and the last one is the main thread's. */
const WORKERS_MAX = WORKER_ID_MAX

/**
 * A count n means the names worker0…worker(n-1).
 * @throws WORKER_NAME_INVALID, WORKER_NAME_DUPLICATE, WORKER_COUNT_INVALID
 */
export function workerNames(workers: readonly string[] | number): readonly string[] {
  const names = typeof workers === 'number' ? defaultNames(workers) : workers
  if (!Array.isArray(names) || names.length === 0 || names.length > WORKERS_MAX) throw badCount(Array.isArray(names) ? names.length : names)
  const seen = new Set<string>()
  return names.map((name: unknown) => {
    if (typeof name !== 'string') {
      throw new PostgradError('WORKER_NAME_INVALID', {
        op: 'worker name',
        expected: 'a string',
        got: typeof name,
        remedy: 'Pass names as strings.',
      })
    }
    checkWorkerName(name)
    if (seen.has(name)) {
      throw new PostgradError('WORKER_NAME_DUPLICATE', {
        op: 'worker name',
        message: `the name '${name}' is not unique`,
        remedy: 'Give every worker a name of its own.',
        values: { name },
      })
    }
    seen.add(name)
    return name
  })
}

function defaultNames(count: number): string[] {
  if (!Number.isInteger(count) || count < 1 || count > WORKERS_MAX) throw badCount(count)
  return Array.from({ length: count }, (_, i) => `worker${i}`)
}

function badCount(got: unknown): PostgradError {
  return new PostgradError('WORKER_COUNT_INVALID', {
    op: 'workers',
    expected: `1 to ${WORKERS_MAX} workers`,
    got: String(got),
    remedy: "Pass a count, or the workers' names.",
  })
}
