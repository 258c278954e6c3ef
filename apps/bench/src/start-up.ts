/**
 * What a cluster costs before it does anything: the time from `launch` to ready and the memory of a worker, beside threads that run nothing. Memory is measured in a
 * process of its own (this file, run as a script), since what an earlier cluster gave back hides what the next one takes.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { launch } from 'postgrad'

const PROGRAM = new URL('./program.js', import.meta.url)
const MEBIBYTE = 2 ** 20

/** Seconds from `launch` until all of so many workers are ready. */
export async function launchSeconds(workers: number): Promise<number> {
  const started = performance.now()
  const cluster = await launch(PROGRAM, { workers })
  const seconds = (performance.now() - started) / 1000
  await cluster.close({ timeoutMs: 0 })
  return seconds
}

/** The same for threads with an empty program. */
export async function threadSeconds(workers: number): Promise<number> {
  const started = performance.now()
  const threads = await bareThreads(workers)
  const seconds = (performance.now() - started) / 1000
  await Promise.all(threads.map((thread) => thread.terminate()))
  return seconds
}

function bareThreads(count: number): Promise<Worker[]> {
  const threads = Array.from(
    { length: count },
    () => new Worker("require('node:worker_threads').parentPort.on('message', () => {})", { eval: true }),
  )
  return Promise.all(threads.map((thread) => new Promise<Worker>((resolve) => thread.once('online', () => resolve(thread)))))
}

/** Resident MiB for each of so many workers, of a process that has done nothing else. */
export async function memoryPerWorker(kind: 'cluster' | 'threads', workers: number): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), kind, String(workers)])
  return Number(stdout)
}

async function printMemory(kind: string, workers: number): Promise<void> {
  const before = process.memoryUsage().rss
  const end =
    kind === 'cluster'
      ? await launch(PROGRAM, { workers }).then((cluster) => () => cluster.close({ timeoutMs: 0 }))
      : await bareThreads(workers).then((threads) => async () => void (await Promise.all(threads.map((thread) => thread.terminate()))))
  console.log((process.memoryUsage().rss - before) / workers / MEBIBYTE)
  await end()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await printMemory(process.argv[2]!, Number(process.argv[3]))
