/** Where postgrad and PyTorch differ over a program of `builder.fixture.ts`, and the smallest part of it over which they still do. */
import type { Program, Step } from './builder.fixture.js'
import type { Outcome, Seen } from './run.fixture.js'

/** Relative to 1 + the largest number that the program has made: what cancels leaves the rounding of what was there before. */
const TOLERANCE = { float32: 1e-5, float64: 1e-9 }
/** A program whose numbers run away is compared no further: rounding decides it. */
const LARGEST = 1e5

export interface Difference {
  /** What is different, without numbers: differences of one kind are counted together. */
  readonly kind: string
  readonly text: string
  /** KERNELS.md has it. */
  readonly isListed?: boolean
}

/** The first difference, or null. */
export function difference(program: Program, here: Outcome, there: Outcome): Difference | null {
  const tolerance = TOLERANCE[program.leaves.some(({ dtype }) => dtype === 'float32') || usesFloat32(program) ? 'float32' : 'float64']
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
  for (const [i, step] of program.steps.entries()) {
    const [a, b] = [here.steps[i]!, there.steps[i]!]
    if (a === null && b === null) continue
    const errors = [a, b].map((one) => (one !== null && 'error' in one ? one.error : null))
    if (errors[0] !== errors[1]) {
      const known = listed(program, i, a, errors[1]!)
      if (known !== null) return { kind: known, text: '', isListed: true }
      const texts = [a, b].map((one) => (one !== null && 'error' in one ? one.text : 'fine'))
      return { kind: `${step.op}: ${errors[0] ?? 'fine'} here, ${errors[1] ?? 'fine'} there`, text: `step ${i}: ${texts.join(' | ')}` }
    }
    if (errors[0] !== null) continue
    const [made, expected] = [a, b] as [readonly (Seen | null)[], readonly (Seen | null)[]]
    if (made.length !== expected.length) return { kind: `${step.op}: number of results`, text: `step ${i}` }
    for (const [k, seen] of made.entries()) {
      const other = expected[k]!
      if (seen === null || other === null) {
        if (seen !== other && other === null && writes(program.steps.slice(0, i)))
          return { kind: 'the gradient of a view after a write', text: '', isListed: true }
        if (seen !== other) return { kind: `${step.op}: a gradient is there or not`, text: `step ${i}, result ${k}` }
        continue
      }
      if (isWild(other)) return null
      const found = unlike(seen, other)
      if (found?.[0] === 'requiresGrad' && step.op === 'grad' && other.requiresGrad)
        return { kind: 'a gradient that depends on nothing has no history', text: '', isListed: true }
      if (found !== null) return { kind: `${step.op}: ${found[0]}`, text: `step ${i}, result ${k}: ${found[1]}` }
    }
  }
  for (const [id, seen] of Object.entries(here.end)) {
    const other = there.end[Number(id)]
    if (other === undefined) return { kind: 'end: a tensor is there or not', text: `tensor ${id}` }
    if (isWild(other)) return null
    const found = unlike(seen, other)
    if (found?.[0] === 'grad' && isRetainedBase(program, Number(id)))
      return { kind: 'retainGrad of what was written through a view', text: '', isListed: true }
    if (found !== null) return { kind: `end: ${found[0]}`, text: `tensor ${id}: ${found[1]}` }
  }
  for (const key of new Set([...Object.keys(here.hooks), ...Object.keys(there.hooks)])) {
    const [a, b] = [here.hooks[Number(key)] ?? [], there.hooks[Number(key)] ?? []]
    if (a.length !== b.length || a.some((seen, i) => far(seen, b[i]!)))
      return { kind: 'hook', text: `of step ${key}: ${JSON.stringify(a)} and ${JSON.stringify(b)}` }
  }
  return null
}

/** Which of two errors comes first is not the same. */
const EITHER = [
  ['modified', 'freed', 'view', 'no grad', 'retain', 'gradient'],
  ['leaf', 'overlap', 'view', 'other'],
]

