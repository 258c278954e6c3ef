/** Settings: the command line of `npm run bench`, read and checked. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

export const HELP = `Usage: npm run bench -- [options]

Each row warms alike: ours and its limit do their work 3,000 times, or for 20 s, before they are measured. The column first has what the first 100
times cost. Workers that an earlier row of the same run has warmed are faster at once: for the cost of a new cluster give --only one row.

Options:
  --json         one JSON object a line: name, unit, ours, limit, peers, aim, met, warm (how often ours had done its work
                 before; 0: never), first (what the first 100 times cost) (use npm run --silent bench)
  --only NAME    rows whose name contains NAME; may be repeated
  --no-peers     us and the raw limits alone: ready seconds earlier
  --trace        below the rows of calls and numbers: where a further turn of ours spends its time on the two workers, by operation, kernel, node of
                 backward, call and wait. The tracer's own time is in it
  --turns N      turns per row; a figure is the median over them (default: 15; of plots and operations: 5)
  --operations   instead of rows: some 250 operations and layers, forward and backward, next to PyTorch with the kernels that fit the
                 processor, PyTorch held to 128-bit kernels, tfjs and jax-js; each figure is the minimum over the turns. Ten minutes
  --threads N    of --operations: how many threads ours and PyTorch compute with (default: 1); tfjs and jax-js have one
  --device NAME  of --operations: whose kernels are ours, such as blas (default: cpu)
  --plots        instead of rows: how the cost of a pass grows, as pictures with their figures, in some four minutes; --only chooses among them by name
  --heap MINUTES instead of rows: do the shared heap and the process's memory stay flat while four workers send each other tensors of mixed sizes?
                 Prints a sample now and then, and the slope of the last half; with --plots a picture with its figures, heap.svg and heap.json
  --seed N       of the sizes and lifetimes of --heap (default: 1)
  --out FOLDER   where the pictures go (default: docs/plots in the repository)
  --help         print this`
const ROW_TURNS = 15
const [PLOT_TURNS, OPERATION_TURNS] = [5, 5]
const PLOTS = fileURLToPath(new URL('../../../docs/plots', import.meta.url))

/** A command line that makes no sense. */
export class UsageError extends Error {}

export interface Settings {
  readonly json: boolean
  /** Whether PyTorch and others are measured, too. */
  readonly peers: boolean
  readonly only: readonly string[]
  readonly turns: number
  /** Whether each row says where its time goes. */
  readonly trace: boolean
  readonly operations: boolean
  /** Of `--operations`. */
  readonly device: string
  /** Of `--operations`, too. */
  readonly threads: number
  readonly plots: boolean
  /** Of `--heap`; null: it was not asked for. */
  readonly minutes: number | null
  readonly seed: number
  /** Where pictures go. */
  readonly folder: string
}

/** Null: help was asked for. @throws UsageError, TypeError of parseArgs */
export function readSettings(argv: readonly string[]): Settings | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      json: { type: 'boolean', default: false },
      'no-peers': { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [''] },
      turns: { type: 'string' },
      trace: { type: 'boolean', default: false },
      operations: { type: 'boolean', default: false },
      device: { type: 'string' },
      threads: { type: 'string' },
      plots: { type: 'boolean', default: false },
      heap: { type: 'string' },
      seed: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const { json, only, operations, plots, out, trace } = values
  if (operations && (plots || trace || values.heap !== undefined))
    throw new UsageError('--operations: goes without --plots, --trace and --heap')
  if (!operations && values.device !== undefined) throw new UsageError('--device: goes with --operations')
  if (!operations && values.threads !== undefined) throw new UsageError('--threads: goes with --operations')
  const device = values.device ?? 'cpu'
  const threads = Number(values.threads ?? 1)
  if (!Number.isInteger(threads) || threads < 1) throw new UsageError(`--threads: expected a whole number from 1, got '${values.threads}'`)
  const turns = values.turns === undefined ? (plots ? PLOT_TURNS : operations ? OPERATION_TURNS : ROW_TURNS) : Number(values.turns)
  if (!Number.isInteger(turns) || turns < 1) throw new UsageError(`--turns: expected a whole number from 1, got '${values.turns}'`)
  if (!plots && out !== undefined) throw new UsageError('--out: goes with --plots')
  const peers = !values['no-peers']
  if (!peers && (plots || values.heap !== undefined)) throw new UsageError('--no-peers: goes with rows')
  if (trace && (json || plots || values.heap !== undefined)) throw new UsageError('--trace: goes with rows that are read as a table')
  if (plots && json) throw new UsageError('--json: the plots write their figures beside the pictures')
  const minutes = values.heap === undefined ? null : Number(values.heap)
  if (minutes !== null && !(minutes > 0)) throw new UsageError(`--heap: expected a number of minutes above 0, got '${values.heap}'`)
  const seed = Number(values.seed ?? 1)
  if (!Number.isSafeInteger(seed)) throw new UsageError(`--seed: expected a whole number, got '${values.seed}'`)
  if (minutes === null && values.seed !== undefined) throw new UsageError('--seed: goes with --heap')
  const folder = out === undefined ? PLOTS : resolve(out)
  return { json, peers, only, turns, trace, operations, device, threads, plots, minutes, seed, folder }
}
