/** `postgrad example`: lists the examples that come with the package, runs one, and says where its sources are. */
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { type Example, readExamples } from '../example/catalog.js'
import { EXIT } from '../exit-codes.js'
import { nameLines } from '../output/name-lines.js'
import { similarNames } from '../similar.js'
import { type CommandContext, command } from './context.js'

const LIKE_MIN = 2
const SHOW_CURSOR = '\x1b[?25h'

interface Options {
  readonly source?: true
  readonly json?: true
  readonly help?: true
}

export function exampleCommand({ around, exitWith }: CommandContext): Command {
  const { stdout, stderr } = around
  const own = command('example', 'run one of the examples that come with the package, or list them', HELP)
    .argument('[name]', 'rl, say; without a name it lists all')
    .argument('[options...]', 'of the example')
    .option('--source', "print the folder with the example's sources")
    .option('--json', 'the list as an array of { name, shows, source }; after a name, of that example alone')
    // After a name, options are the example's.
    .helpOption(false)
    .option('-h, --help', 'print this help; after a name, the options of that example')
    .allowUnknownOption()
  return own.action(async (name: string | undefined, args: readonly string[], { source, json, help }: Options) => {
    const examples = readExamples()
    if (help && (name === undefined || name.startsWith('-'))) return void stdout.write(own.helpInformation() + HELP_AFTER)
    if (examples.size === 0) {
      stderr.write('postgrad example: the examples are missing in this installation. Install postgrad again.\n')
      return exitWith(EXIT.failed)
    }
    if (name === undefined && json) return void stdout.write(jsonOf([...examples.values()]))
    if (name === undefined) return void stdout.write(`${nameLines([...examples.values()].map(({ name, shows }) => [name, shows]))}${NEXT}`)
    const example = examples.get(name)
    if (example === undefined) {
      stderr.write(unknownText(name, args, [...examples.keys()]))
      return exitWith(EXIT.usage)
    }
    if (json) return void stdout.write(jsonOf([example]))
    if (source) return void stdout.write(`${example.source}\n`)
    exitWith(await run(example, help ? [...args, '--help'] : args))
  })

  /** In this process, as if `node` had been called with it. */
  async function run({ main }: Example, args: readonly string[]): Promise<number> {
    // A second Ctrl-C ends the process while a progress bar hides the cursor.
    const stop = around.onExit(() => void (stdout.isTTY && stdout.write(SHOW_CURSOR)))
    process.argv = [process.execPath, main, ...args]
    await import(pathToFileURL(main).href)
    stop()
    return Number(process.exitCode ?? EXIT.done)
  }
}

function jsonOf(examples: readonly Example[]): string {
  const listed = examples.map(({ name, shows, source }): Omit<Example, 'main'> => ({ name, shows, source }))
  return `${JSON.stringify(listed, null, 2)}\n`
}

function unknownText(name: string, args: readonly string[], names: readonly string[]): string {
  if (name.startsWith('-')) {
    const example = args.find((arg) => names.includes(arg))
    const rest = args.filter((arg) => arg !== example)
    const line = example === undefined ? '<name> [options]' : [example, name, ...rest].join(' ')
    return `postgrad example: the options of an example come after its name: postgrad example ${line}\n`
  }
  const similar = similarNames(name, names, LIKE_MIN)
  return `postgrad example: unknown example '${name}'. ${similar.length > 0 ? `Similar: ${similar.join(', ')}. ` : ''}'postgrad example' lists all.\n`
}

const NEXT = `
Run one: npx postgrad example rl
Its options: npx postgrad example rl --help
`

const HELP = `
Examples:
  $ postgrad example                   lists all
  $ postgrad example rl                runs one
  $ postgrad example rl --help         its options
  $ postgrad example rl --observers 2
  $ cp -r "$(postgrad example rl --source)" rl

An example writes its picture and its log into the folder out of the current folder, or where --out says.`

const HELP_AFTER = `\n${HELP.trim()}\n`
