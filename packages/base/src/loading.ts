/**
 * Marks code that runs because a thread loads a module. A program that starts threads while a thread loads it would
 * be loaded by those in turn, without end: that is refused. `user-module.ts` sets the mark; functions that start threads check it first.
 *
 * The mark follows the program through its awaits and timers, so a `main()` that nobody awaits has it as well. A function that is called later has
 * none: it may start threads.
 */
import { isMainThread } from 'node:worker_threads'
import { PostgradError } from './errors.js'
import { currentScope, withScope } from './scope.js'

/** A module while it is loaded, and all that its top level has set going. */
export class Loading {
  /** Of the module. */
  readonly url: string
  /** A refusal: the program may have caught it. */
  refused: PostgradError | null = null

  constructor(url: string) {
    this.url = url
  }
}

/** Settles as `load` does, but rejects with THREADS_WHILE_LOADING also if the module caught it. */
export async function whileLoading<T>(url: string, load: () => Promise<T>): Promise<T> {
  const loading = new Loading(url)
  const loaded = await withScope({ loading }, load)
  if (loading.refused !== null) throw loading.refused
  return loaded
}

/**
 * @param op what was called, as it is called
 * @param url what it would load, if that alone makes it wrong: a module that waits for itself never comes to its end
 * @throws THREADS_WHILE_LOADING on a thread that runs this because it loads a module. The main thread may start what it likes.
 */
export function refuseWhileLoading(op: string, url?: string): void {
  const loading = currentScope().loading as Loading | null
  if (loading === null || isMainThread || (url !== undefined && url !== loading.url)) return
  loading.refused ??= new PostgradError('THREADS_WHILE_LOADING', {
    op,
    message: `a thread that was started by postgrad loads this module, and would start threads that load it again, without end. Let only the main thread do so, below expose(…):

  import { isMainThread } from 'node:worker_threads'
  if (isMainThread) await main() // which calls ${op}

`,
    remedy: 'Or put the code that the threads load into a file of its own.',
  })
  throw loading.refused
}
