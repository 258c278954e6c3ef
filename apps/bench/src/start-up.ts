/**
 * The cost of a cluster before it does anything: the time from `launch` to ready and the memory of a worker, compared with empty threads. Memory is measured in a
 * process of its own (this file, run as a script), since memory that an earlier cluster gave back hides the next one's.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { launch } from 'postgrad'

/** The same program, compiled and not: Node 20 compiles TypeScript with tsx, in each thread. */
const PROGRAMS = {
  JavaScript: new URL('./program.js', import.meta.url),
  TypeScript: new URL('../src/program.ts', import.meta.url),
}
export type Language = keyof typeof PROGRAMS
const MEBIBYTE = 2 ** 20

/** Seconds from `launch` until all of so many workers are ready. */
export async function launchSeconds(workers: number, language: Language): Promise<number> {
  const started = performance.now()
  const cluster = await launch(PROGRAMS[language], { workers })
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
export async function memoryPerWorker(kind: Language | 'threads', workers: number): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), kind, String(workers)])
  return Number(stdout)
}

async function printMemory(kind: Language | 'threads', workers: number): Promise<void> {
  const before = process.memoryUsage().rss
  const end =
    kind === 'threads'
      ? await bareThreads(workers).then((threads) => async () => void (await Promise.all(threads.map((thread) => thread.terminate()))))
      : await launch(PROGRAMS[kind], { workers }).then((cluster) => () => cluster.close({ timeoutMs: 0 }))
  console.log((process.memoryUsage().rss - before) / workers / MEBIBYTE)
  await end()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await printMemory(process.argv[2] as Language | 'threads', Number(process.argv[3]))
