/** Where postgrad and PyTorch differ over a program of `builder.fixture.ts`, and the smallest part of it over which they still do. */
import { HAND_ON, type Program, type Step, VIEWS } from './builder.fixture.js'
import { type Call, type Outcome, runProgram, type Seen } from './run.fixture.js'

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
      const known = listed(program, i, here, errors[1]!)
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

const HOOK_OF_CHECKPOINT: Difference = { kind: 'a hook of the result of a checkpoint', text: '', isListed: true }
const WILD: Difference = { kind: 'its numbers ran away', text: '', isListed: true }

function errorOf(outcome: Outcome['steps'][number]): string | null {
  return outcome !== null && 'error' in outcome ? outcome.error : null
}

/** Which of two errors comes first is not the same. */
const EITHER = [
  ['modified', 'freed', 'view', 'no grad', 'retain', 'gradient', 'raised', 'unused'],
  ['leaf', 'overlap', 'view', 'other'],
]

/** What KERNELS.md lists of errors ("Differs from PyTorch in its graphs"); after it a program is compared no further. */
function listed({ steps }: Program, at: number, here: Outcome, there: string | null): string | null {
  if (there === 'not compared') return 'not compared'
  const mine = errorOf(here.steps[at]!)
  const { op, args } = steps[at]!
  const before = steps.slice(0, at)
  if (mine === 'modified' && before.some((step) => step.op.startsWith('checkpoint:'))) return 'a checkpoint whose argument was written to'
  if (mine !== null && there !== null) return null
  if (there === 'raised' && isThroughHookOfCheckpoint({ steps }, at, 'raise')) return HOOK_OF_CHECKPOINT.kind
  if (mine === 'freed') return 'postgrad had saved something in a graph that is gone'
  if (there === 'detach') return 'detach_ of what PyTorch made a view'
  if (there === 'unused' && args.some((_, k) => k > 0 && isOfViewedView({ steps }, at, k - 1)))
    return 'the gradient of a view after a write'
  if (there !== 'view') return null
  // Such a result is the tensor itself, and is refused when it is read.
  if (HAND_ON.includes(op)) return 'a view of another history, handed on'
  const wroteQuietly = before.some(
    (step, i) =>
      step.op === 'custom:Dirty' || step.op === 'detach' || (step.op.endsWith('_') && (step.quiet || !isRecorded(here.steps[i]!))),
  )
  return wroteQuietly ? 'a view of a custom function after a write that is not recorded' : null
}

function isRecorded(write: Outcome['steps'][number]): boolean {
  return write !== null && !('error' in write) && write[0]?.requiresGrad === true
}

const writes = (steps: readonly Step[]) => steps.some(({ op }) => op.endsWith('_') || op === 'custom:Dirty')

/** Whether `grad` in step `at` asks for the gradient of a view, as input `k`, that another view was made of, and something was written before. */
function isOfViewedView({ steps }: Pick<Program, 'steps'>, at: number, k: number): boolean {
  const before = steps.slice(0, at)
  const isViewedView = (id: number) =>
    before.some(({ op, args, outs }) => SHARES.has(op) && args.includes(id) && outs.length > 0) &&
    before.some(({ op, outs }) => SHARES.has(op) && outs.includes(id))
  const asked = steps[at]!.args[k + 1]!
  const handedOn = before.find(({ op, outs }) => HAND_ON.includes(op) && outs.includes(asked))
  return writes(before) && [asked, ...(handedOn?.args ?? [])].some(isViewedView)
}

/** Steps whose results may share the memory of an argument, or the node of another result. */
const SHARES = new Set(VIEWS)

/** By a tensor's number: the tensors that may share its memory or its node. */
function familiesOf({ steps }: Program): (id: number) => ReadonlySet<number> {
  const found = new Map<number, Set<number>>()
  for (const { op, args, outs } of steps) {
    const joined = new Set<number>()
    for (const id of SHARES.has(op) ? [...args, ...outs] : outs) for (const other of found.get(id) ?? [id]) joined.add(other)
    for (const id of joined) found.set(id, joined)
  }
  return (id) => found.get(id) ?? new Set([id])
}

/** Whether the gradient that a tensor of the family keeps may be another, and why. */
function keptOtherwise({ steps }: Program, family: ReadonlySet<number>): Difference | null {
  const inFamily = ({ args }: Step, from: number) => args.slice(from).some((arg) => family.has(arg))
  const isKept = steps.some((one) => (one.op === 'retainGrad' && inFamily(one, 0)) || (one.op === 'backward' && inFamily(one, 1)))
  if (!isKept) return null
  if (steps.some((one) => one.op.endsWith('_') && inFamily(one, 0)))
    return { kind: 'retainGrad of what was written through a view', text: '', isListed: true }
  if (steps.some((one) => one.op === 'grad' && inFamily(one, 1)))
    return { kind: 'retainGrad of what grad asks for', text: '', isListed: true }
  return null
}

const isPass = ({ op }: Step) => op === 'grad' || op === 'backward'

/** The results of checkpoints, if the graph of a pass was recorded before step `at`; else none. */
function recomputed({ steps }: Pick<Program, 'steps'>, at: number): ReadonlySet<number> {
  const before = steps.slice(0, at)
  const isRecorded = before.some((step) => isPass(step) && (step.attrs[0] as { create: boolean }).create)
  return new Set(isRecorded ? before.flatMap(({ op, outs }) => (op.startsWith('checkpoint:') ? outs : [])) : [])
}

/** Whether step `at` asks for a gradient with respect to a result of a checkpoint, after a pass with createGraph. */
function isThroughCheckpoint(program: Program, at: number): boolean {
  const results = recomputed(program, at)
  return program.steps[at]!.args.slice(1).some((id) => results.has(id))
}

/** Whether a result of a checkpoint has a hook of this kind, through which a second derivative may lead in step `at` or before. */
function isThroughHookOfCheckpoint(program: Pick<Program, 'steps'>, at: number, kind: string): boolean {
  const results = recomputed(program, at)
  return program.steps.slice(0, at).some(({ op, args, attrs }) => op === 'hook' && attrs[0] === kind && results.has(args[0]!))
}

/** Whether the pass of step `at` calls the hook of step `hook` on one side only. */
function isCalledOtherwise(program: Program, hook: number, at: number): boolean {
  const { steps } = program
  const [pass, hooked] = [steps[at]!, steps[hook]!.args[0]!]
  if (recomputed(program, at).has(hooked)) return true
  const isOfOneNode = (id: number) => steps.some(({ op, outs }) => op.startsWith('custom:') && outs.includes(id) && outs.includes(hooked))
  return pass.args.slice(1).some(isOfOneNode)
}

function isHooked({ steps }: Program, family: ReadonlySet<number>): boolean {
  return steps.some(({ op, args }) => op === 'hook' && family.has(args[0]!))
}

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
