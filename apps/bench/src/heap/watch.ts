/** `--heap MINUTES`: does memory stay flat while workers send each other tensors of mixed sizes? The workers run `load.ts`; `picture.ts` draws. */
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { heapStats, threadHeap } from '@postgrad/tensor/internal'
import { launch } from 'postgrad'
import * as load from './load.js'
import { heapPicture } from './picture.js'
import { type HeapRun, type HeapSample, MEASURES, type Measure, type Trend, trendOf } from './run.js'

const WORKERS = 4
const SAMPLES = 360
const INTERVAL_MS_MIN = 1000
const PROGRESS_EVERY = 6
const MEBIBYTE = 2 ** 20

export interface WatchOptions {
  readonly minutes: number
  readonly seed: number
  /** Where `heap.json` and `heap.svg` go; null: nothing is written. */
  readonly folder: string | null
  readonly say: (line: string) => void
}

export async function watchHeap({ minutes, seed, folder, say }: WatchOptions): Promise<HeapRun> {
  const durationMs = minutes * 60_000
  const intervalMs = Math.max(INTERVAL_MS_MIN, durationMs / SAMPLES)
  const machine = `${availableParallelism()} cores, Node ${process.version.slice(1)}`
  say(`${WORKERS} workers for ${minutes} minutes, seed ${seed}, a sample every ${(intervalMs / 1000).toFixed(1)} s`)
  await using cluster = await launch(new URL('./load.js', import.meta.url), { workers: WORKERS })
  const controllers = cluster.workers.map(({ name }) => cluster.on(name))
  await Promise.all(controllers.map((worker, i) => worker.run(load.startLoad, seed * WORKERS + i)))
  const samples: HeapSample[] = []
  const report = (): HeapRun => ({ machine, seed, workers: WORKERS, minutes, trends: trendsOf(samples), samples })
  if (folder !== null) await mkdir(folder, { recursive: true })
  const started = performance.now()
  while (performance.now() - started < durationMs) {
    await new Promise<void>((resolve) => setTimeout(resolve, intervalMs))
    const ofWorkers = await Promise.all(controllers.map((worker) => worker.run(load.sampleLoad)))
    const sample = sampleOf((performance.now() - started) / 1000, ofWorkers)
    const stands = sample.steps === samples.at(-1)?.steps
    samples.push(sample)
    // A lane ends only by an error, which `stopLoad` throws.
    if (stands) break
    if (samples.length % PROGRESS_EVERY === 0) say(sampleText(sample))
    // Each time, so that a run that is cut short has its figures.
    if (folder !== null) await writeFile(join(folder, 'heap.json'), `${JSON.stringify(report(), null, 1)}\n`)
  }
  await Promise.all(controllers.map((worker) => worker.run(load.stopLoad)))
  const run = report()
  for (const line of trendLines(run)) say(line)
  if (folder !== null) {
    await writeFile(join(folder, 'heap.svg'), heapPicture(run))
    say(join(folder, 'heap.svg'))
  }
  return run
}

function sampleOf(seconds: number, workers: readonly load.LoadSample[]): HeapSample {
  const { touchedBytes, claimedBytes, liveBytes, segments } = heapStats(threadHeap())
  const { rss, heapUsed } = process.memoryUsage()
  const sum = (of: (sample: load.LoadSample) => number) => workers.reduce((total, sample) => total + of(sample), 0)
  const bytes: Record<Measure, number> = {
    rss,
    touched: touchedBytes,
    claimed: claimedBytes,
    live: liveBytes,
    heapUsed: heapUsed + sum((sample) => sample.heapUsedBytes),
  }
  const mebibytes = Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, Math.round((value / MEBIBYTE) * 10) / 10]))
  return {
    seconds: Math.round(seconds * 10) / 10,
    mebibytes: mebibytes as Record<Measure, number>,
    segments,
    blocksOnTheWay: sum((sample) => sample.blocksOnTheWay),
    steps: sum((sample) => sample.done),
  }
}

function trendsOf(samples: readonly HeapSample[]): Record<Measure, Trend> {
  const half = samples.slice(Math.floor(samples.length / 2))
  const trend = (name: Measure) => trendOf(half.map(({ seconds, mebibytes }) => [seconds, mebibytes[name]]))
  return Object.fromEntries(Object.keys(MEASURES).map((name) => [name, trend(name as Measure)])) as Record<Measure, Trend>
}

const sampleText = ({ seconds, mebibytes, segments, steps }: HeapSample): string =>
  `${String(Math.round(seconds)).padStart(5)} s  ${Object.entries(mebibytes)
    .map(([name, value]) => `${name} ${value.toFixed(0)}`)
    .join('  ')} MiB  ${segments} segments  ${steps} steps`

function trendLines({ trends }: HeapRun): string[] {
  return Object.entries(trends).map(
    ([name, { mean, perHour, rise, isFlat }]) =>
      `last half: ${name.padEnd(8)} mean ${mean.toFixed(1)} MiB, ${perHour.toFixed(1)} MiB an hour, ${(100 * rise).toFixed(1)} % within the half: ${isFlat ? 'flat' : 'GROWS'}`,
  )
}