/** What KERNELS.md lists of errors ("Differs from PyTorch in its graphs"); after it a program is compared no further. */
function listed(program: Program, at: number, here: Outcome['steps'][number], there: string | null): string | null {
  if (there === 'not compared') return 'not compared'
  const mine = here !== null && 'error' in here ? here.error : null
  const before = program.steps.slice(0, at)
  if (mine === 'modified' && before.some(({ op }) => op.startsWith('checkpoint:'))) return 'a checkpoint whose argument was written to'
  if (mine !== null && there !== null)
    return EITHER.some((kinds) => kinds.includes(mine) && kinds.includes(there)) ? 'another error first' : null
  if (mine === 'freed') return 'postgrad had saved something in a graph that is gone'
  if (there === 'detach') return 'detach_ of what PyTorch made a view'
  if (there === 'unused' && writes(before)) return 'the gradient of a view after a write'
  if (there === 'modified') return 'PyTorch had saved what is not needed'
  if (there === 'freed') return 'PyTorch had saved something in a graph that is gone'
  if (there !== 'view') return null
  // Such a result is the tensor itself, and is refused when it is read.
  if (program.steps[at]!.op === 'contiguous') return 'a view of another history, handed on'
  const wroteQuietly = before.some(({ op, quiet }) => op === 'custom:Dirty' || op === 'detach' || (quiet && op.endsWith('_')))
  return wroteQuietly ? 'a view of a custom function after a write under noGrad' : null
}

const writes = (steps: readonly Step[]) => steps.some(({ op }) => op.endsWith('_'))

/** Whether it is no leaf, its gradient is kept (under this number or another), and a view of it may have been written to. */
function isRetainedBase({ leaves, steps }: Program, id: number): boolean {
  const isKept = steps.some(({ op, args }) => op === 'retainGrad' || (op === 'backward' && args.length > 1))
  return isKept && !leaves.some((leaf) => leaf.id === id) && writes(steps)
}

const usesFloat32 = ({ steps }: Program) => steps.some(({ op, attrs }) => op === 'to' && attrs[0] === 'float32')

/** The program with fewer steps that `isSame` still finds to differ in the same way, as long as it finds one. */
export async function shrink(program: Program, isSame: (candidates: readonly Program[]) => Promise<readonly boolean[]>): Promise<Program> {
  for (let smallest = program; ; ) {
    const fewer = [4, 2, 1].flatMap((n) =>
      Array.from({ length: Math.floor(smallest.steps.length / n) }, (_, i) => ({ ...smallest, steps: smallest.steps.toSpliced(i * n, n) })),
    )
    const quiet = smallest.steps.flatMap((step, i) => (step.quiet ? [{ ...smallest, steps: smallest.steps.with(i, loud(step)) }] : []))
    const shorter = smallest.steps.flatMap((step, i) =>
      step.op === 'loss' && step.args.length > 1
        ? step.args.map((_, k) => ({ ...smallest, steps: smallest.steps.with(i, { ...step, args: step.args.toSpliced(k, 1) }) }))
        : [],
    )
    const candidates = [...fewer, ...shorter, ...quiet]
    const found = (await isSame(candidates)).indexOf(true)
    if (found < 0) return smallest
    smallest = candidates[found]!
  }
}

function loud({ op, args, attrs, outs }: Step): Step {
  return { op, args, attrs, outs }
}

/** A program that can be read. */
export function text({ seed, leaves, steps }: Program): string {
  const used = new Set(steps.flatMap(({ args }) => args))
  const first = leaves
    .filter(({ id }) => used.has(id))
    .map((l) => `  t${l.id} = ${l.dtype} [${l.shape}]${l.requiresGrad ? ', requires grad' : ''}: ${l.data.join(' ')}`)
  const rest = steps.map(
    ({ op, args, attrs, outs, quiet }, i) =>
      `  ${i}: ${outs.map((id) => `t${id}`).join(', ')}${outs.length > 0 ? ' = ' : ''}${op}(${[...args.map((id) => `t${id}`), ...attrs.map((a) => JSON.stringify(a))].join(', ')})${quiet ? ' under noGrad' : ''}`,
  )
  return [`seed ${seed}`, ...first, ...rest].join('\n')
}
