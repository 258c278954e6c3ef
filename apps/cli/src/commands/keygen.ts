/** `postgrad keygen`: keys that processes of a cluster authenticate with. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { errorText } from '../error-text.js'
import { EXIT } from '../exit-codes.js'
import { type KeygenOptions, keyFiles, writeKeyFile } from '../keys/key-files.js'
import { type CommandContext, command } from './context.js'

export function keygenCommand({ around, exitWith }: CommandContext): Command {
  return command('keygen', 'make the keys by which the processes of a cluster know each other', HELP)
    .option('-r, --role <names...>', 'the roles; a process that uses the file has the first', ['member'])
    .option('--out <file>', 'where they go', 'postgrad.key')
    .option('-f, --force', 'replace a file that is there')
    .action((options: KeygenOptions & { readonly force?: true }) => {
      try {
        for (const { path, text, role } of keyFiles(options, randomBytes)) {
          writeKeyFile(path, text, options.force === true)
          around.stdout.write(`${path}: ${role === null ? 'all keys' : `the key of role '${role}' alone`}\n`)
        }
      } catch (error) {
        around.stderr.write(errorText(error, null))
        exitWith(EXIT.usage)
      }
    })
}

const HELP = `
Examples:
  $ postgrad keygen --out cluster.key
  $ postgrad keygen --role member observer --out cluster.key

Copy the file to every machine, readable by its owner alone, and pass it as --key cluster.key. A process that has the key of a role can be
in that role: with several roles there is also a file for each further one, cluster.observer.key, with its own key alone.`
