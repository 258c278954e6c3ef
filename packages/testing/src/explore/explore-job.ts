/** The threads of an exploration run this: some of the seeds of a program. `explore-program.ts` is the other end. */
import { isPostgradError } from '@postgrad/base'
import type { JobProgram } from '@postgrad/jobs/internal'
import { reported, shrinkOf } from '../replay/reproduce.js'
import { bodyOf, identityOf, type ProgramRef } from '../simulate/program-run.js'
import { type ExploreOptions, Explorer, type Part } from './explore.js'

/** A thread's task. */
export interface ExploreTask {
  readonly program: string
  readonly export: string
  readonly options: ExploreOptions
  readonly first: number
  readonly count: number
}

/** @throws (rejects) what a run throws, with the line that repeats it */
export const runJob: JobProgram['runJob'] = async (_name, args): Promise<Part> => {
  const { program, export: name, options, first, count } = args[0] as ExploreTask
  const ref = { program, export: name }
  const explorer = new Explorer(options, await bodyOf(ref))
  try {
    return await explorer.seedsPart(first, count)
  } catch (error) {
    throw await reportedOf(error, ref, options, explorer)
  }
}

/** The error of a program's run with the line that repeats it: `postgrad replay <token>`. */
export function reportedOf(error: unknown, ref: ProgramRef, options: ExploreOptions, explorer: Explorer<unknown>): Promise<unknown> {
  const { traceDir } = options
  return reported(error, identityOf(ref, { ...options, world: { arrival: 'alone', ...options.world } }), {
    shrink: shrinkOf(options, null),
    ...(traceDir === undefined ? {} : { traceDir }),
    run: (variant) => explorer.replay(variant, isPostgradError(error, 'ORDERS_DIFFER')),
  })
}
