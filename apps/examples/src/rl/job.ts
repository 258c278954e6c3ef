/**
 * The run itself: launches the agent with its observers, lets them play episode after episode, and shows the results. `main.ts` is its command; the
 * workers run `program.ts` or `actor-critic.ts`.
 */
import { availableParallelism } from 'node:os'
import { relative } from 'node:path'
import { isPostgradError, launch } from 'postgrad'
import { prepareOut } from '../shared/out-file.js'
import { progressDisplay } from '../shared/progress-display.js'
import { actorCriticEpisode } from './actor-critic.js'
import { batchedEpisode } from './batched.js'
import { type Point, writeCurve } from './curve.js'
import type { Episode, Team } from './episode.js'
import { episode } from './program.js'
import { total } from './returns.js'
import type { Settings } from './settings.js'

/** How much of the running reward an episode replaces; PyTorch's tutorial has the same. */
const SHARE = 0.05
/** Of an untrained policy, about. */
const RUNNING_AT_FIRST = 10

/** By name, the workers' module and the agent's function. */
const PROGRAMS = {
  reinforce: { module: './program.js', play: episode },
  batched: { module: './batched.js', play: batchedEpisode },
  'actor-critic': { module: './actor-critic.js', play: actorCriticEpisode },
} as const

export interface RunOptions {
  readonly settings: Settings
  /** Where the picture goes. */
  readonly out: string
  /** Ends the run; what has been played is shown and written. */
  readonly signal: AbortSignal
}

/** @throws (rejects) what the workers throw, WORKER_DIED when the agent or the last observer dies */
export async function run({ settings, out, signal }: RunOptions): Promise<void> {
  await prepareOut(out)
  const { variant, observers: count, seed, episodes, target } = settings
  const observers = Array.from({ length: count }, (_, i) => `observer${i + 1}`)
  const { module, play } = PROGRAMS[variant]
  const program = new URL(module, import.meta.url)
  const inJobs = variant === 'actor-critic'
  const team: Team = { observers, seed }
  const points: Point[] = []
  let [running, steps, seconds] = [RUNNING_AT_FIRST, 0, 0]
  const cluster = await launch(program, { workers: inJobs ? ['agent'] : ['agent', ...observers], seed })
  const cut = (): void => void cluster.close({ timeoutMs: 0 })
  const display = progressDisplay(process.stdout)
  // The agent says who was lost; without a listener the cluster would warn of each.
  cluster.onWorkerDeath(() => {})
  try {
    signal.addEventListener('abort', cut)
    if (signal.aborted) cut()
    if (inJobs) cluster.jobs(program, { name: 'rollouts', threads: Math.min(count, availableParallelism()) })
    const startedMs = performance.now()
    while (points.length < episodes && running <= target) {
      const { rewards, lost }: Episode = await cluster.on('agent').run(play, team)
      for (const name of lost) console.log(`\n${name} has died; the others continue`)
      if (rewards.length > 0) {
        const reward = total(rewards) / rewards.length
        running = SHARE * reward + (1 - SHARE) * running
        points.push({ reward, running })
        steps += total(rewards)
      }
      seconds = (performance.now() - startedMs) / 1000
      display.update({
        done: Math.min(running, target),
        total: target,
        text: `episode ${points.length}: ${points.at(-1)?.reward.toFixed(0)}, running ${running.toFixed(1)}`,
      })
    }
  } catch (error) {
    if (!(signal.aborted && isPostgradError(error, 'CLUSTER_CLOSED'))) throw error
  } finally {
    signal.removeEventListener('abort', cut)
    display.close()
    await cluster.close({ timeoutMs: 0 })
  }
  const solved = running > target ? 'solved' : 'not solved'
  const rate = seconds === 0 ? 0 : Math.round(steps / seconds)
  console.log(
    `${solved}: running reward ${running.toFixed(1)} after ${points.length} episodes, ${steps} steps in ${seconds.toFixed(1)} s (${rate} a second)`,
  )
  if (points.length === 0) return
  const log = await writeCurve(out, points, settings, seconds)
  console.log(`learning curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}
