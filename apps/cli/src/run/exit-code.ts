/** The exit code for an error (`exit-codes.ts` lists them). */
import { isPostgradError, type PostgradError } from 'postgrad'
import { EXIT } from '../exit-codes.js'

/** Codes of errors about a wrong command line, or about an environment that replaces it. */
const USAGE: ReadonlySet<string> = new Set([
  'LAUNCHER_ENV_INVALID',
  'NODE_LIST_INVALID',
  'OPTIONS_CONFLICT',
  'WORKER_NAME_INVALID',
  'WORKER_NAME_DUPLICATE',
  'WORKER_COUNT_INVALID',
  'CREDENTIALS_REQUIRED',
])
/** Codes of errors about other workers that are gone, not about a wrong program. */
const LOST: ReadonlySet<string> = new Set(['WORKER_DIED', 'PEER_FAILED', 'SUPERVISOR_GAVE_UP', 'STORE_CLOSED', 'STORE_LOST'])
const CAUSES_MAX = 8

/** Before any main has begun. */
export function codeOfStart(error: unknown): number {
  return codesOf(error).some((code) => USAGE.has(code)) ? EXIT.usage : EXIT.notStarted
}

/** Of a main, or of what kept the others together. */
export function codeOfRun(error: unknown): number {
  if (isPostgradError(error, 'MAIN_MISSING')) return EXIT.notStarted
  return typedCauses(error).some(({ code }) => LOST.has(code)) ? EXIT.lost : EXIT.failed
}

/** The death that a main has failed by: WORKER_DIED itself, or that of a broken group, a pipeline's step, a pass. Null: it has failed by itself. */
export function deathIn(error: unknown): PostgradError | null {
  return typedCauses(error).find(({ code }) => code === 'WORKER_DIED') ?? null
}

/** A typed error and its typed causes, up to the first error that the program itself has thrown. */
function typedCauses(error: unknown): readonly PostgradError[] {
  const found: PostgradError[] = []
  for (let at = error; isPostgradError(at) && found.length < CAUSES_MAX; at = at.cause) found.push(at)
  return found
}

function codesOf(error: unknown): readonly string[] {
  const codes: string[] = []
  for (let at = error, depth = 0; at != null && depth < CAUSES_MAX; depth++) {
    if (isPostgradError(at)) codes.push(at.code)
    at = (at as { cause?: unknown }).cause
  }
  return codes
}
