/**
 * `postgrad run`: the program's default export on every worker at once, and an exit code for the outcome. It decides whether this process starts all workers
 * (`run-cluster.ts`) or is one of several that a launcher has started (`run-member.ts`).
 */
import type { Bridge } from '../bridge.js'
import { errorText } from '../error-text.js'
import { placeOf } from '../rendezvous/launcher-env.js'
import type { Surroundings } from '../surroundings.js'
import { codeOfStart } from './exit-code.js'
import { runCluster } from './run-cluster.js'
import { runMember } from './run-member.js'
import { checkTogether, type RunOptions } from './run-options.js'

/** @returns the exit code */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions,
  around: Surroundings,
  bridge: Bridge,
): Promise<number> {
  let place: ReturnType<typeof placeOf>
  try {
    place = placeOf(around.env, options)
    checkTogether(options, place)
  } catch (error) {
    around.stderr.write(errorText(error, null))
    return codeOfStart(error)
  }
  if (place === null) return runCluster(program, args, options, around, bridge)
  return runMember(program, args, options, place, around, bridge)
}
