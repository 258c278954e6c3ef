/**
 * How the units of a chain read its sources: as they lie, one number for each run of a column, or laid out in scratch, as often repeated as the chain repeats them.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import type { ChainProgram, ChainSource, DirectKernels, Form } from '../table/chain.js'
import type { Operand } from '../table/operands.js'
import { BLOCK, LONG_BLOCK } from './scratch.js'
import type { Unit } from './units.js'

/** From so long a run on, lanes are called for each run. Measured: of 256 elements, it costs less to repeat the number in scratch; of 512, as much. */
const LONG_RUN = 512

export function isLongRun({ dtype, period, run }: ChainSource): boolean {
  return dtype === 'float32' && period > 1 && run >= LONG_RUN
}

/** Whether the step is one for lanes by what it reads, even where it is the only one of its unit. */
export function readsRuns({ sources, steps }: ChainProgram, i: number, direct: DirectKernels): boolean {
  const step = steps[i]!
  const first = sources.length
  const from: readonly DType[] = step.operands.map((at) => sources[at]?.dtype ?? steps[at - first]!.made)
  return (
    step.operands.some((at) => at < first && isLongRun(sources[at]!)) &&
    from.every((dtype) => dtype === 'float32') &&
    direct.isOfLanes(step, from)
  )
}

/** The operands that a kernel may read as one element for all. */
const TAKES_SINGLE: Readonly<Record<Form, readonly boolean[]>> = {
  unary: [false],
  conversion: [false],
  binary: [true, true],
  compare: [true, true],
  grad: [true, false],
  choice: [false, true, true],
}

/** Whether it is one step, which its kernel computes as well. */
export function computesWhole({ n, sources, steps }: ChainProgram): boolean {
  if (steps.length > 1) return false
  const { form, operands } = steps[0]!
  return operands.every((at, k) => sources[at]!.period === n || (sources[at]!.period === 1 && TAKES_SINGLE[form][k]))
}

/** The sources of one element that a kernel reads where it takes none. */
export function singlesOfKernels({ sources, steps }: ChainProgram, units: readonly Unit[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const unit of units) {
    if (unit.length > 1) continue
    const { form, operands } = steps[unit[0]!]!
    for (const [k, at] of operands.entries()) if (sources[at]?.period === 1 && !TAKES_SINGLE[form][k]) found.add(at)
  }
  return found
}

/** So many elements of scratch stay in the second-level cache. */
const SCRATCH_ELEMENTS = 8 * LONG_BLOCK

/** Sources that are repeated are laid out in scratch: of many, the blocks are shorter. */
export function longBlockOf({ n, sources }: ChainProgram): number {
  const repeated = sources.filter(({ period }) => period > 1 && period < n).length
  return Math.min(LONG_BLOCK, Math.max(BLOCK, Math.floor(SCRATCH_ELEMENTS / Math.max(1, repeated))))
}

/** A view costs as much as copying so many elements. */
const FEW = 64

/** Lays out `count` elements of a source, of which `x` has each once, from element `start` of the chain on. */
export function layOut(
  source: ChainSource,
  x: Operand,
  target: TypedArray,
  start: number,
  count: number,
  direct: DirectKernels | null,
): void {
  const { period, run } = source
  const from = x.storage.host!
  // Later elements repeat these.
  const extent = Math.min(count, period * run)
  for (let i = 0; i < extent; ) {
    const inRun = (start + i) % run
    const place = Math.floor((start + i) / run) % period
    const at = x.offset + place
    // A part of a run, or whole runs up to the end of the source.
    const runs = inRun > 0 ? 0 : Math.min(period - place, Math.floor((extent - i) / run))
    const some = runs > 0 ? runs * run : Math.min(extent - i, run - inRun)
    if (runs > 1) fillRuns(from, at, runs, run, target, i, direct)
    else target.fill(from[at]!, i, i + some)
    i += some
  }
  for (let done = extent; done < count; done *= 2) target.copyWithin(done, 0, Math.min(done, count - done))
}

/** Writes `n` elements of `from` to `target`, each `run` times. */
function fillRuns(
  from: TypedArray,
  at: number,
  n: number,
  run: number,
  target: TypedArray,
  to: number,
  direct: DirectKernels | null,
): void {
  if (run === 1 && n >= FEW) target.set(from.subarray(at, at + n), to)
  else if (run === 1) for (let k = 0; k < n; k++) target[to + k] = from[at + k]!
  else if (direct === null) for (let k = 0; k < n; k++) target.fill(from[at + k]!, to + k * run, to + (k + 1) * run)
  else {
    // The elements go to the end of their runs. From there the kernel repeats them: it has read an element before it writes a run over its place.
    const end = to + n * (run - 1)
    target.set(from.subarray(at, at + n), end)
    const { byteOffset, BYTES_PER_ELEMENT: bytes } = target
    direct.fillRuns(bytes, n, run, byteOffset + end * bytes, byteOffset + to * bytes)
  }
}
