/** The command `postgrad` as its own process, for tests. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('./main.js', import.meta.url))
/** A source: what is TypeScript's own is tested with it. Node 20 compiles it in each thread, which takes longer than the rest of a run. */
export const fixture = (name: string): string => fileURLToPath(new URL(`../src/fixtures/${name}`, import.meta.url))
export const TYPESCRIPT = fixture('program.ts')
/** The same, compiled. */
export const PROGRAM = fileURLToPath(new URL('./fixtures/program.js', import.meta.url))

/** What says that a process is one of several, or how it shall print; the machine that runs the tests may set it. */
const NOT_INHERITED = /^(RANK|WORLD_SIZE|OMPI_|SLURM_|JOB_COMPLETION_INDEX|POSTGRAD_|NO_COLOR|FORCE_COLOR|NODE_OPTIONS)/

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/**
 * @param onOut sees everything printed so far, and may send signals
 * @param more variables
 * @param cwd the current folder; else that of the test
 */
export function run(
  command: string,
  args: readonly string[],
  onOut?: (out: string, kill: (signal: NodeJS.Signals) => void) => void,
  more: NodeJS.ProcessEnv = {},
  cwd?: string,
): Promise<Ended> {
  return new Promise((resolve) => {
    // jest's own flags must not reach the child.
    const env = { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name))), ...more }
    const child = spawn(command, args, { env, cwd, timeout: 40_000 })
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
      onOut?.(out, (signal) => child.kill(signal))
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text
    })
    child.on('close', (code, signal) => resolve({ code, signal, out, err }))
  })
}

export const postgrad = (...args: readonly string[]): Promise<Ended> => run(process.execPath, [MAIN, ...args])
/** With variables of its own. */
export const postgradWith = (env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<Ended> =>
  run(process.execPath, [MAIN, ...args], undefined, env)
