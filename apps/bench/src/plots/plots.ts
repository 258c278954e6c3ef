/** `--plots`: measures the sweeps, writes a picture and the figures of each. */
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { PassStage } from '../pass-stage.js'
import { LazyTorch, TorchPeer } from '../peers/torch-peer.js'
import { rawPair } from '../raw.js'
import { pictureOf } from './picture.js'
import { measureSweep, type Sweep, type SweepPlan } from './sweep.js'
import { sweepPlans } from './sweeps.js'

export interface PlotsOptions {
  readonly folder: string
  readonly turns: number
  readonly say: (line: string) => void
}

/** Those whose id contains one of `only`; gives their ids. */
export async function writePlots({ only, ...options }: PlotsOptions & { readonly only: readonly string[] }): Promise<string[]> {
  // How busy the machine was before it was busy with this.
  const load = loadavg()[0]!.toFixed(1)
  // Asked for its version, and whether it is there at all.
  const torch = await TorchPeer.start(options.say)
  const wide = torch === null ? null : new LazyTorch(options.say, torch.version)
  await torch?.close()
  const [stage, raw] = [new PassStage(), rawPair()]
  const day = new Date().toISOString().slice(0, 10)
  const machine = `${day}, ${availableParallelism()} cores, Node ${process.version.slice(1)}, load before ${load}`
  try {
    return await writeSweeps(
      sweepPlans(stage, raw, wide).filter(({ id }) => only.some((part) => id.includes(part))),
      machine,
      options,
    )
  } finally {
    await Promise.all([stage.close(), raw.close(), wide?.close()])
  }
}

/** Each into `ID.svg` and `ID.json`. */
export async function writeSweeps(plans: readonly SweepPlan[], machine: string, { folder, turns, say }: PlotsOptions): Promise<string[]> {
  await mkdir(folder, { recursive: true })
  for (const plan of plans) {
    const sweep = await measureSweep(plan, turns, (text) => {
      if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
    })
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
    const file = join(folder, plan.id)
    await writeFile(`${file}.svg`, pictureOf(sweep, machine))
    await writeFile(`${file}.json`, `${JSON.stringify({ machine, turns, ...sweep }, null, 1)}\n`)
    say(`${file}.svg: ${figuresOf(sweep)}`)
  }
  return plans.map(({ id }) => id)
}

const figuresOf = ({ series }: Sweep): string =>
  series.map(({ name, us }) => `${name} ${us.map((value) => (value === null ? '-' : value.toPrecision(3))).join(' ')} µs`).join('; ')
