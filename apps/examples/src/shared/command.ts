/** Common to the commands of all examples: help, mistakes in options, Ctrl-C, errors that a user can mend, and the exit code of each. */
import { resolve } from 'node:path'
import { isPostgradError } from 'postgrad'
import { withOptions } from './place.js'

const EXIT_FAILURE = 1
const EXIT_USAGE = 2
/** As a shell reports a process that SIGINT has ended. */
const EXIT_INTERRUPTED = 130

export interface Command<S> {
  /** As the user calls it: 'npm start'. */
  readonly name: string
  readonly help: string
  /** Null: help was asked for. @throws with a message for the user */
  readonly read: (argv: readonly string[]) => S | null
  /** Ends early when the signal aborts: by an error, or with what there is then. */
  readonly run: (settings: S, signal: AbortSignal) => Promise<void>
  /** The fate of the results after an interruption. */
  readonly interrupted: string
}

/** A path that the user gave, from the current folder. npm runs a script in the package's folder, so `scripts/run-app.mjs` returns to the user's. */
export function userPath(path: string): string {
  return resolve(path)
}

/** Runs a command and gives its exit code. */
export async function runCommand<S>({ name, help, read, run, interrupted }: Command<S>, argv: readonly string[]): Promise<number> {
  let settings: S | null
  try {
    settings = read(argv)
  } catch (error) {
    console.error(`${name}: ${(error as Error).message}\nTry: ${withOptions(name, '--help')}`)
    return EXIT_USAGE
  }
  if (settings === null) {
    console.log(help)
    return 0
  }
  const abort = new AbortController()
  // Once: a second Ctrl-C kills the process.
  process.once('SIGINT', () => abort.abort())
  try {
    await run(settings, abort.signal)
  } catch (error) {
    if (!abort.signal.aborted) {
      console.error(`${name}: ${describe(error)}`)
      return EXIT_FAILURE
    }
  }
  if (!abort.signal.aborted) return 0
  console.error(`\n${name}: interrupted; ${interrupted}`)
  return EXIT_INTERRUPTED
}

/** Errors that the user can mend need no stack: our own, and the system's about files. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return isPostgradError(error) || 'syscall' in error ? error.message : (error.stack ?? error.message)
}
