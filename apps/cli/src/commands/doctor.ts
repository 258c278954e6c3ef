/** `postgrad doctor`: what will work on this machine, and what to do about the rest. */
import type { Command } from 'commander'
import { type DoctorOptions, findings, NAME_WIDTH } from '../doctor/doctor.js'
import { type Finding, findingText } from '../doctor/finding.js'
import { EXIT } from '../exit-codes.js'
import { showsColour } from '../output/prefix.js'
import { portRange } from './arguments.js'
import { type CommandContext, command } from './context.js'

export function doctorCommand({ around, exitWith }: CommandContext): Command {
  return command('doctor', 'look at this machine: what will work here, and what to do about the rest', HELP)
    .option('--ports <from-to>', 'look whether these can be listened on, too', portRange)
    .option('--bind <address>', 'where (default: loopback)')
    .option('--json', 'an array of { name, verdict, found, means, todo }')
    .action(async ({ json, ...options }: DoctorOptions & { readonly json?: true }) => {
      const found: Finding[] = []
      const isColoured = showsColour(undefined, around.stdout.isTTY, around.env)
      for await (const finding of findings(options, around)) {
        found.push(finding)
        if (json === undefined) around.stdout.write(findingText(finding, NAME_WIDTH, isColoured))
      }
      if (json !== undefined) around.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
      exitWith(found.some(({ verdict }) => verdict === 'fail') ? EXIT.failed : EXIT.done)
    })
}

const HELP = `
Examples:
  $ postgrad doctor
  $ postgrad doctor --ports 29500-29599 --json

'fail' will stop a program, 'warn' may. Exit code 1: something fails; 0: nothing does.`
