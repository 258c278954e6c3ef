/**
 * Runs a program of `program.ts` on the cluster that surrounds it: simulated, inlined, or threads. Blocks are calls of one exposed function, which gets
 * the program as text and the block's number: workers share nothing but what each makes of the text.
 */
import { isPostgradError } from '@postgrad/base'
import { currentContext, type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, getWorkerInfos, RRef, remote, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { type DeviceSpec, device, type Tensor, tensor } from '@postgrad/tensor'
import { type Block, backwardOf, type Gradients, OPS, type Outcome, type Plain, type Program, type Step } from './program.js'

type Value = Tensor | RRef<Tensor>
type Values = Map<number, Value>

/** A worker's copy of a program, and the parameters that live here. */
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
      tensor(array, { dtype: param.dtype, device: here() })
        .reshape([...param.shape])
        .requiresGrad_(),
    )
  })
  if (all.size === LOADED_MAX) all.delete(all.keys().next().value as string)
  const made = { program, params }
  all.set(text, made)
  return made
}

/** Where this worker's tensors are. */
const place = workerLocal((): { device: DeviceSpec } => ({ device: 'cpu' }))
const here = () => device(place().device)

/** Runs on each worker, before the program: its tensors will be on a device of that name, and with `maps` those of the others arrive there. */
export function useDevice(spec: string, maps = true): void {
  place().device = spec as DeviceSpec
  if (!maps) return
  const self = currentWorker().info.name
  for (const { name } of getWorkerInfos()) if (name !== self) currentRuntime().setDeviceMap(name, { [spec]: spec })
}

/** A program knows workers by number. */
export const nameOf = ({ names }: Program, worker: number): string => names?.[worker] ?? `worker${worker}`

type Ends = Record<string, string | null>

/** Runs a block: gives its results, and how the passes ended that it began. */
async function runBlock(text: string, index: number, args: readonly Value[]): Promise<[outs: Tensor[], ends: Ends]> {
  const running = { ...load(text), text, index, ends: {}, read: [], createGraph: false }
  const block = running.program.blocks[index] as Block
  const values: Values = new Map(args.map((value, i) => [i, value]))
  try {
    await runSteps(running, block.steps, values)
    return [block.outs.map((id) => values.get(id) as Tensor), running.ends]
  } finally {
    for (const value of values.values()) if (value instanceof RRef) value.dispose()
  }
}

interface Running extends Loaded {
  readonly text: string
  /** The block. */
  readonly index: number
  readonly ends: Ends
  readonly read: Gradients[]
  readonly createGraph: boolean
}

/** Whether a pass may begin, as the inlined program has it where the simulation is to end with UNUSED_SEND. */
export type Gate = (nr: number, roots: readonly Tensor[], isMain: boolean) => boolean | Promise<boolean>

/** Of the passes that this worker begins; null lets all begin. */
const gate = workerLocal((): { allows: Gate | null } => ({ allows: null }))

/** Runs on the worker, before the program. */
export function allowOnly(allows: Gate | null): void {
  gate().allows = allows
}

async function runSteps(running: Running, steps: readonly Step[], values: Values): Promise<void> {
  const { text, program, params, ends } = running
  const all = (ids: readonly number[]): Value[] => ids.map((id) => values.get(id) as Value)
  const where = (block: number): string => nameOf(program, (program.blocks[block] as Block).on)
  for (const step of steps) {
    if (step.k === 'op') values.set(step.out, OPS[step.op](all(step.in) as [Tensor, Tensor]))
    else if (step.k === 'param') values.set(step.out, params.get(step.i) as Tensor)
    else if (step.k === 'call') {
      const [outs, passes] = await call(where(step.block), runBlock, [text, step.block, all(step.in)])
      for (const [i, id] of step.outs.entries()) values.set(id, outs[i] as Tensor)
      Object.assign(ends, passes)
    } else if (step.k === 'remote') values.set(step.out, remote(where(step.block), runOne, [text, step.block, all(step.in)]))
    else if (step.k === 'here') values.set(step.out, await (values.get(step.in[0]) as RRef<Tensor>).toHere())
    else if (step.k === 'pass') ends[step.nr] = await runPass(running, step, all(step.roots) as Tensor[])
    else if (step.k === 'read') running.read.push(await gradientsOf(program, text))
    // A value with a history must not be written.
    else if (step.k === 'write') await (running.createGraph || onOwners(program, (owner) => call(owner, halveHere, [text])))
    else if (step.k === 'par') await allOf(step.branches.map((branch) => runSteps(running, branch, values)))
    else await call(nameOf(program, step.on), failing, [all(step.in)]).catch(onlyItsOwnError)
  }
}

