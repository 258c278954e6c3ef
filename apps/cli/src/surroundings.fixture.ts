/** Surroundings of a test: streams that keep their output, a stopped clock, signals by hand. */
import type { StopSignal, Surroundings } from './surroundings.js'

export interface TestSurroundings extends Surroundings {
  out(): string
  err(): string
  /** As if the user had pressed Ctrl-C. */
  signal(signal: StopSignal): void
  /** Where the process would have ended. */
  readonly exited: number[]
}

export function surroundings({
  terminal = null,
  env = {},
}: {
  readonly terminal?: 'stdout' | null
  readonly env?: NodeJS.ProcessEnv
} = {}): TestSurroundings {
  let [out, err] = ['', '']
  const listeners = new Set<(signal: StopSignal) => void>()
  const exited: number[] = []
  const stream = (isTTY: boolean, take: (text: string) => void): NodeJS.WriteStream =>
    ({
      isTTY,
      columns: 100,
      rows: 30,
      write: (text: string) => {
        take(text)
        return true
      },
    }) as unknown as NodeJS.WriteStream
  return {
    stdin: { isTTY: false } as NodeJS.ReadStream,
    stdout: stream(terminal === 'stdout', (text) => {
      out += text
    }),
    stderr: stream(false, (text) => {
      err += text
    }),
    env,
    pid: process.pid,
    now: () => 0,
    wallMs: () => 1_000_000,
    onSignal: (fn) => {
      listeners.add(fn)
      return () => listeners.delete(fn)
    },
    onWarning: () => () => {},
    onExit: () => () => {},
    exit: (code) => {
      exited.push(code)
      throw new Exited(code)
    },
    out: () => out,
    err: () => err,
    signal: (signal) => {
      for (const fn of listeners) {
        try {
          fn(signal)
        } catch (error) {
          if (!(error instanceof Exited)) throw error
        }
      }
    },
    exited,
  }
}

/** Nothing runs after `exit`. */
class Exited extends Error {
  constructor(code: number) {
    super(`the process ends with ${code}`)
  }
}
