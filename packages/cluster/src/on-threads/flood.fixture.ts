/** Measures issue 4's flood: several workers call a slow one faster than it works. The test makes few calls, the soak as many as it is asked for. */

import { launch } from '../main/launch.js'
import type { Answers, FloodCounts } from './fixtures/flood.js'
import * as program from './fixtures/flood.js'

const SAMPLE_MS = 20

export interface FloodPlan {
  readonly senders: number
  readonly callsEach: number
  readonly callsMax: number
  /** How long a call takes. */
  readonly us: number
  /** Whether the slow worker awaits meanwhile. */
  readonly async: boolean
  /** Whether the senders look for room before each call. */
  readonly ready: boolean
}

export interface FloodResult {
  readonly counts: FloodCounts
  /** Calls that have begun at the slow worker, by its own count. */
  readonly begun: number
  readonly cancelled: number
  readonly answers: Answers
  /** The most calls that ever waited at the slow worker. */
  readonly depthMax: number
  readonly rssBeforeBytes: number
  readonly rssMaxBytes: number
  readonly deadLetters: number
  readonly pendingCalls: number
  readonly seconds: number
}

export async function measureFlood({ senders, callsEach, callsMax, us, async, ready }: FloodPlan): Promise<FloodResult> {
  const names = Array.from({ length: senders }, (_, i) => `sender${i}`)
  const cluster = await launch(new URL('./fixtures/flood.js', import.meta.url), {
    workers: ['slow', 'watcher', ...names],
    mailbox: { callsMax },
  })
  const rssBeforeBytes = process.memoryUsage.rss()
  let rssMaxBytes = rssBeforeBytes
  const sampling = setInterval(() => {
    rssMaxBytes = Math.max(rssMaxBytes, process.memoryUsage.rss())
  }, SAMPLE_MS)
  try {
    await cluster.on('slow').run(program.depths)
    const watching = cluster.on('watcher').run(program.watch)
    const startedMs = performance.now()
    const floods = await Promise.all(names.map((name) => cluster.on(name).run(program.flood, { count: callsEach, us, async, ready })))
    const seconds = (performance.now() - startedMs) / 1000
    await cluster.on('watcher').run(program.stopWatching)
    const answers = await watching
    const { begun, cancelled } = await cluster.on('slow').run(program.state)
    const { depthMax } = await cluster.on('slow').run(program.depths)
    const infos = Object.values(await cluster.debugInfo())
    const sum = (pick: (counts: FloodCounts) => number) => floods.reduce((total, counts) => total + pick(counts), 0)
    return {
      counts: { made: sum(({ made }) => made), served: sum(({ served }) => served), refused: sum(({ refused }) => refused) },
      begun,
      cancelled,
      answers,
      depthMax,
      rssBeforeBytes,
      rssMaxBytes,
      deadLetters: infos.reduce((total, { deadLetters }) => total + deadLetters!, 0),
      pendingCalls: infos.reduce((total, { pendingCalls }) => total + pendingCalls!, 0),
      seconds,
    }
  } finally {
    clearInterval(sampling)
    await cluster.close()
  }
}
