/** LAUNCH_FAILED: which worker could not start, and why, at a launch, a join or a restart. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { placeOfThrown, tooManyOpenFiles } from '@postgrad/base/internal'

/** @param worker null: nothing was started, what was asked for is wrong */
export function launchFailed(op: string, worker: string | null, error: unknown): PostgradError {
  const cause = isPostgradError(error) ? error : (tooManyOpenFiles(op, error) ?? error)
  // Not a failure of the worker: the cluster was closed meanwhile.
  if (isPostgradError(cause, 'CLUSTER_CLOSED')) return cause
  const why =
    cause instanceof Error || isPostgradError(cause)
      ? `${cause.name === 'PostgradError' ? '' : `${cause.name}: `}${cause.message}`
      : String(cause)
  return new PostgradError('LAUNCH_FAILED', {
    op,
    message: worker === null ? why : `worker '${worker}' could not start: ${withPlace(why, error)}`,
    values: worker === null ? {} : { worker },
    cause,
  })
}

/** With the line of the program. The stack of an error of this thread shows who launched, so that of a worker alone counts. A death says its place itself. */
function withPlace(why: string, error: unknown): string {
  const { remoteStack } = Object(error) as { remoteStack?: string }
  const place = remoteStack === undefined ? '' : placeOfThrown(error)
  return place === '' ? why : `${why.replace(/\.$/, '')} (${place})`
}

/** What `fn` gives; what it throws as the LAUNCH_FAILED of `op`. */
export function attempt<T>(op: string, worker: string | null, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    throw launchFailed(op, worker, error)
  }
}
