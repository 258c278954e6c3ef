/** The command line itself: commands, options, help. Commander below checks and explains them; `run-command.ts` does the work. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { type ReplayOptions, replay } from './replay-command.js'
import { type RunOptions, run, type Surroundings } from './run-command.js'

const DEVICES = ['wasm', 'gpujs', 'gpujs:cpu', 'gpujs:webasm', 'reference'] as const
/** For a command line that makes no sense, as shells have it. */
const EXIT_USAGE = 2

/** Runs a command line and gives the exit code of the process. */
export async function main(argv: readonly string[], version: string, around: Surroundings): Promise<number> {
  let exitCode = 0
  const cli = new Command('postgrad')
    .description('Distributed autograd on worker threads, from the command line.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError("(try 'postgrad --help')")
    .exitOverride()
    .configureOutput({ writeOut: (text) => around.stdout.write(text), writeErr: (text) => around.stderr.write(text) })
  cli
    .command('run')
    .showHelpAfterError("(try 'postgrad run --help')")
    .description("run a program's default export on every worker at once")
    .argument('<program>', 'JavaScript or TypeScript module; its default export is called with { name, rank, worldSize, args }')
    .argument('[args...]', 'passed to the program; write them behind --')
    .addOption(
      new Option('-w, --workers <count or names>', 'a count (worker0, worker1, …) or names: a,b,c (of one: a,)')
        .default(['worker0'], '1')
        .argParser(workerNames),
    )
    .addOption(new Option('-d, --device <device>', "where the workers' kernels run").choices(DEVICES).default('wasm'))
    .addOption(new Option('-s, --seed <number>', 'of all random numbers').argParser(integer).default(0))
    .addOption(new Option('-t, --timeout <ms>', 'how long the whole run may take; 0: no limit').argParser(milliseconds).default(0))
    .addOption(
      new Option('--rpc-timeout <ms>', 'how long a call between workers may take by default; 0: no limit')
        .argParser(milliseconds)
        .default(60_000),
    )
    .addOption(
      new Option('-g, --grace <ms>', 'how long workers may clean up after Ctrl-C, SIGTERM or a failure, before they are ended')
        .argParser(milliseconds)
        .default(500),
    )
    .addHelpText('after', HELP)
    .exitOverride()
    .action(async (program: string, args: readonly string[], options: RunOptions) => {
      exitCode = await run(program, args, options, around)
    })
  cli
    .command('replay')
    .description('repeat a simulated run of a program that failed, by the token that it printed')
    .argument('<token>', 'pg1.…, from the last line of the failed run; run where that was run')
    .option('--trace', 'print what happened in the run')
    .option('--diagram <file.svg>', 'draw what happened in the run')
    .addHelpText('after', REPLAY_HELP)
    .exitOverride()
    .action(async (token: string, options: ReplayOptions) => {
      exitCode = await replay(token, options, around)
    })
  try {
    await cli.parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has printed what it had to say; --help and --version arrive here as well, with 0.
    return error.exitCode === 0 ? 0 : EXIT_USAGE
  }
}

const REPLAY_HELP = `
Examples:
  $ postgrad replay pg1.4f0c2b19.q1YqLU…
  $ postgrad replay pg1.4f0c2b19.q1YqLU… --trace --diagram run.svg

The token is of a run of simulateProgram or of exploreProgram. For the run of a test, put
POSTGRAD_REPLAY=<token> in front of the command that runs the test. Exit code 1: the run failed again; 0: it passes now.`

const HELP = `
Examples:
  $ postgrad run program.ts --workers 4
  $ postgrad run program.ts --workers ps,trainer --seed 7 -- --epochs 3

A program:
  import { call, currentWorker, expose, reportProgress } from 'postgrad'

  const double = (x: number) => 2 * x
  expose({ double })

  export default async function main({ name, rank, worldSize, args }) {
    console.log(name, await call((rank + 1) % worldSize, double, [rank]))
    reportProgress({ done: 1, total: 1, text: 'done' })
  }

Ctrl-C ends the run: what main waits for rejects, so that its finally blocks run, and --grace says how long they may take. A second
Ctrl-C ends the process at once. A worker is done when main returns, or calls process.exit(0).`

function workerNames(text: string): readonly string[] {
  if (!/^\d+$/.test(text)) return namesIn(text)
  const count = Number(text)
  if (count < 1 || count > 65_536) throw new InvalidArgumentError('A cluster has 1 to 65536 workers.')
  return Array.from({ length: count }, (_, i) => `worker${i}`)
}

function namesIn(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.length === 1) throw new InvalidArgumentError(`Write a count (2), names (a,b), or one name with a comma behind it (${text},).`)
  return names.at(-1) === '' ? names.slice(0, -1) : names
}

function integer(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || text.trim() === '') throw new InvalidArgumentError('An integer is expected.')
  return value
}

function milliseconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0 || text.trim() === '') throw new InvalidArgumentError('A number of milliseconds is expected.')
  return value
}
