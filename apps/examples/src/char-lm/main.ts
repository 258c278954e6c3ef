/**
 * The main job (`npm start`) as a command: a character model spread over three workers learns real text, in about a minute. Here are its exit codes and
 * Ctrl-C; `job.ts` has the work.
 */
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPostgradError } from 'postgrad'
import { runJob } from './job.js'
import { HELP, readSettings, type Settings } from './settings.js'
import { encode, readText, repositoryText } from './text.js'

// npm runs a script in the package's folder and says here where the user was.
const FROM = process.env.INIT_CWD ?? process.cwd()
const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url))
const EXIT_FAILURE = 1
const EXIT_USAGE = 2
/** As a shell reports a process that SIGINT has ended. */
const EXIT_INTERRUPTED = 130

async function main(argv: readonly string[]): Promise<number> {
  let settings: Settings | null
  try {
    settings = readSettings(argv)
  } catch (error) {
    console.error(`npm start: ${(error as Error).message}\nTry: npm start -- --help`)
    return EXIT_USAGE
  }
  if (settings === null) {
    console.log(HELP)
    return 0
  }
  const abort = new AbortController()
  // Once: whoever presses it again means it.
  process.once('SIGINT', () => abort.abort())
  try {
    const text = settings.data === null ? await repositoryText(REPOSITORY) : await readText(resolve(FROM, settings.data))
    const out = settings.out === null ? join(REPOSITORY, 'out', 'char-lm.svg') : resolve(FROM, settings.out)
    await runJob({ program: new URL('./program.js', import.meta.url), settings, corpus: encode(text, settings), out, signal: abort.signal })
    return 0
  } catch (error) {
    if (abort.signal.aborted) {
      console.error('\nnpm start: interrupted; nothing was written')
      return EXIT_INTERRUPTED
    }
    console.error(`npm start: ${describe(error)}`)
    return EXIT_FAILURE
  }
}

/** What the user can mend needs no stack: our own errors, and the system's about files. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return isPostgradError(error) || 'syscall' in error ? error.message : (error.stack ?? error.message)
}

process.exitCode = await main(process.argv.slice(2))
