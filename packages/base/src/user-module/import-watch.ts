/**
 * Imports that nothing can end any more. A module that awaits, at its top level, an import of itself waits for its own end; Node then ends the process
 * with exit code 13 and no word. `user-module.ts` asks here, and whoever imports hears of it.
 */
import { PostgradError } from '../errors.js'

/** Gives up each import of this thread that is under way. */
const waiting = new Set<() => void>()

function giveUp(): void {
  for (const fail of [...waiting]) fail()
}

/** What `load` gives. Rejects as `load` does, and with MODULE_NEVER_LOADED when the thread has nothing left to wait for. */
export async function whileItCanEnd<T>(url: string, load: () => Promise<T>): Promise<T> {
  let fail!: () => void
  const isStuck = new Promise<never>((_resolve, reject) => {
    fail = () => reject(neverLoaded(url))
  })
  if (waiting.size === 0) process.on('beforeExit', giveUp)
  waiting.add(fail)
  try {
    return await Promise.race([load(), isStuck])
  } finally {
    waiting.delete(fail)
    if (waiting.size === 0) process.off('beforeExit', giveUp)
  }
}

function neverLoaded(url: string): PostgradError {
  return new PostgradError('MODULE_NEVER_LOADED', {
    op: 'import',
    message: `the top level of ${url} awaits the import of this module itself, or something else that never comes`,
    remedy:
      'Do that in a function, which the top level calls without await: main().catch(…). Or put what is imported into a file of its own.',
    values: { module: url },
  })
}
