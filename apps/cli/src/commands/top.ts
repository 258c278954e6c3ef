/** `postgrad top`: `ps` again and again, with each worker's messages per second. */
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.js'
import { type TopOptions, top } from '../status/top.js'
import { integerFrom } from './arguments.js'
import { type CommandContext, command } from './context.js'

export function topCommand({ around, exitWith }: CommandContext): Command {
  return command('top', 'watch the runs on this machine: workers, mailboxes, contexts, RRefs, traffic', HELP)
    .argument('[pid]', 'only this run', integerFrom(1))
    .option('-n, --count <times>', 'end after so many tables', integerFrom(1))
    .action(async (pid: number | undefined, options: Omit<TopOptions, 'pid'>) => {
      try {
        exitWith(await top({ ...options, ...(pid === undefined ? {} : { pid }) }, around))
      } catch (error) {
        around.stderr.write(`postgrad: ${error instanceof Error ? error.message : String(error)}\n`)
        exitWith(EXIT.failed)
      }
    })
}

const HELP = `
Examples:
  $ postgrad top
  $ postgrad top --count 10 > log.txt

q or Ctrl-C ends it. SENT and RECEIVED are messages between workers; counting them costs a run something while somebody watches.`
