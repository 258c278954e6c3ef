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
    const lanes = here.filter((i) => isOfLanes[i])
    if (lanes.length > 0) units.push(lanes)
    for (const i of here) if (!isOfLanes[i]) units.push([i])
  }
  return units
}

/** In a level, lanes come first, then kernels in their order. Steps of lanes come as late as they may, so that their results are not written for later levels. */
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
