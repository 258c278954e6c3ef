/**
 * `npm run bench`: ratios, not records. It measures postgrad, the raw limit and the peers in one run, in turns, and prints a table, or with
 * --json one object a line.
 */
import { type Cluster, launch } from 'postgrad'
import { touchMemory } from './numbers.js'
import { PassStage } from './pass-stage.js'
import { comlinkPair } from './peers/comlink-peer.js'
import { simdPeak } from './peers/peak.js'
import { TfjsPeer } from './peers/tfjs.js'
import { LazyTorch, TorchPeer } from './peers/torch-peer.js'
import { callRows } from './plans/calls.js'
import { clusterRows } from './plans/cluster.js'
import { collectiveRows } from './plans/collectives.js'
import { dataParallelRows } from './plans/data-parallel.js'
import { modeRows } from './plans/modes.js'
import { numberRows } from './plans/numbers.js'
import { orderRows } from './plans/order.js'
import { passRows } from './plans/passes.js'
import { pipelineRows } from './plans/pipelines.js'
import type { TorchWork } from './plans/plan.js'
import { ProcessStage, processRows } from './plans/processes.js'
import { remoteStepRows } from './plans/remote-step.js'
import { RlStage, rlRows } from './plans/rl.js'
import { simulationRows } from './plans/simulation.js'
import { trainingRows } from './plans/training.js'
import { rawPair } from './raw.js'
import { measure, type Row, type RowPlan } from './row.js'
import { HELP, readSettings, type Settings, UsageError } from './settings.js'
import { rowText, tableHead } from './table.js'
import { beginTrace, endTrace, traceText } from './trace-totals.js'

const EXIT_USAGE = 2
const WORKERS = ['worker0', 'worker1']

async function bench({ json, peers, only, turns, trace }: Pick<Settings, 'json' | 'peers' | 'only' | 'turns' | 'trace'>): Promise<void> {
  const say = (line: string) => process.stderr.write(`${line}\n`)
  await using cluster = await launch(new URL('./numbers.js', import.meta.url), { workers: WORKERS })
  const worker0 = cluster.on('worker0')
  await worker0.run(touchMemory)
  const [torch, tfjs, peak] = [peers ? await TorchPeer.start(say) : null, peers ? await TfjsPeer.start(say) : null, simdPeak()]
  const raw = rawPair()
  const comlink = comlinkPair()
  const [passes, ordered, modes, stage] = [new PassStage(), new PassStage('order.js'), new PassStage('modes.js'), new RlStage()]
  const [ranks, ranksApart] = [new PassStage('collectives.js'), new PassStage('collectives.js', 2)]
  const [replicas, replicasApart] = [new PassStage('data-parallel.js'), new PassStage('data-parallel.js', 2)]
  const pipelines = new PassStage('pipeline-steps.js')
  const processes = new ProcessStage()
  const wideTorch = torch === null ? null : new LazyTorch(say, torch.version)
  try {
    const withTorch: TorchWork = (name, share, ...args) =>
      torch === null ? {} : { [`pytorch ${torch.version}`]: { run: torch.work(name, ...args), share } }
    // Of this cluster; the others start workers of their own.
    const here = [...callRows(worker0, raw, comlink, withTorch), ...numberRows(worker0, peak, tfjs, withTorch)]
    const plans = [
      ...here,
      ...clusterRows(withTorch),
      ...passRows(passes, raw, withTorch, wideTorch),
      ...orderRows(ordered),
      ...remoteStepRows(passes, raw, withTorch),
      ...modeRows(modes),
      ...trainingRows(passes, raw, withTorch, wideTorch),
      ...collectiveRows(ranks, ranksApart, withTorch, wideTorch),
      ...dataParallelRows(replicas, replicasApart, withTorch),
      ...pipelineRows(pipelines),
      ...rlRows(stage, raw, wideTorch),
      ...simulationRows(),
      ...processRows(processes, withTorch),
    ]
    const chosen = plans.filter((plan) => only.some((part) => plan.name.includes(part)))
    if (chosen.length === 0)
      throw new UsageError(
        `--only: no row's name contains '${only.join("' or '")}'; there are: ${plans.map((plan) => plan.name).join('; ')}`,
      )
    if (!json) console.log(tableHead(torch === null ? null : torch.version))
    for (const plan of chosen) {
      const row: Row = await measure(plan, turns, () => {
        if (process.stderr.isTTY) process.stderr.write('.')
      })
      if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
      console.log(json ? JSON.stringify(row) : rowText(row))
      if (trace && here.includes(plan)) await printTrace(cluster, plan)
    }
  } finally {
    await Promise.all([
      raw.close(),
      comlink.close(),
      passes.close(),
      ordered.close(),
      modes.close(),
      pipelines.close(),
      stage.close(),
      ranks.close(),
      ranksApart.close(),
      replicas.close(),
      replicasApart.close(),
      processes.close(),
      torch?.close(),
      wideTorch?.close(),
    ])
  }
}

/** A turn of ours again, with a reader on each worker. */
async function printTrace(cluster: Cluster, { ours, n }: RowPlan): Promise<void> {
  for (const worker of WORKERS) await cluster.on(worker).run(beginTrace)
  await ours(n)
  for (const worker of WORKERS) for (const line of traceText(worker, n, await cluster.on(worker).run(endTrace))) console.log(line)
}

async function draw(only: readonly string[], turns: number, folder: string): Promise<void> {
  // Loaded when it is needed: the charts take a while.
  const { writePlots } = await import('./plots/plots.js')
  const say = (line: string) => process.stderr.write(`${line}\n`)
  const measured = await writePlots({ folder, only, turns, say })
  if (measured.length === 0) throw new UsageError(`--only: no plot's name contains '${only.join("' or '")}'`)
}

async function operations(settings: Settings): Promise<void> {
  const { measureOperations } = await import('./operations/operations.js')
  const figures = await measureOperations(settings, (line) => process.stderr.write(`${line}\n`))
  if (figures === null) throw new UsageError(`--only: no operation's name contains '${settings.only.join("' or '")}'`)
}

async function watch(minutes: number, seed: number, folder: string | null): Promise<void> {
  const { watchHeap } = await import('./heap/watch.js')
  await watchHeap({ minutes, seed, folder, say: (line) => console.log(line) })
}

async function main(): Promise<number> {
  try {
    const settings = readSettings(process.argv.slice(2))
    if (settings === null) {
      console.log(HELP)
      return 0
    }
    const { only, turns, plots, minutes, seed, folder } = settings
    if (minutes !== null) await watch(minutes, seed, plots ? folder : null)
    else if (settings.operations) await operations(settings)
    else if (plots) await draw(only, turns, folder)
    else await bench(settings)
    return 0
  } catch (error) {
    const usage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true
    console.error(usage ? `bench: ${(error as Error).message}\nTry: npm run bench -- --help` : error)
    return usage ? EXIT_USAGE : 1
  }
}

process.exitCode = await main()
