/** The options of `postgrad run`; `run/run-command.ts` does the work. */
import { type Command, Option } from 'commander'
import { EXIT_HELP } from '../exit-codes.js'
import { LAUNCHERS } from '../rendezvous/launcher-env.js'
import { run } from '../run/run-command.js'
import { MAX_RESTARTS, type RunOptions } from '../run/run-options.js'
import { hostPort, integer, integerFrom, milliseconds, portRange, timerMilliseconds, workers } from './arguments.js'
import { type CommandContext, command } from './context.js'

const DEVICES = ['wasm', 'js', 'blas'] as const

export function runCommand({ around, bridge, exitWith }: CommandContext): Command {
  return command('run', "run a program's default export on every worker at once", HELP)
    .argument('<program>', 'JavaScript or TypeScript module; its default export is called with { name, rank, worldSize, args }')
    .argument('[args...]', 'passed to the program; write them after --')
    .optionsGroup('Workers:')
    .addOption(
      new Option('-w, --workers <count or names>', 'a count (worker0, worker1, …) or names: a,b,c (of one: a,); default 1').argParser(
        workers,
      ),
    )
    .addOption(new Option('-d, --device <device>', "where the workers' kernels run").choices(DEVICES).default('wasm'))
    .addOption(new Option('-s, --seed <number>', 'of all random numbers').argParser(integer).default(0))
    .addOption(
      new Option('-t, --timeout <ms>', 'how long the whole run may take; 0: no limit')
        .argParser(timerMilliseconds(' Write 0 for no limit.'))
        .default(0),
    )
    .addOption(
      new Option('--rpc-timeout <ms>', 'how long a call between workers may take by default; 0: no limit')
        .argParser(milliseconds)
        .default(60_000),
    )
    .addOption(
      new Option('-g, --grace <ms>', 'how long workers may clean up after Ctrl-C, SIGTERM or a failure, before they are ended')
        .argParser(timerMilliseconds())
        .default(500),
    )
    .addOption(
      new Option('--restart <policy>', 'after a failure: nobody is started again, all workers are, or the one that failed')
        .choices(['none', 'all', 'failed'])
        .default('none'),
    )
    .addOption(new Option('--max-restarts <count>', `how often in a run; default ${MAX_RESTARTS}`).argParser(integerFrom(1)))
    .optionsGroup('Several processes:')
    .addOption(new Option('-p, --processes <count>', 'spread the workers over so many processes of this machine').argParser(integerFrom(1)))
    .addOption(new Option('--rank <number>', 'this process is one worker of several: which one, from 0').argParser(integerFrom(0)))
    .addOption(new Option('--world-size <count>', 'how many there are').argParser(integerFrom(1)))
    .addOption(new Option('--master <host:port>', 'where rank 0 is met').argParser(hostPort))
    .addOption(
      new Option('--launcher <name>', 'whose variables say rank, world size and master; none: of nobody')
        .choices(['auto', 'none', ...LAUNCHERS])
        .default('auto'),
    )
    .addOption(
      new Option(
        '--join-timeout <ms>',
        'how long workers may take to start (default 60000), or others to join (with --rank; default 300000); 0: no limit',
      ).argParser(milliseconds),
    )
    .addOption(
      new Option(
        '--bind <address>',
        'the address to listen on (default: loopback if the master is there, else all; then --key or --tls-… is needed)',
      ),
    )
    .addOption(new Option('--advertise <host>', 'the name or address by which others reach this machine'))
    .addOption(new Option('--ports <from-to>', 'the ports that may be listened on').argParser(portRange))
    .addOption(new Option('--key <file>', "a key that all processes have: see 'postgrad keygen'"))
    .addOption(new Option('--role <name>', 'the role of this process; default the first one of the key file'))
    .addOption(new Option('--tls-cert <file>', 'mutual TLS: the certificate of this process'))
    .addOption(new Option('--tls-key <file>', 'its private key'))
    .addOption(new Option('--tls-ca <file>', 'who signs the certificates of this cluster'))
    .addOption(new Option('--remote-stacks', 'errors show the other processes where in this process they arose (default)'))
    .addOption(new Option('--no-remote-stacks', 'they do not: stacks name files'))
    .optionsGroup('Output:')
    .addOption(
      new Option('-o, --output <form>', 'lines for people, or lines of JSON on stdout').choices(['plain', 'json']).default('plain'),
    )
    .addOption(new Option('--prefix', "'[worker0] ' before what workers print (default with several processes)"))
    .addOption(new Option('--no-prefix', 'nothing before it'))
    .addOption(new Option('--color', 'colours also if stdout is not a terminal'))
    .addOption(new Option('--no-color', 'no colours (as NO_COLOR)'))
    .addOption(new Option('--no-status', "hide this run from 'postgrad ps' and 'postgrad top'"))
    .action(async (program: string, args: readonly string[], options: RunOptions) => {
      exitWith(await run(program, args, options, around, bridge))
    })
}

const HELP = `
Examples:
  $ postgrad run program.ts --workers 4
  $ postgrad run program.ts --workers ps,trainer --seed 7 -- --epochs 3
  $ postgrad run program.ts --workers 4 --processes 2 --restart all
  $ postgrad run program.ts --rank 0 --world-size 2 --master node1:29500 --key cluster.key
  $ srun postgrad run program.ts --key cluster.key

A program:
  import { call, currentWorker, expose, reportProgress } from 'postgrad'

  const double = (x: number) => 2 * x
  expose({ double })

  export default async function main({ name, rank, worldSize, args }) {
    console.log(name, await call((rank + 1) % worldSize, double, [rank]))
    reportProgress({ done: 1, total: 1, text: 'done' })
  }

Ctrl-C ends the run: what main waits for rejects, so that its finally blocks run, and --grace says how long they may take. A second
Ctrl-C ends the process at once. A worker is done when main returns, or calls process.exit(0).

After a restart POSTGRAD_RESTART_COUNT in the environment of a worker says how many there have been: load the last checkpoint then.

Variables of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI, Slurm and Kubernetes' indexed jobs (with
POSTGRAD_WORLD_SIZE and POSTGRAD_MASTER) replace --rank, --world-size and --master; flags win.

${EXIT_HELP}`
