/**
 * Cuts a chain into units that run one after the other: kernels of one step each, and between them steps that are computed together in registers (`Lanes`). Of a chain
 * of cheap steps around a polynomial, two units of lanes are left, and the polynomial's kernel.
 */
import type { DType } from '../../values/dtype.js'
import type { ChainProgram, DirectKernels } from '../table/chain.js'

/** The numbers of its steps. Of one step: its kernel. */
export type Unit = readonly number[]

/** Without direct kernels each step is a unit. */
export function unitsOf(program: ChainProgram, direct: DirectKernels | null): readonly Unit[] {
  const { sources, steps } = program
  if (direct === null) return steps.map((_, i) => [i])
  const dtypes: DType[] = [...sources.map(({ dtype }) => dtype), ...steps.map(({ made }) => made)]
  const first = sources.length
  const isOfLanes = steps.map((step) => {
    const from = step.operands.map((at) => dtypes[at]!)
    // In lanes, one element for all is a number.
    return direct.isOfLanes(step, from) && step.operands.every((at, k) => at >= first || from[k] !== 'bool' || sources[at]!.period > 1)
  })
  const levels = levelsOf(program, isOfLanes)
  const units: Unit[] = []
  for (let level = 0; level <= Math.max(...levels); level++) {
    const here = steps.flatMap((_, i) => (levels[i] === level ? [i] : []))
    units.push(
      ...cut(
        program,
        here.filter((i) => isOfLanes[i]),
      ),
    )
    for (const i of here) if (!isOfLanes[i]) units.push([i])
  }
  return units
}

/**
 * In a level, lanes come first, then kernels in their order. Steps of lanes come as late as the first unit that reads them, so that their results are not written for
 * later levels. Kernels keep their level: they write their results in any case, and lanes of the same level, which come first, could not read them.
 */
function levelsOf({ sources, steps }: ChainProgram, isOfLanes: readonly boolean[]): number[] {
  const first = sources.length
  const levels: number[] = []
  const latest = steps.map(() => Number.POSITIVE_INFINITY)
  for (const [i, { operands }] of steps.entries()) {
    let level = 0
    for (const at of operands)
      if (at >= first) level = Math.max(level, levels[at - first]! + Number(isOfLanes[i] && !isOfLanes[at - first]))
    levels.push(level)
  }
  for (let i = steps.length - 1; i >= 0; i--) {
    if (isOfLanes[i] && latest[i] !== Number.POSITIVE_INFINITY) levels[i] = latest[i]!
    for (const at of steps[i]!.operands) if (at >= first) latest[at - first] = Math.min(latest[at - first]!, levels[i]!)
  }
  return levels
}

/** Steps of one unit of lanes: the registers are few, and the rest of the values lie on the stack. */
const STEPS_MAX = 64
/** Large tensors that a unit of lanes reads and writes. Measured: of 14 a step takes 18 µs for 262,144 elements, of 31 it takes 38. */
const STREAMS_MAX = 24

/** Lanes in their order, as units of not too many steps and streams. */
function cut({ sources, steps, outputs }: ChainProgram, lanes: readonly number[]): Unit[] {
  if (lanes.length <= STEPS_MAX && lanes.length + sources.length + outputs.length <= STREAMS_MAX) return lanes.length > 0 ? [lanes] : []
  const first = sources.length
  // How many operands of later steps each step is; one that is written stays open.
  const uses = steps.map(() => 0)
  for (const { operands } of steps) for (const at of operands) if (at >= first) uses[at - first]!++
  for (const i of outputs) uses[i] = Number.POSITIVE_INFINITY
  const units: number[][] = []
  let unit: number[] = []
  let read = new Set<number>()
  let open = new Set<number>()
  for (const i of lanes) {
    const from = steps[i]!.operands
    const news = new Set(from.filter((at) => (at < first ? sources[at]!.period > 1 : !unit.includes(at - first)) && !read.has(at)))
    if (unit.length > 0 && (unit.length === STEPS_MAX || read.size + news.size + open.size + 1 > STREAMS_MAX)) {
      units.push(unit)
      ;[unit, read, open] = [[], new Set(), new Set()]
      for (const at of from) if (at >= first || sources[at]!.period > 1) read.add(at)
    } else for (const at of news) read.add(at)
    for (const at of from) if (at >= first && --uses[at - first]! === 0) open.delete(at - first)
    unit.push(i)
    open.add(i)
  }
  if (unit.length > 0) units.push(unit)
  return units
}
