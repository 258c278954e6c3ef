/** The terminal, the clocks, the environment and the signals that every command gets: a test passes its own. */

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
export type Environment = Readonly<Record<string, string | undefined>>

export interface Surroundings {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly env: NodeJS.ProcessEnv
  readonly pid: number
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** Milliseconds since 1970, for what is shown and written. */
  readonly wallMs: () => number
  /** Calls `fn` on each of these signals until the returned function is called. */
  onSignal(fn: (signal: StopSignal) => void): () => void
  /** Hands `fn` the warnings that Node would print, until the returned function is called. */
  onWarning(fn: (text: string) => void): () => void
  /** Calls `fn` when the process ends in any way that it notices, until the returned function is called. `fn` waits for nothing. */
  onExit(fn: () => void): () => void
  /** Ends the process without waiting for anything. */
  exit(code: number): never
}
