/**
 * `npm run bench`: ratios, not records. Every row measures us, the raw limit and the peers in one run, in turns, and prints a table, or with
 * --json one object a line.
 */
import { parseArgs } from 'node:util'
import { launch } from 'postgrad'
import { comlinkPair } from './comlink-peer.js'
import * as program from './program.js'
import { rawPair } from './raw.js'
import { measure, type Row, type RowPlan } from './row.js'
import { rowText, tableHead } from './table.js'
import { TorchPeer } from './torch-peer.js'

const HELP = `Usage: npm run bench -- [options]

Options:
  --json         one JSON object a line: name, unit, ours, limit, peers, aim, met (use npm run --silent bench)
  --only NAME    rows whose name contains NAME
  --turns N      turns per row; a figure is the median over them (default: 15)
  --help         print this`
const EXIT_USAGE = 2

const microseconds = (seconds: number, n: number) => (seconds / n) * 1e6

/** A command line that makes no sense. */
class UsageError extends Error {}

async function bench({ json, only, turns }: { json: boolean; only: string; turns: number }): Promise<void> {
  const say = (line: string) => process.stderr.write(`${line}\n`)
  await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['worker0', 'worker1'] })
  const worker0 = cluster.on('worker0')
  const torch = await TorchPeer.start(say)
  const raw = rawPair()
  const comlink = comlinkPair()
  try {
    const withTorch = (name: string, share: number) =>
      torch === null ? {} : { [`pytorch ${torch.version}`]: { run: torch.work(name), share } }
    const plans: RowPlan[] = [
      {
        name: 'round trip of an empty call',
        unit: 'µs',
        n: 2000,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(program.roundTrip, n),
        limit: raw.roundTrip,
        peers: { comlink: { run: comlink.roundTrip }, ...withTorch('round_trip', 0.1) },
        aim: (limit) => 1.5 * limit,
      },
      {
        name: 'pipelined calls',
        unit: 'calls/s',
        n: 50_000,
        figure: (seconds, n) => n / seconds,
        higherIsBetter: true,
        ours: (n) => worker0.run(program.pipelined, n),
        limit: raw.pipelined,
        peers: { comlink: { run: comlink.pipelined, share: 0.2 }, ...withTorch('pipelined', 0.04) },
        aim: () => 300_000,
      },
      {
        name: "the design note's whole pass",
        unit: 'µs',
        n: 500,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(program.designNote, n),
        limit: raw.roundTrip,
        peers: withTorch('design_note', 0.2),
        aim: (limit) => 5 * limit,
      },
      {
        name: 'backward of the ping-pong graph, per hop there and back',
        unit: 'µs',
        n: 200,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(program.pingPongBackward, n),
        limit: raw.roundTrip,
        peers: withTorch('ping_pong_backward', 0.5),
        aim: (limit) => 1.8 * limit,
      },
      {
        name: 'local forward per node, 3×3 adds',
        unit: 'µs',
        n: 2000,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(program.localForward, n),
        limit: (n) => worker0.run(program.additions, n),
        peers: withTorch('local_forward', 1),
        aim: () => 1,
      },
      {
        name: 'local backward per node, 3×3 adds',
        unit: 'µs',
        n: 2000,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(program.localBackward, n),
        limit: (n) => worker0.run(program.additions, n),
        peers: withTorch('local_backward', 1),
        aim: () => 1,
      },
    ]
    const chosen = plans.filter((plan) => plan.name.includes(only))
    if (chosen.length === 0)
      throw new UsageError(`--only: no row's name contains '${only}'; there are: ${plans.map((plan) => plan.name).join('; ')}`)
    if (!json) console.log(tableHead(torch === null ? null : torch.version))
    for (const plan of chosen) {
      const row: Row = await measure(plan, turns, () => {
        if (process.stderr.isTTY) process.stderr.write('.')
      })
      if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
      console.log(json ? JSON.stringify(row) : rowText(row))
    }
  } finally {
    await Promise.all([raw.close(), comlink.close(), torch?.close()])
  }
}

async function main(): Promise<number> {
  try {
    const { values } = parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        only: { type: 'string', default: '' },
        turns: { type: 'string', default: '15' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) {
      console.log(HELP)
      return 0
    }
    const turns = Number(values.turns)
    if (!Number.isInteger(turns) || turns < 1) throw new UsageError(`--turns: expected a whole number from 1, got '${values.turns}'`)
    await bench({ json: values.json, only: values.only, turns })
    return 0
  } catch (error) {
    const usage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
    console.error(usage ? `bench: ${(error as Error).message}\nTry: npm run bench -- --help` : error)
    return usage ? EXIT_USAGE : 1
  }
}

process.exitCode = await main()
