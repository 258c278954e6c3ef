/** The command line: all commands, each from a file of this folder. Commander checks and explains them. */
import { Command, CommanderError } from 'commander'
import type { Bridge } from '../bridge.js'
import { EXIT } from '../exit-codes.js'
import type { Surroundings } from '../surroundings.js'
import { completionCommand } from './completion.js'
import type { CommandContext } from './context.js'
import { doctorCommand } from './doctor.js'
import { exampleCommand } from './example.js'
import { explainCommand } from './explain.js'
import { keygenCommand } from './keygen.js'
import { newCommand } from './new.js'
import { plotCommand } from './plot.js'
import { psCommand } from './ps.js'
import { replayCommand } from './replay.js'
import { runCommand } from './run.js'
import { topCommand } from './top.js'

/** Runs a command line and gives the exit code of the process. */
export async function main(argv: readonly string[], version: string, around: Surroundings, bridge: Bridge): Promise<number> {
  let exitCode: number = EXIT.done
  const cli = commandTree(version, {
    around,
    bridge,
    exitWith: (code) => {
      exitCode = code
    },
  })
  try {
    // Commander's `help` shows the whole help for a command that is none, and does not say so.
    const [first, second] = argv
    const isUnknown = first === 'help' && second !== undefined && !cli.commands.some((one) => one.name() === second)
    await cli.parseAsync(isUnknown ? [second] : argv, { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has printed what it had to say; --help and --version arrive here as well, with 0.
    return error.exitCode === 0 ? EXIT.done : EXIT.usage
  }
}

/** All commands and their options: what is parsed, and what the shells' completion is made of. */
export function commandTree(version: string, context: CommandContext): Command {
  const { stdout, stderr } = context.around
  const output = { writeOut: (text: string) => stdout.write(text), writeErr: (text: string) => stderr.write(text) }
  const cli = new Command('postgrad')
    .description('Distributed autograd on worker threads and processes, from the command line.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError("(try 'postgrad --help')")
    .addHelpText('after', '\nExample:\n  $ postgrad run program.ts --workers 4')
    .exitOverride()
    .configureOutput(output)
  const commands = [
    runCommand(context),
    psCommand(context),
    topCommand(context),
    doctorCommand(context),
    explainCommand(context),
    exampleCommand(context),
    newCommand(context),
    plotCommand(context),
    keygenCommand(context),
    replayCommand(context),
    completionCommand(context, () => cli),
  ]
  for (const one of commands) cli.addCommand(one.configureOutput(output))
  return cli
}
