/** The options of `postgrad replay`; `replay/replay.ts` does the work. */
import type { Command } from 'commander'
import { type ReplayOptions, replay } from '../replay/replay.js'
import { type CommandContext, command } from './context.js'

export function replayCommand({ around, exitWith }: CommandContext): Command {
  return command('replay', 'repeat a simulated run of a program that failed, by the token that it printed', HELP)
    .argument('<token>', 'pg1.…, from the last line of the failed run; run where that was run')
    .option('--trace', 'print what happened in the run')
    .option('--diagram <file.svg>', 'draw what happened in the run')
    .action(async (token: string, options: ReplayOptions) => {
      exitWith(await replay(token, options, around))
    })
}

const HELP = `
Examples:
  $ postgrad replay pg1.4f0c2b19.q1YqLU…
  $ postgrad replay pg1.4f0c2b19.q1YqLU… --trace --diagram run.svg

The token is of a run of simulateProgram or of exploreProgram. For the run of a test, put
POSTGRAD_REPLAY=<token> in front of the command that runs the test. Exit code 1: the run failed again; 0: it passes now.`
