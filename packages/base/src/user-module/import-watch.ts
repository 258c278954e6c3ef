/**
 * Detects imports that can never end. A module that awaits, at its top level, an import of itself waits for its own end: for ever, or until Node ends the process
 * with exit code 13 and no word. `user-module.ts` calls it, and its caller gets an error.
 */
import { PostgradError } from '../errors.js'

/** Ten, as Node has it, may not reach the module. */
const FRAMES_MAX = 64

/** Gives up each import of this thread that is under way. */
const waiting = new Set<() => void>()

function giveUp(): void {
  for (const fail of [...waiting]) fail()
}

/**
 * Settles as `load` does, but rejects with MODULE_NEVER_LOADED if the module's own top level awaits this call, or if the thread has nothing left to
 * wait for. Each caller up to that top level must await it in the turn in which it calls.
 */
export async function whileItCanEnd<T>(url: string, load: () => Promise<T>): Promise<T> {
  // Only what runs after an await sees who awaits it.
  await null
  if (awaitFrames().some((site) => isTopLevelOf(site, url))) throw neverLoaded(url)
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

/** The callers that await this, as V8 knows them; none where it does not say. */
function awaitFrames(): readonly NodeJS.CallSite[] {
  const { prepareStackTrace, stackTraceLimit } = Error
  try {
    Error.stackTraceLimit = FRAMES_MAX
    Error.prepareStackTrace = (_error, sites) => sites
    const sites: unknown = new Error().stack
    return Array.isArray(sites) ? sites : []
  } catch {
    // A stackTraceLimit that cannot be set.
    return []
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  }
}

/** A function without a name has a frame as a module has, but no function that is called begins at the first character of a file. */
function isTopLevelOf(site: NodeJS.CallSite, url: string): boolean {
  return (
    site.getFileName() === url && !site.getFunctionName() && site.getEnclosingLineNumber() === 1 && site.getEnclosingColumnNumber() === 1
  )
}

function neverLoaded(url: string): PostgradError {
  return new PostgradError('MODULE_NEVER_LOADED', {
    op: 'import',
    message: `the top level of ${url} awaits the import of this module itself, or something else that never ends`,
    remedy:
      'Await it in a function that the top level calls without await: main().catch(…). Or put the imported code into a file of its own.',
    values: { module: url },
  })
}
