/** For tests: inspects failures, and waits in virtual time. */
import type { PostgradError } from '@postgrad/base'
import { currentWorker } from '@postgrad/rpc'

export const failure = (promise: Promise<unknown>): Promise<PostgradError> =>
  promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error) => error,
  )

/** The last error of the chain of causes. */
export function innermost(error: unknown): PostgradError {
  let last = error as PostgradError
  while (last.cause !== undefined) last = last.cause as PostgradError
  return last
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => currentWorker().clock.setTimer(ms, resolve))
