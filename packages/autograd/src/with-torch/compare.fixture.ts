/** Differences of postgrad and PyTorch on a program of `builder.fixture.ts`, except those of `listed.fixture.ts`. */
import type { Program } from './builder.fixture.js'
import {
  type Difference,
  errorOf,
  familiesOf,
  HOOK_OF_CHECKPOINT,
  isCalledOtherwise,
  isHooked,
  isOfViewedView,
  isPass,
  isThroughCheckpoint,
  isThroughHookOfCheckpoint,
  keptOtherwise,
  listed,
} from './listed.fixture.js'
import { type Call, type Outcome, runProgram, type Seen } from './run.fixture.js'

const TOLERANCE = { float32: 1e-5, float64: 1e-9 }
/** A program whose numbers run away is compared no further: rounding decides it. */
const LARGEST = 1e5

/**
 * The first difference, or null.
 * @param note called with what KERNELS.md lists and after which the rest is compared all the same
 * @param tolerance relative to 1 + the largest number that the program has made: what cancels leaves the rounding of what was there before
 */
export function difference(
  program: Program,
  here: Outcome,
  there: Outcome,
  note: (kind: string) => void = () => {},
  tolerance = TOLERANCE[usesFloat32(program) ? 'float32' : 'float64'],
): Difference | null {
  let largest = 1
  const far = (a: readonly (number | null)[], b: readonly (number | null)[]) => {
    for (const v of b) if (v !== null && Math.abs(v) > largest) largest = Math.abs(v)
    return a.length !== b.length || a.some((v, i) => (v === null) !== (b[i] === null) || Math.abs(v! - b[i]!) > tolerance * (1 + largest))
  }
  const isWild = (seen: Seen) => seen.values.some((v) => v === null || Math.abs(v) > LARGEST)
  const unlike = (a: Seen, b: Seen): [what: string, text: string] | null => {
    if (far(a.values, b.values)) return ['values', `${a.values} and ${b.values}`]
    if (a.requiresGrad !== b.requiresGrad) return ['requiresGrad', `${a.requiresGrad} and ${b.requiresGrad}`]
    // PyTorch cannot say it of a view that it refuses to read.
    if (b.isLeaf !== null && a.isLeaf !== b.isLeaf) return ['isLeaf', `${a.isLeaf} and ${b.isLeaf}`]
    const [g, h] = [a.grad ?? null, b.grad ?? null]
    if (g?.some((v) => v === null) || h?.some((v) => v === null || Math.abs(v) > LARGEST)) return null
    if ((g === null) !== (h === null) || (g !== null && h !== null && far(g, h))) return ['grad', `${g} and ${h}`]
    return null
  }
  const families = familiesOf(program)
  let torch = there
  for (const [i, step] of program.steps.entries()) {
    const a = here.steps[i]!
    let b = torch.steps[i]!
    const refusals = isPass(step) ? ['modified', 'freed', 'view'] : ['modified', 'freed']
    if (errorOf(a) === null && refusals.includes(errorOf(b) ?? '') && torch.copied !== undefined) {
      note('PyTorch had saved what is not needed: compared with its copies')
      torch = torch.copied
      b = torch.steps[i]!
    }
    if (a === null && b === null) continue
    const errors = [errorOf(a), errorOf(b)]
    if (errors[0] !== errors[1]) {
      if (
        errors.every((error) => error !== null && error !== 'not compared') &&
        EITHER.some((kinds) => errors.every((error) => kinds.includes(error!)))
      ) {
        note('another error first')
        continue
      }
      if (errors[0] === 'modified' && torch !== there)
        return { kind: 'a pass over what was written, after one that PyTorch has refused', text: '', isListed: true }
      const known = listed(program, i, here, errors[1]!, torch !== there)
      if (known !== null) return { kind: known, text: '', isListed: true }
      const texts = [a, b].map((one) => (one !== null && 'error' in one ? one.text : 'fine'))
      return { kind: `${step.op}: ${errors[0] ?? 'fine'} here, ${errors[1] ?? 'fine'} there`, text: `step ${i}: ${texts.join(' | ')}` }
    }
    if (errors[0] !== null) continue
    const [made, expected] = [a, b] as [readonly (Seen | null)[], readonly (Seen | null)[]]
    const ofGrad = step.op === 'readGrad' ? keptOtherwise(program, families(step.args[0]!)) : null
    if (made.length !== expected.length && ofGrad !== null) return ofGrad
    if (made.length !== expected.length) return { kind: `${step.op}: number of results`, text: `step ${i}` }
    for (const [k, seen] of made.entries()) {
      const other = expected[k]!
      if (seen === null || other === null) {
        if (seen !== other && other === null && isOfViewedView(program, i, k))
          return { kind: 'the gradient of a view after a write', text: '', isListed: true }
        if (seen !== other && step.op === 'grad' && isThroughCheckpoint(program, i))
          return { kind: 'a second derivative through a checkpoint', text: '', isListed: true }
        if (seen !== other) return { kind: `${step.op}: a gradient is there or not`, text: `step ${i}, result ${k}` }
        continue
      }
      if (isWild(other)) return WILD
      const found = unlike(seen, other)
      if (
        found?.[0] === 'requiresGrad' &&
        step.op === 'grad' &&
        (other.requiresGrad || program.steps.slice(0, i).some(({ op }) => op === 'prod' || op === 'cumprod'))
      )
        return { kind: 'a gradient that depends on nothing has no history', text: '', isListed: true }
      if (found?.[0] === 'values' && ofGrad !== null) return ofGrad
      if (found?.[0] === 'values' && (isPass(step) || step.op === 'readGrad') && isThroughHookOfCheckpoint(program, i, 'double'))
        return HOOK_OF_CHECKPOINT
      if (found?.[0] === 'values' && step.op === 'grad' && isThroughCheckpoint(program, i))
        return { kind: 'a second derivative through a checkpoint', text: '', isListed: true }
      if (found?.[0] === 'values' && step.op === 'grad' && isHooked(program, families(step.args[k + 1]!)))
        return { kind: 'a hook of what grad asks for', text: '', isListed: true }
      if (found?.[0] === 'values' && step.op === 'grad' && isOfViewedView(program, i, k))
        return { kind: 'the gradient of a view after a write', text: '', isListed: true }
      if (found !== null) return { kind: `${step.op}: ${found[0]}`, text: `step ${i}, result ${k}: ${found[1]}` }
    }
  }
  for (const [id, seen] of Object.entries(here.end)) {
    const other = torch.end[Number(id)]
    if (other === undefined) return { kind: 'end: a tensor is there or not', text: `tensor ${id}` }
    if (isWild(other)) return WILD
    const found = unlike(seen, other)
    if (found?.[0] === 'grad') {
      const known = keptOtherwise(program, families(Number(id)))
      if (known !== null) return known
      if (isThroughHookOfCheckpoint(program, program.steps.length, 'double')) return HOOK_OF_CHECKPOINT
    }
    if (found !== null) return { kind: `end: ${found[0]}`, text: `tensor ${id}: ${found[1]}` }
  }
  for (const key of new Set([...Object.keys(here.hooks), ...Object.keys(torch.hooks)])) {
    const isCompared = (call: Call) => !isCalledOtherwise(program, Number(key), call.at)
    const [a, b] = [here, torch].map(({ hooks }) => (hooks[Number(key)] ?? []).filter(isCompared)) as [Call[], Call[]]
    if (a.length !== b.length || a.some((call, i) => call.at !== b[i]!.at || far(call.values, b[i]!.values)))
      return { kind: 'hook', text: `of step ${key}: ${JSON.stringify(a)} and ${JSON.stringify(b)}` }
  }
  return null
}

const WILD: Difference = { kind: 'its numbers ran away', text: '', isListed: true }

/** Which of two errors comes first is not the same. */
const EITHER = [
  ['modified', 'freed', 'view', 'no grad', 'retain', 'gradient', 'raised', 'unused', 'interior'],
  ['leaf', 'overlap', 'view', 'other'],
]

const usesFloat32 = ({ leaves, steps }: Program) =>
  leaves.some(({ dtype }) => dtype === 'float32') || steps.some(({ op, attrs }) => op === 'to' && attrs[0] === 'float32')

/**
 * Whether the rounding of float32 decides over a program: the difference is small, and postgrad differs from itself once the leaves have moved by a few of
 * their last bits.
 */
export function isRounding(program: Program, here: Outcome, there: Outcome): boolean {
  if (!usesFloat32(program) || difference(program, here, there, undefined, 100 * TOLERANCE.float32) !== null) return false
  const moved = program.leaves.map((leaf) => ({ ...leaf, data: leaf.data.map((v, i) => v * (1 + (i % 2 === 0 ? 1 : -1) * 2 ** -21)) }))
  return difference(program, here, runProgram({ ...program, leaves: moved })) !== null
}
