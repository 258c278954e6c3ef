/**
 * `npm run bench`: ratios, not records. Every row measures us, the raw limit and the peers in one run, in turns, and prints a table, or with
 * --json one object a line.
 */
import { parseArgs } from 'node:util'
import { launch } from 'postgrad'
import { touchMemory } from './numbers.js'
import { comlinkPair } from './peers/comlink-peer.js'
import { simdPeak } from './peers/peak.js'
import { TfjsPeer } from './peers/tfjs.js'
import { LazyTorch, TorchPeer } from './peers/torch-peer.js'
import { callRows } from './plans/calls.js'
import { clusterRows } from './plans/cluster.js'
import { numberRows } from './plans/numbers.js'
import type { TorchWork } from './plans/plan.js'
import { RlStage, rlRows } from './plans/rl.js'
import { rawPair } from './raw.js'
import { measure, type Row } from './row.js'
import { rowText, tableHead } from './table.js'

const HELP = `Usage: npm run bench -- [options]

Options:
  --json         one JSON object a line: name, unit, ours, limit, peers, aim, met (use npm run --silent bench)
  --only NAME    rows whose name contains NAME
  --turns N      turns per row; a figure is the median over them (default: 15)
  --help         print this`
const EXIT_USAGE = 2

/** A command line that makes no sense. */
class UsageError extends Error {}

async function bench({ json, only, turns }: { json: boolean; only: string; turns: number }): Promise<void> {
  const say = (line: string) => process.stderr.write(`${line}\n`)
  await using cluster = await launch(new URL('./numbers.js', import.meta.url), { workers: ['worker0', 'worker1'] })
  const worker0 = cluster.on('worker0')
  await worker0.run(touchMemory)
  const [torch, tfjs, peak] = [await TorchPeer.start(say), await TfjsPeer.start(say), await simdPeak()]
  const raw = rawPair()
  const comlink = comlinkPair()
  const stage = new RlStage()
  const rlTorch = torch === null ? null : new LazyTorch(say, torch.version)
  try {
    const withTorch: TorchWork = (name, share, ...args) =>
      torch === null ? {} : { [`pytorch ${torch.version}`]: { run: torch.work(name, ...args), share } }
    const plans = [
      ...callRows(worker0, raw, comlink, withTorch),
      ...numberRows(worker0, peak, tfjs, withTorch),
      ...clusterRows(withTorch),
      ...rlRows(stage, raw, rlTorch),
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
    await Promise.all([raw.close(), comlink.close(), stage.close(), torch?.close(), rlTorch?.close()])
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
