/** An owner's side of `loadModel`: the loads that are under way here. `load-model.ts` asks for the rounds, Note [All workers or none] has them. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { Module, StateDict } from '@postgrad/nn'
import { call, currentSignal, expose, type RRef, type WorkerInfo, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import type { Storage } from '@postgrad/tensor/internal'
import { inAnyCase } from '../in-any-case.js'
import { undoOf } from '../module-undo.js'
import { PREFIX } from './limits.js'
import { moduleOf } from './model-parts.js'

interface Load {
  /** Reserved: no other load may write to them. */
  readonly reserved: Set<Storage>
  /** The values that `commit` will write. */
  readonly states: Map<Module, StateDict>
  /** Puts back what `commit` has written over. */
  readonly undo: (() => void)[]
  /** From `commit` on: the other owners, without the caller. */
  others: readonly WorkerInfo[]
  readonly closed: Promise<Outcome>
  readonly close: (outcome: Outcome) => void
}

/** Whether the caller has ended the load here, after it had decided on it, or has died before. */
type Outcome = 'ended' | 'died'

const underWay = workerLocal(() => new Map<bigint, Load>())
/** The latest that are over, for other owners. */
const over = workerLocal(() => new Map<bigint, Outcome>())
const OVER_MAX = 256

function begin(token: bigint): void {
  let close: (outcome: Outcome) => void = () => {}
  const closed = new Promise<Outcome>((resolve) => {
    close = resolve
  })
  underWay().set(token, { reserved: new Set(), states: new Map(), undo: [], others: [], closed, close })
}

/** The load lasts as long as the stream is open. The caller closes it when the load has ended; if the caller dies instead, the owners decide. */
function hold(token: bigint): AsyncGenerator<null> {
  const signal = currentSignal()
  begin(token)
  const isOver = new Promise<void>((resolve) => {
    const close = () => {
      if (isPostgradError(signal.reason, 'CALL_CANCELLED')) end(token)
      else void decide(token)
      resolve()
    }
    if (signal.aborted) close()
    else signal.addEventListener('abort', close, { once: true })
  })
  return (async function* () {
    yield null
    await isOver
  })()
}

/** The caller has died. If it has ended the load on any owner, it had decided on it; otherwise it may not have, so no owner keeps it. */
async function decide(token: bigint): Promise<void> {
  const load = underWay().get(token)
  if (load === undefined) return
  load.close('died')
  // An owner that has died, or refuses, counts as one without an end.
  const answers = await inAnyCase((unlimited) => Promise.allSettled(load.others.map((info) => call(info, outcome, [token], unlimited))))
  if (answers.some((answer) => answer.status === 'fulfilled' && answer.value === 'ended')) end(token)
  else abandon(token)
}

/** For another owner: waits until the caller has ended the load here, or has died. */
async function outcome(token: bigint): Promise<Outcome> {
  return over().get(token) ?? (await underWay().get(token)?.closed) ?? 'died'
}

/** Reserves all tensors of these modules, or none. @throws MODEL_LOAD_FAILED */
async function claim(token: bigint, refs: readonly RRef<Module>[]): Promise<void> {
  const modules = await Promise.all(refs.map((ref) => moduleOf('loadModel', ref)))
  const load = loadUnder(token)
  const storages = modules.flatMap((module) => Object.values(module.stateDict()).map(({ storage }) => storage))
  for (const other of underWay().values())
    if (other !== load && storages.some((each) => other.reserved.has(each)))
      throw refused('another load into the same tensors is under way', 'Await one loadModel before the next into the same module.')
  for (const each of storages) load.reserved.add(each)
}

async function stage(token: bigint, ref: RRef<Module>, key: string, tensor: Tensor): Promise<void> {
  const module = await moduleOf('loadModel', ref)
  const { states } = loadUnder(token)
  const state = states.get(module) ?? {}
  state[key] = tensor
  states.set(module, state)
}

/** @throws MODEL_LOAD_FAILED if a module's own `loadStateDict` throws: `abandon` then puts back all that was written, also by that module */
function commit(token: bigint, others: readonly WorkerInfo[]): void {
  const load = loadUnder(token)
  const { states, undo } = load
  load.others = others
  for (const [module, state] of states) {
    undo.push(undoOf(module, Object.keys(state)))
    try {
      module.loadStateDict(state, { strict: false })
    } catch (error) {
      const what = `the loadStateDict of its ${module.constructor.name} failed: ${error instanceof Error ? error.message : String(error)}`
      throw refused(what, 'See the cause; all modules have their old weights.', error)
    }
    // The module has them now.
    states.delete(module)
  }
}

/** As if it had not been. */
function abandon(token: bigint): void {
  const load = finish(token, 'died')
  for (const undo of load?.undo.reverse() ?? []) undo()
}

/** The modules keep the values that they now have. */
function end(token: bigint): void {
  finish(token, 'ended')
}

function finish(token: bigint, how: Outcome): Load | undefined {
  const [loads, past] = [underWay(), over()]
  const load = loads.get(token)
  loads.delete(token)
  if (load === undefined) return undefined
  load.close(how)
  past.set(token, how)
  if (past.size > OVER_MAX) past.delete(past.keys().next().value!)
  return load
}

/** @throws MODEL_LOAD_FAILED */
function loadUnder(token: bigint): Load {
  const load = underWay().get(token)
  if (load === undefined) throw refused('the load has ended', 'See the error of loadModel on the worker that called it.')
  return load
}

function refused(what: string, remedy: string, cause?: unknown): PostgradError {
  const { name } = currentRuntime().info
  return new PostgradError('MODEL_LOAD_FAILED', {
    op: 'loadModel',
    message: `worker '${name}' does not take this load: ${what}`,
    remedy,
    values: { worker: name },
    ...(cause === undefined ? {} : { cause }),
  })
}

export const loads = { begin, hold, claim, stage, commit, abandon, end } as const
expose({
  [`${PREFIX}hold`]: hold,
  [`${PREFIX}claim`]: claim,
  [`${PREFIX}stage`]: stage,
  [`${PREFIX}commit`]: commit,
  [`${PREFIX}abandon`]: abandon,
  [`${PREFIX}outcome`]: outcome,
})
