/**
 * Runs a program of `program.ts` on whatever cluster surrounds it: simulated, inlined, or threads. Blocks are calls of one exposed function, which is told
 * the program as text and the block's number: nothing is shared but what the worker itself makes of the text.
 */
import { currentContext, type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, RRef, remote, workerLocal } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { type Block, OPS, type Outcome, type Plain, type Program, type Step } from './program.js'

type Value = Tensor | RRef<Tensor>
type Values = Map<number, Value>

/** What a worker has of a program: it, and the parameters that live here. */
interface Loaded {
  readonly program: Program
  readonly params: ReadonlyMap<number, Tensor>
}

/** The programs that run on a worker; tests run one after the other, so the last few are enough. */
const loaded = workerLocal(() => new Map<string, Loaded>())
const LOADED_MAX = 4

function load(text: string): Loaded {
  const all = loaded()
  const there = all.get(text)
  if (there !== undefined) return there
  const program = JSON.parse(text) as Program
  const self = currentWorker().info.name
  const params = new Map<number, Tensor>()
  program.params.forEach((param, i) => {
    if (nameOf(program, param.on) !== self) return
    const array = (param.dtype === 'float32' ? Float32Array : Float64Array).from(param.data)
    params.set(
      i,
      tensor(array, { dtype: param.dtype })
        .reshape([...param.shape])
        .requiresGrad_(),
    )
  })
  if (all.size === LOADED_MAX) all.delete(all.keys().next().value as string)
  const made = { program, params }
  all.set(text, made)
  return made
}

/** A program knows workers by number. */
export const nameOf = ({ names }: Program, worker: number): string => names?.[worker] ?? `worker${worker}`

async function runBlock(text: string, index: number, args: readonly Value[]): Promise<Tensor[]> {
  const { program, params } = load(text)
  const block = program.blocks[index] as Block
  const values: Values = new Map(args.map((value, i) => [i, value]))
  try {
    await runSteps({ text, program, params }, block.steps, values)
    return block.outs.map((id) => values.get(id) as Tensor)
  } finally {
    for (const value of values.values()) if (value instanceof RRef) value.dispose()
  }
}

interface Running extends Loaded {
  readonly text: string
}

async function runSteps(running: Running, steps: readonly Step[], values: Values): Promise<void> {
  const { text, program, params } = running
  const all = (ids: readonly number[]): Value[] => ids.map((id) => values.get(id) as Value)
  const where = (block: number): string => nameOf(program, (program.blocks[block] as Block).on)
  for (const step of steps) {
    if (step.k === 'op') values.set(step.out, OPS[step.op](all(step.in) as [Tensor, Tensor]))
    else if (step.k === 'param') values.set(step.out, params.get(step.i) as Tensor)
    else if (step.k === 'call') {
      const outs = await call(where(step.block), runBlock, [text, step.block, all(step.in)])
      for (const [i, id] of step.outs.entries()) values.set(id, outs[i] as Tensor)
    } else if (step.k === 'remote') values.set(step.out, remote(where(step.block), runOne, [text, step.block, all(step.in)]))
    else if (step.k === 'here') values.set(step.out, await (values.get(step.in[0]) as RRef<Tensor>).toHere())
    else if (step.k === 'par') await allOf(step.branches.map((branch) => runSteps(running, branch, values)))
    else await call(nameOf(program, step.on), failing, [all(step.in)]).catch(onlyItsOwnError)
  }
}

/** Waits for all, also if one fails: what they still make belongs to the block, which gives it up. */
async function allOf(branches: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(branches)) if (end.status === 'rejected') throw end.reason
}

async function runOne(text: string, index: number, args: readonly Value[]): Promise<Tensor> {
  return (await runBlock(text, index, args))[0] as Tensor
}

const MESSAGE = 'thrown by the program'

function failing(args: readonly Value[]): never {
  for (const value of args) if (value instanceof RRef) value.dispose()
  throw new RangeError(MESSAGE)
}

function onlyItsOwnError(error: unknown): void {
  if (!(error instanceof RangeError && error.message === MESSAGE)) throw error
}

/** The gradients of the parameters that live here, in the context of the caller. */
async function gradientsHere(text: string): Promise<Record<string, Plain>> {
  const all = currentContext()!.gradients()
  const out: Record<string, Plain> = {}
  for (const [i, param] of load(text).params) {
    const grad = all.get(param)
    if (grad !== undefined) out[i] = await plain(grad)
  }
  return out
}

/** Of the gradients of the parameters that live here, with their history. */
function penaltyHere(text: string): Tensor {
  const all = currentContext()!.gradients()
  let penalty = tensor(0, { dtype: 'float64' })
  for (const param of load(text).params.values()) {
    const grad = all.get(param)
    if (grad !== undefined) penalty = penalty.add(grad.mul(grad).sum().to('float64'))
  }
  return penalty
}

async function plain(t: Tensor): Promise<Plain> {
  return { dtype: t.dtype, shape: [...t.shape], data: [...(await t.detach().data())] }
}

export type Mode = 'fast' | 'smart'

export interface RunOptions {
  /** Default smart. */
  readonly mode?: Mode
  /** A second pass, over the sum of the squares of all gradients of the first, made where the parameters are. SMART only. */
  readonly second?: boolean
  /** Told of the roots before the pass, in the thread of the test. */
  readonly onRoots?: (roots: readonly Tensor[]) => void
}

/** The whole program, as worker 0: forward, one pass from all roots, the gradients of all workers. */
export function runProgram(text: string, { mode = 'smart', second = false, onRoots }: RunOptions = {}): Promise<Outcome> {
  const forwardAndBackward = async (ctx: DistAutogradContext): Promise<Outcome> => {
    const { program, params } = load(text)
    const main = program.blocks[0] as Block
    const values: Values = new Map()
    try {
      await runSteps({ text, program, params }, main.steps, values)
      const roots = program.roots.map((id) => values.get(id) as Tensor)
      onRoots?.(roots)
      await ctx.backward(roots, { createGraph: second })
      const owners = [...new Set(program.params.map(({ on }) => on))]
      if (second) {
        const penalties = await Promise.all(owners.map((owner) => call(nameOf(program, owner), penaltyHere, [text])))
        const reaching = penalties.filter(({ requiresGrad }) => requiresGrad)
        if (reaching.length > 0) await ctx.backward(reaching)
      }
      const parts = await Promise.all(owners.map((owner) => call(nameOf(program, owner), gradientsHere, [text])))
      return { roots: await Promise.all(roots.map(plain)), gradients: Object.assign({}, ...parts) as Outcome['gradients'] }
    } finally {
      for (const value of values.values()) if (value instanceof RRef) value.dispose()
    }
  }
  return distAutograd.context(forwardAndBackward, { mode })
}

expose({
  'programs.block': runBlock,
  'programs.one': runOne,
  'programs.failing': failing,
  'programs.gradients': gradientsHere,
  'programs.penalty': penaltyHere,
})
