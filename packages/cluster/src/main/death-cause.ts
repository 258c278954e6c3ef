/**
 * Why a worker died, for the errors of others: its peers only see a closed link, and the main thread sees a moment later what ended the thread. It adds
 * that cause to errors that reach the program on the main thread. `gate.ts` calls it.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'

const DEPTH_MAX = 8

/** What is known of the end of a worker, by its id; null if it lives, or none here had that id. */
export type FindDeath = (workerId: number) => Promise<PostgradError | null>

/** Adds the cause to every WORKER_DIED in this error and its causes that has only seen a closed link. Never rejects. */
export async function explainDeaths(error: unknown, findDeath: FindDeath): Promise<void> {
  let at = error
  for (let depth = 0; depth < DEPTH_MAX && typeof at === 'object' && at !== null; depth++) {
    if (isPostgradError(at, 'WORKER_DIED') && at.values.cause === 'link-closed') {
      const death = await findDeath(Number(at.values.workerId))
      if (death !== null) explain(at, death)
      return
    }
    at = (at as { cause?: unknown }).cause
  }
}

/** Changes the error, which was made or decoded for one receiver on this thread. Node prints its stack, which begins with the message. */
function explain(error: PostgradError, death: PostgradError): void {
  const told = error.message.replace('link-closed', String(death.values.cause))
  const stack = error.stack?.replace(error.message, () => told)
  Object.assign(error, { message: told, values: { ...error.values, ...death.values }, cause: death })
  if (stack !== undefined) error.stack = stack
}
