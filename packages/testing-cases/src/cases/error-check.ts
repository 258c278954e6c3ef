/** Runs an error case and reports what is wrong with its rejection. */
import type { CaseCluster } from './case.js'
import type { ErrorCase } from './errors.js'

/** The hop that an error makes on top when it leaves worker0's thread. */
const LAST_HOP = { name: 'worker0', id: 0 }

/**
 * Empty when the case rejects as it must: code, values, the way it took, a part of the message, and a remedy for every PostgradError.
 * @param onThreads worker0 is not this thread
 */
export async function errorProblems(cluster: CaseCluster, one: ErrorCase, { onThreads = false } = {}): Promise<string[]> {
  const { main, message } = one
  const workers = one.expected.workers as readonly unknown[] | undefined
  const expected = onThreads && workers !== undefined ? { ...one.expected, workers: [...workers, LAST_HOP] } : one.expected
  let error: Record<string, unknown>
  try {
    await cluster.on('worker0').run(main)
    return ['it did not reject']
  } catch (thrown) {
    error = thrown as Record<string, unknown>
  }
  const problems: string[] = []
  for (const [key, want] of Object.entries(expected)) {
    const got = key === 'remoteStack' ? includes(error.remoteStack, want) : key === 'cause' ? pick(error.cause, want as object) : error[key]
    if (JSON.stringify(got) !== JSON.stringify(want)) problems.push(`${key}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`)
  }
  if (!String(error.message).includes(message))
    problems.push(`message: ${JSON.stringify(error.message)} without ${JSON.stringify(message)}`)
  const { remedy } = error as { remedy?: unknown }
  if (expected.code !== undefined && (typeof remedy !== 'string' || !String(error.message).includes(remedy))) {
    problems.push(`remedy: ${JSON.stringify(remedy)}, which the message must contain`)
  }
  return problems
}

/** `part` where the text has it, else the text. */
function includes(text: unknown, part: unknown): unknown {
  return typeof text === 'string' && text.includes(String(part)) ? part : text
}

/** Those properties of `value` that `like` has. */
function pick(value: unknown, like: object): unknown {
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.keys(like).map((key) => [key, (value as Record<string, unknown>)[key]]))
    : value
}
