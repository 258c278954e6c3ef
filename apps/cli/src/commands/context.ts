/** What every command gets and returns. */
import { Command } from 'commander'
import type { Bridge } from '../bridge.js'
import type { Surroundings } from '../surroundings.js'

export interface CommandContext {
  readonly around: Surroundings
  readonly bridge: Bridge
  /** How the process shall end, unless it is said otherwise 0. */
  exitWith(code: number): void
}

/** A command with the usual help. @param example lines after the options */
export function command(name: string, description: string, example: string): Command {
  return new Command(name)
    .description(description)
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError(`(try 'postgrad ${name} --help')`)
    .addHelpText('after', `\n${example.trim()}`)
    .exitOverride()
}
