/**
 * `npm run bench -- --operations`: some 250 operations and layers, on one thread or as many as `--threads` says, next to PyTorch with the kernels that fit the processor, PyTorch held
 * to 128-bit kernels as WebAssembly is, and the WebAssembly backends of tfjs and jax-js.
 */
import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type DeviceSpec, memoryScope, setComputeThreads, withDevice } from 'postgrad'
import { median } from '../row.js'
import { type AsyncWork, type Jax, jaxRows } from './jax-rows.js'
import { minima, type Timed } from './measure.js'
import { operationRows, type Work } from './rows.js'
import { type Tf, tfjsRows } from './tfjs-rows.js'
import { TorchRows } from './torch-rows.js'

export interface OperationSettings {
  readonly json: boolean
  readonly peers: boolean
  readonly only: readonly string[]
  readonly turns: number
  /** The device whose kernels postgrad uses. */
  readonly device: string
  /** How many threads postgrad and PyTorch compute with; the other peers have one. */
  readonly threads: number
}

/** Of `ratio`: postgrad's time by PyTorch's with the kernels that fit, and by PyTorch's with 128 bits. */
export interface OperationFigures {
  readonly name: string
  readonly ours: number
  readonly torch: number | null
  readonly narrow: number | null
  readonly tfjs: number | null
  readonly jax: number | null
}

const FEW = 2

export async function measureOperations(settings: OperationSettings, say: (line: string) => void): Promise<OperationFigures[] | null> {
  const { json, only, turns, threads } = settings
  const device = settings.device as DeviceSpec
  const rows = operationRows()
  const figures: OperationFigures[] = []
  let peers = NO_PEERS
  setComputeThreads(threads)
  try {
    for (;;) {
      const next = withDevice(device, () => rows.next())
      if (next.done === true) break
      // The heap gives a turn of the event loop a limited amount, and rows that are left out take theirs, too.
      await setImmediate()
      const [name, work] = next.value
      if (!only.some((part) => name.includes(part))) continue
      if (figures.length === 0) {
        if (settings.peers) peers = await startPeers(threads, say)
        if (!json) console.log(HEAD)
      }
      const contestants: Partial<Record<keyof OperationFigures, Timed>> = {
        ours: repeat(scoped(work), (run) => withDevice(device, run)),
      }
      const { torch, narrow, tfjs, jax } = peers
      if (torch?.names.has(name)) contestants.torch = (times) => torch.run(name, times)
      if (narrow?.names.has(name)) contestants.narrow = (times) => narrow.run(name, times)
      if (tfjs?.has(name)) contestants.tfjs = repeat(tfjs.get(name)!)
      if (jax?.has(name)) contestants.jax = repeatAsync(jax.get(name)!)
      const best = await minima(Object.values(contestants), turns, threads)
      const measured = Object.fromEntries(Object.keys(contestants).map((key, i) => [key, best[i]]))
      const row: OperationFigures = { name, ours: 0, torch: null, narrow: null, tfjs: null, jax: null, ...measured }
      figures.push(row)
      console.log(json ? JSON.stringify(row) : rowText(row))
    }
  } finally {
    peers.torch?.close()
    peers.narrow?.close()
    setComputeThreads(1)
  }
  if (figures.length === 0) return null
  if (!json) for (const line of summary(figures)) console.log(line)
  return figures
}

interface Peers {
  readonly torch: TorchRows | null
  readonly narrow: TorchRows | null
  readonly tfjs: ReadonlyMap<string, Work> | null
  readonly jax: ReadonlyMap<string, AsyncWork> | null
}

const NO_PEERS: Peers = { torch: null, narrow: null, tfjs: null, jax: null }

async function startPeers(threads: number, say: (line: string) => void): Promise<Peers> {
  const orNull = async <T>(name: string, start: () => Promise<T>): Promise<T | null> => {
    try {
      return await start()
    } catch (error) {
      say(`${name}: ${(error as Error).message.split('\n')[0]}, so its column is empty`)
      return null
    }
  }
  const require = createRequire(new URL('../../peers/package.json', import.meta.url))
  const torch = await orNull('PyTorch', () => TorchRows.start(threads, false))
  const narrow = torch === null ? null : await orNull('PyTorch, 128 bits', () => TorchRows.start(threads, true))
  if (torch !== null)
    say(`PyTorch ${torch.version}: OpenBLAS takes the kernels of ${torch.core}; held to 128 bits, those of ${narrow?.core}`)
  const tfjs = await orNull('tfjs', async () => {
    const tf = require('@tensorflow/tfjs-core') as Tf & { setBackend(name: string): Promise<boolean> }
    const backend = require('@tensorflow/tfjs-backend-wasm') as { setWasmPaths(path: string): void; setThreadsCount(n: number): void }
    backend.setThreadsCount(1)
    backend.setWasmPaths(new URL('.', pathToFileURL(require.resolve('@tensorflow/tfjs-backend-wasm'))).pathname)
    if (!(await tf.setBackend('wasm'))) throw new Error('its wasm backend does not start')
    return tfjsRows(tf)
  })
  const jax = await orNull('jax-js', async () => jaxRows((await import(pathToFileURL(require.resolve('@jax-js/jax')).href)) as Jax))
  return { torch, narrow, tfjs, jax }
}

/** The temporaries of a row go when its work is done. */
function scoped(work: Work): Work {
  return () => memoryScope(() => void work())
}

function repeat(work: Work, within: (run: () => number) => number = (run) => run()): Timed {
  return async (times) =>
    within(() => {
      const start = performance.now()
      for (let i = 0; i < times; i++) work()
      return (performance.now() - start) / 1000
    })
}

function repeatAsync(work: AsyncWork): Timed {
  return async (times) => {
    const start = performance.now()
    for (let i = 0; i < times; i++) await work()
    return (performance.now() - start) / 1000
  }
}

const COLUMNS: readonly (readonly [title: string, key: 'torch' | 'narrow' | 'tfjs' | 'jax'])[] = [
  ['PyTorch', 'torch'],
  ['128 bits', 'narrow'],
  ['tfjs', 'tfjs'],
  ['jax-js', 'jax'],
]
const NAME_WIDTH = 44
const HEAD = `µs${' '.repeat(NAME_WIDTH - 2)}${'postgrad'.padStart(10)}${COLUMNS.map(([title]) => `${title.padStart(11)}${'ratio'.padStart(8)}`).join('')}`

function rowText(row: OperationFigures): string {
  const cells = COLUMNS.map(([, key]) => {
    const value = row[key]
    return value === null ? ' '.repeat(19) : `${number(value).padStart(11)}${(row.ours / value).toFixed(2).padStart(8)}`
  })
  return `${row.name.padEnd(NAME_WIDTH)}${number(row.ours).padStart(10)}${cells.join('')}`
}

/** For each peer: the median of the ratios, how many are over 2, and how many are below 1. */
export function summary(figures: readonly OperationFigures[]): string[] {
  return COLUMNS.flatMap(([title, key]) => {
    const ratios = figures.flatMap((row) => (row[key] === null ? [] : [row.ours / row[key]]))
    if (ratios.length === 0) return []
    const slow = ratios.filter((r) => r > FEW).length
    const fast = ratios.filter((r) => r < 1).length
    return [`${title}: ${ratios.length} rows, median ratio ${median(ratios).toFixed(2)}, over ${FEW}: ${slow}, faster than it: ${fast}`]
  })
}

function number(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3)
}
