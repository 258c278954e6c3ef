/**
 * Drops the output of threads once nobody reads it (`node run.js | head -1`). A write to such a pipe fails with EPIPE: Node's console drops text that it
 * cannot write, but Node pipes the output of threads, and an error there would end the process. The output of threads is still read:
 * a thread that waits for room could not end.
 */
import type { Readable, Writable } from 'node:stream'
import type { Worker } from 'node:worker_threads'

/** By the stream of this process, what is piped into it. */
const piped = new Map<Writable, Set<Readable>>()

/** To be called in the turn in which a thread is started; once more does no harm. */
export function dropUnread(worker: Worker): void {
  watch(worker.stdout, process.stdout)
  watch(worker.stderr, process.stderr)
}

function watch(from: Readable, to: Writable): void {
  let sources = piped.get(to)
  if (sources === undefined) {
    sources = new Set()
    piped.set(to, sources)
    to.on('error', (error: NodeJS.ErrnoException) => onError(error, to))
  }
  if (sources.has(from)) return
  sources.add(from)
  from.once('close', () => sources.delete(from))
}

function onError(error: NodeJS.ErrnoException, to: Writable): void {
  // The program's own listener decides; without one it is uncaught, as it was before there was this one.
  if (error.code !== 'EPIPE' && to.listenerCount('error') === 1) throw error
  // The pipes' own listeners run before this one and have ended them.
  for (const from of piped.get(to)!) from.resume()
}
