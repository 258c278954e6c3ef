/** `postgrad replay <token>`: repeats the run of a program that gave the token, in this process, and shows what happened in it on request. */
import { writeFileSync } from 'node:fs'
import { replayProgram, runTrace } from 'postgrad/testing'
import { errorText } from '../error-text.js'
import { EXIT } from '../exit-codes.js'
import type { Surroundings } from '../surroundings.js'

export interface ReplayOptions {
  readonly trace?: true
  /** Where the diagram goes. */
  readonly diagram?: string
}

const USAGE: ReadonlySet<unknown> = new Set(['REPLAY_TOKEN_INVALID', 'REPLAY_OTHER_TEST', 'PROGRAM_INVALID'])

/** @returns the exit code */
export async function replay(token: string, options: ReplayOptions, around: Pick<Surroundings, 'stdout' | 'stderr'>): Promise<number> {
  let failure: { readonly error: unknown } | null = null
  let trace = null
  try {
    trace = (await replayProgram(token)).trace
  } catch (error) {
    if (USAGE.has((error as { code?: unknown } | null)?.code)) {
      around.stderr.write(errorText(error, null))
      return EXIT.usage
    }
    failure = { error }
    trace = runTrace(error)
  }
  if (trace !== null && options.trace === true) around.stdout.write(`${trace.readable}\n`)
  if (trace !== null && options.diagram !== undefined) {
    const note = failure === null ? '' : String((failure.error as Partial<Error> | null)?.message ?? failure.error)
    try {
      writeFileSync(options.diagram, trace.diagram({ title: `postgrad replay ${token.slice(0, 12)}…`, note }))
    } catch (error) {
      around.stderr.write(errorText(error, null))
      return EXIT.usage
    }
  }
  if (failure === null) {
    around.stderr.write('postgrad: the run passes now\n')
    return 0
  }
  around.stderr.write(errorText(failure.error, null))
  return EXIT.failed
}
