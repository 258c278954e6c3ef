/**
 * The cost of a cluster before it does anything: the time from `launch` to ready and the memory of a worker, compared with empty threads. And the time of a short
 * program, from `launch` to its 100th pass. Memory is measured in a process of its own (this file, run as a script), and so is the short program: memory that an earlier
 * cluster gave back hides the next one's, and code that an earlier cluster ran is compiled.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { launch } from 'postgrad'
import { designNote } from './program.js'

/** The same program, compiled and not: Node 20 compiles TypeScript with tsx, in each thread. */
const PROGRAMS = {
  JavaScript: new URL('./program.js', import.meta.url),
  TypeScript: new URL('../src/program.ts', import.meta.url),
}
export type Language = keyof typeof PROGRAMS
const MEBIBYTE = 2 ** 20
/** A short program runs so many passes after its first. */
const PASSES = 100

/** How a start is measured: by the clock, or by the CPU time of all threads of the process. */
export type Meter = 'wall' | 'cpu'

/** Seconds from `launch` until all of so many workers are ready. */
export async function launchSeconds(workers: number, language: Language, meter: Meter): Promise<number> {
  const seconds = metersStart()
  const cluster = await launch(PROGRAMS[language], { workers })
  const taken = seconds()
  await cluster.close({ timeoutMs: 0 })
  return taken[meter]
}

/** The same for threads with an empty program. */
export async function threadSeconds(workers: number, meter: Meter): Promise<number> {
  const seconds = metersStart()
  const threads = await bareThreads(workers)
  const taken = seconds()
  await Promise.all(threads.map((thread) => thread.terminate()))
  return taken[meter]
}

/** @returns the seconds since then, by each meter */
function metersStart(): () => Readonly<Record<Meter, number>> {
  const [started, cpuBefore] = [performance.now(), process.cpuUsage()]
  return () => {
    const { user, system } = process.cpuUsage(cpuBefore)
    return { wall: (performance.now() - started) / 1000, cpu: (user + system) / 1e6 }
  }
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

const SHORT = 'short'
const SHORT_LIMIT = 'short-limit'

/**
 * Seconds of a program that launches two workers and runs a first pass and 100 more, the design note's, in a new process.
 * @param compiled the folder in which compiled code is kept; null: none is
 */
export const shortProgramSeconds = (meter: Meter, compiled: string | null = null): Promise<number> => shortSeconds(SHORT, meter, compiled)

/** The same for a program that only starts two empty threads. */
export const shortLimitSeconds = (meter: Meter): Promise<number> => shortSeconds(SHORT_LIMIT, meter, null)

async function shortSeconds(kind: typeof SHORT | typeof SHORT_LIMIT, meter: Meter, compiled: string | null): Promise<number> {
  const { NODE_COMPILE_CACHE: _, ...inherited } = process.env
  const env = compiled === null ? inherited : { ...inherited, NODE_COMPILE_CACHE: compiled }
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), kind], { env })
  return (JSON.parse(stdout) as Record<Meter, number>)[meter]
}

async function printShort(work: () => Promise<() => Promise<void>>): Promise<void> {
  const seconds = metersStart()
  const end = await work()
  console.log(JSON.stringify(seconds()))
  await end()
}

async function shortProgram(): Promise<() => Promise<void>> {
  const cluster = await launch(PROGRAMS.JavaScript, { workers: 2 })
  const worker0 = cluster.on('worker0')
  await worker0.run(designNote, 1)
  await worker0.run(designNote, PASSES)
  // Not by force: workers keep their code when they close.
  return () => cluster.close()
}

async function emptyThreads(): Promise<() => Promise<void>> {
  const threads = await bareThreads(2)
  return async () => void (await Promise.all(threads.map((thread) => thread.terminate())))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , kind, workers] = process.argv
  if (kind === SHORT) await printShort(shortProgram)
  else if (kind === SHORT_LIMIT) await printShort(emptyThreads)
  else await printMemory(kind as Language | 'threads', Number(workers))
}
