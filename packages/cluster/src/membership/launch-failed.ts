/** LAUNCH_FAILED: why workers could not be started, and which of them it was, whoever wanted them. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { isOwnFrame, placeOfFrame, tooManyOpenFiles } from '@postgrad/base/internal'

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

/** With the innermost line of the program in the stack, or the line that Node could not read. */
function withPlace(why: string, error: unknown): string {
  // Only what a worker threw: the stack of this thread shows who launched.
  const { remoteStack } = Object(error) as { remoteStack?: string }
  const lines = (remoteStack ?? '').split('\n')
  const unread = lines.find((line) => /^file:.*:\d+$/.test(line))
  const place =
    unread ??
    lines
      .filter((line) => !isOwnFrame(line))
      .map(placeOfFrame)
      .find((one) => one !== '')
  return place === undefined ? why : `${why.replace(/\.$/, '')} (${place})`
}

/** What `fn` gives; what it throws as the LAUNCH_FAILED of `op`. */
export function attempt<T>(op: string, worker: string | null, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    throw launchFailed(op, worker, error)
  }
}
