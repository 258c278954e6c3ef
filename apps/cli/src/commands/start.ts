/** The command in this process: hands the process's arguments, streams, clocks and signals to `cli.ts`, and ends with its exit code. */
import { readFileSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { bridge } from '../bridge.js'
import { EXIT, EXIT_BY_SIGNAL } from '../exit-codes.js'
import type { StopSignal, Surroundings } from '../surroundings.js'
import { main } from './cli.js'

// The library's own, found by its name: where this file lies differs between the repository and the package that users install.
const manifest = createRequire(import.meta.url).resolve('postgrad/package.json')
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }

const STOP_SIGNALS = Object.keys(EXIT_BY_SIGNAL) as readonly StopSignal[]

const around: Surroundings = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  pid: process.pid,
  now: () => performance.now(),
  wallMs: () => Date.now(),
  onSignal: (fn) => {
    for (const signal of STOP_SIGNALS) process.on(signal, fn)
    return () => {
      for (const signal of STOP_SIGNALS) process.off(signal, fn)
    }
  },
  onWarning: (fn) => {
    // Node's own listener, which prints them; none with --no-warnings.
    const others = process.listeners('warning')
    const own = (warning: Error): void => fn(`(node:${process.pid}) ${warning.name}: ${warning.message}`)
    process.removeAllListeners('warning')
    if (others.length > 0) process.on('warning', own)
    return () => {
      process.off('warning', own)
      for (const other of others) process.on('warning', other)
    }
  },
  onExit: (fn) => {
    process.on('exit', fn)
    return () => process.off('exit', fn)
  },
  exit: (code) => process.exit(code),
}

/** For what is on its way to a stream. */
const LEFT_OPEN_MS = 200

/** Runs the command line that the process was started with. */
export async function start(): Promise<void> {
  // So that what `onExit` was given runs: Node ends without a word at a signal that nobody listens to.
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(EXIT_BY_SIGNAL[signal])
    })
  }

  // Node ignores SIGPIPE: `postgrad run … | head` would end in a stack of the streams' insides. So would a disk that is full.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(EXIT.byPipe)
      if (error.code === 'EIO') return // The terminal has gone: SIGHUP ends the run, with its grace.
      try {
        writeSync(process.stderr.fd, `postgrad: the output cannot be written: ${error.message}\n`)
      } catch {} // nor can that
      process.exit(EXIT.failed)
    })
  }

  process.exitCode = await main(process.argv.slice(2), version, around, bridge)
  // A reader that is slow gets all.
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((resolve) => stream.write('', () => resolve()))
  // As one of several (`--rank`) this process has run the program itself, which may not have ended, or has left something open. It ends with its run, as a thread does.
  setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()
}