/** How it ended. A pass that FAST refuses is not a failure. */
async function runPass({ index, createGraph }: Running, { nr, grads, keep }: PassStep, roots: readonly Tensor[]): Promise<string | null> {
  const { allows } = gate()
  const isAllowed = allows === null ? true : allows(nr, roots, index === 0)
  // Without an await where none is needed: what begins at once begins at once.
  if (!(typeof isAllowed === 'boolean' ? isAllowed : await isAllowed)) return UNUSED_SEND
  const gradTensors = grads?.map((data, i) => (data === null ? null : likeRoot(roots[i] as Tensor, data)))
  try {
    await currentContext()!.backward(roots, { retainGraph: keep || createGraph, createGraph, ...(gradTensors && { gradTensors }) })
    return null
  } catch (error) {
    if (!isPostgradError(error, UNUSED_SEND)) throw error
    return error.code
  }
}

type PassStep = Extract<Step, { readonly k: 'pass' }>

const UNUSED_SEND = 'UNUSED_SEND'

function likeRoot({ dtype, shape }: Tensor, data: readonly number[]): Tensor {
  return tensor((dtype === 'float32' ? Float32Array : Float64Array).from(data), { dtype, device: here() }).reshape([...shape])
}

/** Waits for all, also if one fails: what they still make belongs to the block, which gives it up. */
async function allOf(branches: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(branches)) if (end.status === 'rejected') throw end.reason
}

async function runOne(text: string, index: number, args: readonly Value[]): Promise<Tensor> {
  return (await runBlock(text, index, args))[0][0] as Tensor
}

const MESSAGE = 'thrown by the program'

function failing(args: readonly Value[]): never {
  for (const value of args) if (value instanceof RRef) value.dispose()
  throw new RangeError(MESSAGE)
}

function onlyItsOwnError(error: unknown): void {
  if (!(error instanceof RangeError && error.message === MESSAGE)) throw error
}

/** Answers of all workers with parameters. */
function onOwners<T>(program: Program, ask: (owner: string) => PromiseLike<T>): Promise<T[]> {
  const owners = [...new Set(program.params.map(({ on }) => on))]
  return Promise.all(owners.map((owner) => ask(nameOf(program, owner))))
}

async function gradientsOf(program: Program, text: string): Promise<Gradients> {
  return Object.assign({}, ...(await onOwners(program, (owner) => call(owner, gradientsHere, [text]))))
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

function halveHere(text: string): void {
  const all = currentContext()!.gradients()
  for (const param of load(text).params.values()) all.get(param)?.mul_(0.5)
}

/** Of the gradients of the parameters that live here, with their history. */
function penaltyHere(text: string): Tensor {
  const all = currentContext()!.gradients()
  let penalty = tensor(0, { dtype: 'float64', device: here() })
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
  /** One more pass, over the sum of the squares of all gradients, made where the parameters are. SMART only; nothing is written in place. */
  readonly second?: boolean
}

/** The whole program, as worker 0: forward, its passes, the gradients of all workers. */
export function runProgram(text: string, { mode = 'smart', second = false }: RunOptions = {}): Promise<Outcome> {
  const forwardAndBackward = async (ctx: DistAutogradContext): Promise<Outcome> => {
    const running: Running = { ...load(text), text, index: 0, ends: {}, read: [], createGraph: second }
    const { program, ends, read } = running
    const values: Values = new Map()
    try {
      await runSteps(running, (program.blocks[0] as Block).steps, values)
      await runSteps(running, backwardOf(program), values)
      if (second) {
        const penalties = await onOwners(program, (owner) => call(owner, penaltyHere, [text]))
        const reaching = penalties.filter(({ requiresGrad }) => requiresGrad)
        if (reaching.length > 0) await ctx.backward(reaching)
      }
      const roots = await Promise.all(program.roots.map((id) => plain(values.get(id) as Tensor)))
      return { roots, gradients: await gradientsOf(program, text), read, ends }
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
  'programs.halve': halveHere,
  'programs.penalty': penaltyHere,
  'programs.device': useDevice,
})
