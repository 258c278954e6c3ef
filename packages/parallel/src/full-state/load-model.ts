/**
 * Scatters the weights of one safetensors file into a model on several workers. `model-parts.ts` finds the tensors. PyTorch: `set_model_state_dict` with `full_state_dict` and `broadcast_from_rank0`.
 *
 * Note [All workers or none]
 * Names and shapes are compared before anything is sent. Then each owner gets its tensors and keeps them aside; when all have theirs, they write them into their modules, which cannot fail any more.
 * So a damaged file, a worker that dies while tensors travel, and an abort leave every module as it was.
 */
import { PostgradError } from '@postgrad/base'
import { type Module, openSafetensors, type SafetensorsFile, type StateDict, type StateDictDifference } from '@postgrad/nn'
import { safetensorsIoFailure, safetensorsPath, stateMismatch } from '@postgrad/nn/internal'
import { type CallOptions, expose, type RRef, type WorkerInfo, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions, sameShape } from '@postgrad/tensor/internal'
import { checkpointDiskOf } from '../checkpoint/disk.js'
import { inAnyCase } from '../in-any-case.js'
import { askOwner, type DistributedModel, moduleOf, type NamedTensor, tensorsOf } from './model-parts.js'

/** Options of `loadModel`. The default is without a time limit. If a worker dies, the call fails in any case. */
export interface LoadModelOptions extends Pick<CallOptions, 'timeoutMs' | 'signal'> {
  /** Whether to refuse missing and unexpected names; default true. Tensors of another shape are always refused. */
  readonly strict?: boolean
}

/**
 * Loads a safetensors file into a model on several workers: one that `saveModel` wrote, that of the same model in one place, or one of Hugging Face's. Values are converted to the dtypes of the model. One tensor
 * at a time is in this worker's memory; each owner holds its new tensors next to the old ones until all owners have theirs. If the file does not fit the model, or a worker dies before that, no module is changed.
 * Rejects with INVALID_ARGUMENT, STATE_DICT_MISMATCH (names or shapes differ), MODEL_LOAD_FAILED (another load into a worker of the model began meanwhile), as `openSafetensors` and `SafetensorsFile.tensor` do,
 * and as calls do, such as WORKER_DIED. PyTorch: `set_model_state_dict` with `full_state_dict`.
 * @returns the names that were missing or unexpected, for a load that is not strict
 * @example await loadModel('model.safetensors', new RemoteModule('worker1', Linear, [2, 1])) // the program has: expose({ Linear })
 */
export async function loadModel(path: string | URL, model: DistributedModel, options: LoadModelOptions = {}): Promise<StateDictDifference> {
  const op = 'loadModel'
  checkOptions(op, options, ['strict', 'timeoutMs', 'signal'])
  const { strict = true, ...limits } = options
  const name = safetensorsPath(op, path)
  const file = await openFile(name)
  try {
    const { tensors, end } = await tensorsOf(op, model, limits)
    try {
      const difference = compared(op, file, tensors, strict)
      await scatter(
        file,
        [...tensors.values()].filter((each) => file.tensors.has(each.name)),
        limits,
      )
      return difference
    } finally {
      end()
    }
  } finally {
    await file.close()
  }
}

/** A simulated worker's disk reads the file at once, and gives its bytes. */
async function openFile(path: string): Promise<SafetensorsFile> {
  const source = await checkpointDiskOf(currentRuntime())
    .source(path)
    .catch((error: unknown) => {
      throw safetensorsIoFailure('read', path, error)
    })
  return await openSafetensors(source)
}

/** @throws STATE_DICT_MISMATCH */
function compared(op: string, file: SafetensorsFile, tensors: ReadonlyMap<string, NamedTensor>, strict: boolean): StateDictDifference {
  const missingKeys = [...tensors.keys()].filter((each) => !file.tensors.has(each))
  const unexpectedKeys = [...file.tensors.keys()].filter((each) => !tensors.has(each))
  const shapes = [...tensors.values()].flatMap(({ name, shape }) => {
    const saved = file.tensors.get(name)
    return saved === undefined || sameShape(saved.shape, shape) ? [] : [`${name} is [${shape.join(', ')}], not [${saved.shape.join(', ')}]`]
  })
  if (shapes.length > 0 || (strict && missingKeys.length + unexpectedKeys.length > 0))
    throw stateMismatch(op, missingKeys, unexpectedKeys, shapes)
  return { missingKeys, unexpectedKeys }
}

async function scatter(file: SafetensorsFile, tensors: readonly NamedTensor[], limits: LoadModelOptions): Promise<void> {
  const token = currentRuntime().ids.take()
  const owners = new Map<number, WorkerInfo>(tensors.map(({ owner }) => [owner.id, owner]))
  try {
    for (const owner of owners.values()) await askOwner(owner, begin, [token], limits)
    for (const { name, key, owner, ref } of tensors) await askOwner(owner, stage, [token, ref, key, await file.tensor(name)], limits)
    // All have agreed: an end in the middle would leave some workers changed.
    await inAnyCase((unlimited) => all([...owners.values()].map((owner) => askOwner(owner, commit, [token], unlimited))))
  } catch (error) {
    await inAnyCase((unlimited) => Promise.allSettled([...owners.values()].map((owner) => askOwner(owner, abandon, [token], unlimited))))
    throw error
  }
}

/** Waits for all, so that none is at work when it rejects. */
async function all(ends: readonly PromiseLike<unknown>[]): Promise<void> {
  const failure = (await Promise.allSettled(ends)).find((end) => end.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}

// --- on the owner

interface Staged {
  readonly token: bigint
  readonly states: Map<Module, StateDict>
}

/** One at a time: a caller that died leaves no more than its last load. */
const staged = workerLocal<{ now: Staged | null }>(() => ({ now: null }))

function begin(token: bigint): void {
  staged().now = { token, states: new Map() }
}

async function stage(token: bigint, ref: RRef<Module>, key: string, tensor: Tensor): Promise<void> {
  const module = await moduleOf(ref)
  const { states } = stagedUnder(token)
  const state = states.get(module) ?? {}
  state[key] = tensor
  states.set(module, state)
}

function commit(token: bigint): void {
  for (const [module, state] of stagedUnder(token).states) module.loadStateDict(state, { strict: false })
  staged().now = null
}

function abandon(token: bigint): void {
  if (staged().now?.token === token) staged().now = null
}

/** @throws MODEL_LOAD_FAILED */
function stagedUnder(token: bigint): Staged {
  const { now } = staged()
  if (now?.token === token) return now
  throw new PostgradError('MODEL_LOAD_FAILED', {
    op: 'loadModel',
    message: `another load into worker '${currentRuntime().info.name}' began meanwhile`,
    remedy: 'Await one loadModel before the next.',
    values: { worker: currentRuntime().info.name },
  })
}

expose({
  'postgrad.fullState.begin': begin,
  'postgrad.fullState.stage': stage,
  'postgrad.fullState.commit': commit,
  'postgrad.fullState.abandon': abandon,
})
