/** `postgrad ps`: the runs of this user on this machine, and their workers. */
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.js'
import { runtimeDir } from '../status/runtime-dir.js'
import { askRun, findRuns, type RunAnswer } from '../status/status-client.js'
import { psText } from '../status/tables.js'
import { type CommandContext, command } from './context.js'

export function psCommand({ around, exitWith }: CommandContext): Command {
  return command('ps', 'list the runs on this machine and their workers', HELP)
    .option('--json', 'an array of snapshots')
    .action(async ({ json }: { readonly json?: true }) => {
      let answers: readonly RunAnswer[]
      try {
        const asked = await Promise.all(findRuns(runtimeDir(around.env)).map(askRun))
        answers = asked.filter((answer) => answer !== null)
      } catch (error) {
        around.stderr.write(`postgrad: ${error instanceof Error ? error.message : String(error)}\n`)
        return exitWith(EXIT.failed)
      }
      const snapshots = answers.map((answer) => ('snapshot' in answer ? answer.snapshot : answer))
      if (json !== undefined) around.stdout.write(`${JSON.stringify(snapshots, null, 2)}\n`)
      else if (answers.length === 0) around.stderr.write('postgrad: nothing runs here\n')
      else around.stdout.write(`${psText(answers).join('\n')}\n`)
    })
}

const HELP = `
Example:
  $ postgrad ps

MAILBOX: calls that wait. SERVED: calls that it has begun, since somebody looked for the first time. PENDING: own calls without an
answer. RREFS: to its values + to others'. 'busy': it does not answer now, and the numbers are older.`
