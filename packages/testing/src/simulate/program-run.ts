/**
 * Runs a program that is in a module of its own, `{ program, export }`, so that it can run anywhere: in another thread, or from the command
 * line by the token of a failed run (`postgrad replay`). The options are then data, and travel in the token.
 */

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { importModule } from '@postgrad/base/internal'
import { checkNames } from '@postgrad/cluster/internal'
import { rulesOf } from '../faults/fault-plan.js'
import { decodeToken, isData, type ProgramIdentity, type RunVariant } from '../replay/replay-token.js'
import { checkRun } from './check-run.js'
import { workerNames } from './cluster.js'
import { type RunOptions, runSimulation, SIMULATE_OPTIONS, type SimCluster, type SimulateOptions, type Simulation } from './simulate.js'

/** A function that a module exports, to run in a simulation: `(sim) => Promise`, like the body of `simulate`. */
export interface ProgramRef {
  /** The module: a path from the current directory, or a URL. This process must be able to import it: as JavaScript, or as TypeScript under tsx. */
  readonly program: string | URL
  /** The name of the function's export. Default 'default'. */
  readonly export?: string
}

/**
 * Simulates a function of a module, as `simulate` does with a function of a test. A run that fails prints a token, and `postgrad replay <token>` repeats the run.
 * @throws PROGRAM_INVALID if the module cannot be imported, or does not export the function; the errors of `simulate`
 * @example const { result } = await simulateProgram({ program: './program.js' }, { workers: 3, seed: 7 })
 */
export async function simulateProgram(ref: ProgramRef, options: SimulateOptions): Promise<Simulation<unknown>> {
  const body = await bodyOf(ref)
  checkRun('simulateProgram', options, body)
  checkNames('simulateProgram', options, SIMULATE_OPTIONS)
  return runProgram(ref, options, body)
}

/**
 * Repeats the failed run of a program by its token, and resolves with the simulation if the run passes now. `postgrad replay <token>` does the same.
 * @throws the error of the run; REPLAY_TOKEN_INVALID; REPLAY_OTHER_TEST if the token is of a test; PROGRAM_INVALID if the module has changed or is missing
 * @example
 * const { trace } = await replayProgram('pg1.63a91d1b.JczNCoMw') // the token that a failed run prints
 * console.log(trace.readable)
 */
export async function replayProgram(token: string): Promise<Simulation<unknown>> {
  const { of, variant } = decodeToken(token)
  if (of.kind !== 'program') {
    throw new PostgradError('REPLAY_OTHER_TEST', {
      op: 'replay',
      expected: 'a token of a program',
      got: `one of the test '${of.name}'${of.file === '' ? '' : ` of ${of.file}`}`,
      remedy: 'Put POSTGRAD_REPLAY=<token> in front of the command that runs that test.',
      values: { of },
    })
  }
  return runVariant(of, variant)
}

/** One run of a program, neither shrunk nor printed. */
export async function runVariant({ program, export: name, options }: ProgramIdentity, variant: RunVariant): Promise<Simulation<unknown>> {
  const body = await bodyOf({ program, export: name })
  return runSimulation({ ...(options as unknown as SimulateOptions), variant } as RunOptions, body, ({ world }, main) => world.run(main))
}

function runProgram(ref: ProgramRef, options: SimulateOptions, body: Body): Promise<Simulation<unknown>> {
  const identity = identityOf(ref, options)
  return runSimulation({ ...options, identity }, body, ({ world }, main) => world.run(main))
}

type Body = (sim: SimCluster) => Promise<unknown>

/** Null if a token cannot hold the options. */
export function identityOf(ref: ProgramRef, options: SimulateOptions): ProgramIdentity | null {
  const { workers, seed = 0, dataSeed, rpcTimeoutMs, mailbox, jobs, faults, world, twice } = options
  const plan = rulesOf(faults, seed, workerNames(workers))
  if (plan !== null && !plan.every(isData)) return null
  const { arrival, overtaking, stepsMax, timeMsMax } = world ?? {}
  const ofWorld = { arrival, overtaking, stepsMax, timeMsMax }
  // Undefined values do not come into the token. Infinity does not either: no end of a rule is the default.
  const data = { workers, dataSeed, rpcTimeoutMs, mailbox, jobs, faults: plan ?? undefined, twice, world: ofWorld }
  return { kind: 'program', program: String(ref.program), export: ref.export ?? 'default', options: data }
}

/** The module as a URL, which means the same in another thread. */
export function programUrl(program: string | URL): string {
  return isUrl(program) ? String(program) : pathToFileURL(resolve(String(program))).href
}

/** @throws PROGRAM_INVALID */
export async function bodyOf({ program, export: name = 'default' }: ProgramRef): Promise<Body> {
  const url = programUrl(program)
  let module: Readonly<Record<string, unknown>>
  try {
    module = await importModule(url, null)
  } catch (cause) {
    throw invalid(String(program), `'${url}' could not be imported: ${(cause as Partial<Error>).message ?? cause}`, cause)
  }
  const body = module[name]
  if (typeof body === 'function') return body as Body
  const names = Object.keys(module).join(', ')
  throw invalid(String(program), `a module that exports ${names === '' ? 'nothing' : `${names}, but no function '${name}'`}`)
}

function isUrl(program: string | URL): boolean {
  return typeof program !== 'string' || /^(file|data|node):/.test(program)
}

function invalid(program: string, got: string, cause?: unknown): PostgradError {
  return new PostgradError('PROGRAM_INVALID', {
    op: 'simulateProgram',
    expected: `a module '${program}' that exports a function of the cluster, (sim) => Promise`,
    got,
    remedy: 'Give the path from the current directory, or a URL, and the name of the export.',
    ...(cause === undefined ? {} : { cause }),
    values: { program },
  })
}
