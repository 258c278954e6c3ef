/** Whether the clock of deadlines goes forward, and as fast as the wall clock. */
import { type Finding, fail, ok, warn } from './finding.js'

export interface Clocks {
  /** Monotonic, ms. */
  readonly now: () => number
  readonly wallMs: () => number
  sleep(ms: number): Promise<void>
}

const READINGS = 10_000
const WATCHED_MS = 250
/** More: the wall clock is being set, or the machine was suspended. */
const DRIFT_MAX = 0.02
const WALL_MIN_MS = Date.UTC(2024, 0)

export async function judgeClock({ now, wallMs, sleep }: Clocks): Promise<Finding> {
  let last = now()
  for (let i = 0; i < READINGS; i++) {
    const next = now()
    if (next < last)
      return fail(
        'clock',
        `went back by ${last - next} ms`,
        'Deadlines and heartbeats are wrong.',
        'Look at the clock source of the machine, or of the virtual machine.',
      )
    last = next
  }
  const [began, wallBegan] = [now(), wallMs()]
  await sleep(WATCHED_MS)
  const [took, wallTook] = [now() - began, wallMs() - wallBegan]
  const drift = Math.abs(took - wallTook) / took
  if (wallMs() < WALL_MIN_MS)
    return warn('clock', `says ${new Date(wallMs()).toISOString()}`, 'TLS certificates seem not to be valid yet.', 'Set the clock.')
  if (drift > DRIFT_MAX)
    return warn(
      'clock',
      `the wall clock went ${Math.round(wallTook)} ms in ${Math.round(took)} ms`,
      'It is being set, or this machine stops at times.',
      'Wait until it is in step (timedatectl, chronyc tracking).',
    )
  return ok('clock', 'goes forward, in step with the wall clock')
}
