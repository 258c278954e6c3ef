/** LAUNCH_FAILED: why workers could not be started, and which of them it was, whoever wanted them. */
import { isPostgradError, PostgradError } from '@postgrad/base'

/** @param worker null: nothing was started, what was asked for is wrong */
export function launchFailed(op: string, worker: string | null, cause: unknown): PostgradError {
  // Not a failure of the worker: the cluster was closed meanwhile.
  if (isPostgradError(cause, 'CLUSTER_CLOSED')) return cause
  const why =
    cause instanceof Error || isPostgradError(cause)
      ? `${cause.name === 'PostgradError' ? '' : `${cause.name}: `}${cause.message}`
      : String(cause)
  return new PostgradError('LAUNCH_FAILED', {
    op,
    message: worker === null ? why : `worker '${worker}' could not start: ${why}`,
    values: worker === null ? {} : { worker },
    cause,
  })
}

/** What `fn` gives; what it throws as the LAUNCH_FAILED of `op`. */
export function attempt<T>(op: string, worker: string | null, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    throw launchFailed(op, worker, error)
  }
}
