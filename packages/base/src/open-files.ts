/**
 * When the system gives a process no more open files (EMFILE) or has none left itself (ENFILE): what is said then, whatever met it first. Node throws such errors out of modules that are
 * loaded, sockets, processes and threads; a thread that could not begin has no code but the word.
 */
import { PostgradError } from './errors.js'

const SAID = /\b(EMFILE|ENFILE)\b/
const CAUSES_MAX = 8

/** TOO_MANY_OPEN_FILES with this error as its cause; null: neither the error nor a cause of it says that. */
export function tooManyOpenFiles(op: string, error: unknown): PostgradError | null {
  let at = error
  for (let depth = 0; depth < CAUSES_MAX && typeof at === 'object' && at !== null; depth++) {
    const { code, message, cause } = at as { code?: unknown; message?: unknown; cause?: unknown }
    if (code === 'TOO_MANY_OPEN_FILES') return at as PostgradError
    const [, said] = SAID.exec(`${String(code)} ${String(message)}`) ?? []
    if (said !== undefined) return openFiles(op, said, error)
    at = cause
  }
  return null
}

function openFiles(op: string, said: string, cause: unknown): PostgradError {
  const ofProcess = said === 'EMFILE'
  return new PostgradError('TOO_MANY_OPEN_FILES', {
    op,
    message: ofProcess ? 'this process has as many files open as it may (EMFILE)' : 'the machine has as many files open as it can (ENFILE)',
    remedy: ofProcess
      ? 'Allow more before you start it (ulimit -n 4096; LimitNOFILE of systemd), or start fewer workers in a process. A worker holds four, each connection one more, and loading takes some.'
      : 'End what holds them (lsof), or raise the limit of the machine (fs.file-max).',
    values: { code: said },
    cause,
  })
}
