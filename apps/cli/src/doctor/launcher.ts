/** Which launcher `postgrad run` would find. */
import { formatHostPort } from '../rendezvous/host-port.js'
import { launcherOf, placeOf } from '../rendezvous/launcher-env.js'
import type { Environment } from '../surroundings.js'
import { type Finding, ok, warn } from './finding.js'

export function judgeLauncher(env: Environment): Finding {
  const launcher = launcherOf(env, 'auto')
  if (launcher === null) return ok('launcher', 'none: postgrad run starts all workers here')
  try {
    const { rank, worldSize, master } = placeOf(env)!
    return ok('launcher', `${launcher}: postgrad run is rank ${rank} of ${worldSize}, and meets the others at ${formatHostPort(master)}`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return warn(
      'launcher',
      `${launcher}, but half of it: ${why}`,
      'postgrad run refuses to start.',
      'Set what is missing, or pass --launcher none.',
    )
  }
}
