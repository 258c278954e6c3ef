/** The differences of KERNELS.md, "Differs from PyTorch in its graphs", and their causes in a program of `builder.fixture.ts`. Used by `compare.fixture.ts`. */
import { HAND_ON, type Program, type Step, VIEWS } from './builder.fixture.js'
import type { Outcome } from './run.fixture.js'

export interface Difference {
  /** The difference, without numbers: differences of one kind are counted together. */
  readonly kind: string
  readonly text: string
  /** KERNELS.md has it. */
  readonly isListed?: boolean
}

export function errorOf(outcome: Outcome['steps'][number]): string | null {
  return outcome !== null && 'error' in outcome ? outcome.error : null
}

export const HOOK_OF_CHECKPOINT: Difference = { kind: 'a hook of the result of a checkpoint', text: '', isListed: true }

/** KERNELS.md lists this error ("Differs from PyTorch in its graphs"); after it a program is compared no further. */
export function listed(program: Program, at: number, here: Outcome, there: string | null, isCopied: boolean): string | null {
  if (there === 'not compared') return 'not compared'
  const mine = errorOf(here.steps[at]!)
  const { steps } = program
  const { op, args } = steps[at]!
  const families = familiesOf(program)
  if (mine === 'modified' && isCheckpointWritten(program, at, families)) return 'a checkpoint whose argument was written to'
  if (mine !== null && there !== null) return null
  if (there === 'raised' && isThroughHookOfCheckpoint(program, at, 'raise')) return HOOK_OF_CHECKPOINT.kind
  // A PyTorch that saves copies frees nothing.
  if (mine === 'freed' && isCopied) return 'postgrad had saved something in a graph that is gone'
  if (there === 'unused' && args.some((_, k) => k > 0 && isOfViewedView(program, at, k - 1))) return 'the gradient of a view after a write'
  if (there !== 'view') return null
  // Such a result is the tensor itself, and is refused when it is read.
  if (HAND_ON.includes(op)) return 'a view of another history, handed on'
  const family = new Set(args.flatMap((id) => [...families(id)]))
  // A detached tensor has a history of its own, of which the others know nothing.
  const isDetached = steps.slice(0, at).some((step) => step.op === 'detach' && family.has(step.args[0]!))
  const wroteQuietly = steps
    .slice(0, at)
    .some(
      (step, i) =>
        isWrite(step) &&
        family.has(step.args[0]!) &&
        (isDetached || step.quiet || step.op === 'custom:Dirty' || !isRecorded(here.steps[i]!)),
    )
  return wroteQuietly ? 'a view of a custom function after a write that is not recorded' : null
}

const isWrite = ({ op }: Step) => op.endsWith('_') || op === 'custom:Dirty'

/** Whether an argument of a checkpoint was written after it, before step `at`. */
function isCheckpointWritten({ steps }: Program, at: number, families: Families): boolean {
  const isWritten = (id: number, since: number) => steps.slice(since, at).some((step) => isWrite(step) && families(id).has(step.args[0]!))
  return steps.some(({ op, args }, i) => op.startsWith('checkpoint:') && args.some((id) => isWritten(id, i)))
}

function isRecorded(write: Outcome['steps'][number]): boolean {
  return write !== null && !('error' in write) && write[0]?.requiresGrad === true
}

/** Whether `grad` in step `at` asks for the gradient of a view, as input `k`, that another view was made of, and something was written before. */
export function isOfViewedView({ steps }: Program, at: number, k: number): boolean {
  const before = steps.slice(0, at)
  const isViewedView = (id: number) =>
    before.some(({ op, args, outs }) => SHARES.has(op) && args.includes(id) && outs.length > 0) &&
    before.some(({ op, outs }) => SHARES.has(op) && outs.includes(id))
  const asked = steps[at]!.args[k + 1]!
  const handedOn = before.find(({ op, outs }) => HAND_ON.includes(op) && outs.includes(asked))
  return before.some(isWrite) && [asked, ...(handedOn?.args ?? [])].some(isViewedView)
}

/** Steps whose results may share the memory of an argument, or the node of another result. */
const SHARES = new Set(VIEWS)

/** By a tensor's number: the tensors that may share its memory or its node. */
type Families = (id: number) => ReadonlySet<number>

export function familiesOf({ steps }: Program): Families {
  const found = new Map<number, Set<number>>()
  for (const { op, args, outs } of steps) {
    const joined = new Set<number>()
    for (const id of SHARES.has(op) ? [...args, ...outs] : outs) for (const other of found.get(id) ?? [id]) joined.add(other)
    for (const id of joined) found.set(id, joined)
  }
  return (id) => found.get(id) ?? new Set([id])
}

/** Whether the gradient that a tensor of the family keeps may be another, and why. */
export function keptOtherwise({ steps }: Program, family: ReadonlySet<number>): Difference | null {
  const inFamily = ({ args }: Step, from: number) => args.slice(from).some((arg) => family.has(arg))
  const isKept = steps.some((one) => (one.op === 'retainGrad' && inFamily(one, 0)) || (one.op === 'backward' && inFamily(one, 1)))
  if (!isKept) return null
  if (steps.some((one) => one.op.endsWith('_') && inFamily(one, 0)))
    return { kind: 'retainGrad of what was written through a view', text: '', isListed: true }
  if (steps.some((one) => one.op === 'grad' && inFamily(one, 1)))
    return { kind: 'retainGrad of what grad asks for', text: '', isListed: true }
  return null
}

export const isPass = ({ op }: Step) => op === 'grad' || op === 'backward'

/** The results of checkpoints, if the graph of a pass was recorded before step `at`; else none. */
function recomputed({ steps }: Program, at: number): ReadonlySet<number> {
  const before = steps.slice(0, at)
  const isRecorded = before.some((step) => isPass(step) && (step.attrs[0] as { create: boolean }).create)
  return new Set(isRecorded ? before.flatMap(({ op, outs }) => (op.startsWith('checkpoint:') ? outs : [])) : [])
}

/** Whether step `at` asks for a gradient with respect to a result of a checkpoint, after a pass with createGraph. */
export function isThroughCheckpoint(program: Program, at: number): boolean {
  const results = recomputed(program, at)
  return program.steps[at]!.args.slice(1).some((id) => results.has(id))
}

/** Whether a result of a checkpoint has a hook of this kind, through which a second derivative may lead in step `at` or before. */
export function isThroughHookOfCheckpoint(program: Program, at: number, kind: string): boolean {
  const results = recomputed(program, at)
  return program.steps.slice(0, at).some(({ op, args, attrs }) => op === 'hook' && attrs[0] === kind && results.has(args[0]!))
}

/** Whether the pass of step `at` calls the hook of step `hook` on one side only. */
export function isCalledOtherwise(program: Program, hook: number, at: number): boolean {
  const { steps } = program
  const [pass, hooked] = [steps[at]!, steps[hook]!.args[0]!]
  if (recomputed(program, at).has(hooked)) return true
  const isOfOneNode = (id: number) => steps.some(({ op, outs }) => op.startsWith('custom:') && outs.includes(id) && outs.includes(hooked))
  return pass.args.slice(1).some(isOfOneNode)
}

export function isHooked({ steps }: Program, family: ReadonlySet<number>): boolean {
  return steps.some(({ op, args }) => op === 'hook' && family.has(args[0]!))
}
