/**
 * Scatters the weights of one safetensors file into a model on several workers. `model-parts.ts` finds the tensors, `staged-loads.ts` is the owners' side. PyTorch: `set_model_state_dict` with
 * `full_state_dict` and `broadcast_from_rank0`.
 *
 * Note [All workers or none]
 * Names and shapes are compared before anything is sent. A load has a token, and each owner keeps a load of its own for each token. There are four rounds:
 *
 *     hold, claim   each owner reserves the tensors: a second load into one of them is refused. Owners are asked by rising id, so of several loads that meet, one gets all it needs
 *     stage         each owner gets its new tensors, and keeps them next to the old ones
 *     commit        each owner writes them into its modules, and keeps the old values
 *     end           the old values are dropped, or put back (`abandon`) if a commit has failed
 *
 * The decision falls when the caller has the last answer to `commit`. Before that every owner can return to the old values; after it no owner does. So:
 * - If a file is damaged, time is over, the signal aborts, or an owner dies in the first two rounds: no module was written to.
 * - If an owner dies in the third round, or a module's own `loadStateDict` throws: the load rejects, and all living owners put the old values back.
 * - If an owner dies in the last round, the load has succeeded, as if the owner died after it.
 * - If the caller dies, each owner notices the end of its stream (`hold`), and asks the other owners. If one of them had been in the last round, the decision had fallen, and all keep the new values;
 *   otherwise all put the old ones back. Each owner answers by how its own stream ended, so all owners get the same answers.
 * - If the caller and an owner die at the same time, the other owners may differ: the dead owner may have answered one of them and not another. The program that starts again loads again.
 *
 * While a load has reserved a tensor, no other load writes to it, so putting back does not undo another load.
 */
import { noGrad } from '@postgrad/autograd'
import { type Module, openSafetensors, type SafetensorsFile, type StateDictDifference } from '@postgrad/nn'
import { safetensorsIoFailure, safetensorsPath, stateMismatch } from '@postgrad/nn/internal'
import { type CallOptions, type RRef, stream, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { checkOptions, sameShape } from '@postgrad/tensor/internal'
import { checkpointDiskOf } from '../checkpoint/disk.js'
import { soon } from '../checkpoint/moment.js'
import { inAnyCase } from '../in-any-case.js'
import { askOwner, Limits } from './limits.js'
import { type DistributedModel, type NamedTensor, tensorsOf } from './model-parts.js'
import { loads } from './staged-loads.js'

/** Options of `loadModel`. `timeoutMs` limits the whole call; default 0, no limit. If a worker dies, the call fails in any case. */
export interface LoadModelOptions extends Pick<CallOptions, 'timeoutMs' | 'signal'> {
  /** Whether to refuse missing and unexpected names; default true. Tensors of another shape are always refused. */
  readonly strict?: boolean
}

/**
 * Loads a safetensors file into a model on several workers: one that `saveModel` wrote, that of the same model in one place, or one of Hugging Face's. Values are converted to the dtypes of the model. One tensor
 * at a time is in this worker's memory; each owner holds the new tensors, and then the old ones, until all owners have written theirs. If the load fails, no module of a living worker is changed.
 * Replicas of DistributedDataParallel would then differ, so such a model is refused: load before `DistributedDataParallel.create`, or into `model.module` on every rank.
 * Rejects with INVALID_ARGUMENT, TIMEOUT_INVALID, STATE_DICT_MISMATCH (names or shapes differ), MODEL_LOAD_FAILED (another load into the same tensors is under way, or a module's own `loadStateDict` throws), as `openSafetensors` and `SafetensorsFile.tensor`
 * do, and as calls do, such as WORKER_DIED, RPC_TIMEOUT and CALL_CANCELLED. PyTorch: `set_model_state_dict` with `full_state_dict`.
 * @returns the names that were missing or unexpected, for a load that is not strict
 * @example await loadModel('model.safetensors', new RemoteModule('worker1', Linear, [2, 1])) // the program has: expose({ Linear })
 */
export async function loadModel(path: string | URL, model: DistributedModel, options: LoadModelOptions = {}): Promise<StateDictDifference> {
  const op = 'loadModel'
  checkOptions(op, options, ['strict', 'timeoutMs', 'signal'])
  const { strict = true } = options
  const name = safetensorsPath(op, path)
  const limits = new Limits(op, options)
  const file = await openFile(name)
  try {
    const { tensors, end } = await tensorsOf(model, limits)
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
    throw stateMismatch(op, strict ? missingKeys : [], strict ? unexpectedKeys : [], shapes)
  return { missingKeys, unexpectedKeys }
}

/** See Note [All workers or none]. */
async function scatter(file: SafetensorsFile, tensors: readonly NamedTensor[], limits: Limits): Promise<void> {
  const token = currentRuntime().ids.take()
  const owners = ownersOf(tensors)
  const held = owners.map(({ info }) => hold(info, token))
  try {
    for (const { info, refs } of owners) await limits.ask(info, loads.claim, [token, refs])
    for (const { name, key, owner, ref } of tensors) await limits.ask(owner, loads.stage, [token, ref, key, await file.tensor(name)])
    limits.check()
    const others = owners.map(({ info }) => info).filter(({ id }) => id !== currentRuntime().info.id)
    const othersOf = ({ id }: WorkerInfo) => others.filter((other) => other.id !== id)
    await onEach(owners, (info, unlimited) => askOwner(info, loads.commit, [token, othersOf(info)], unlimited))
  } catch (error) {
    // The first error is the one to report.
    await onEach(owners, (info, unlimited) => askOwner(info, loads.abandon, [token], unlimited)).catch(() => {})
    throw error
  } finally {
    // Another load of this program may begin in the next turn, on any worker.
    await soon(Promise.allSettled(inAnyCase(() => held.map((end) => end()))))
  }
}

interface Owner {
  readonly info: WorkerInfo
  readonly refs: readonly RRef<Module>[]
}

/** By rising id. */
function ownersOf(tensors: readonly NamedTensor[]): Owner[] {
  const refs = new Map<number, { readonly info: WorkerInfo; readonly refs: Set<RRef<Module>> }>()
  for (const { owner, ref } of tensors) {
    const known = refs.get(owner.id) ?? { info: owner, refs: new Set() }
    refs.set(owner.id, known)
    known.refs.add(ref)
  }
  return [...refs.values()].sort((a, b) => a.info.id - b.info.id).map((owner) => ({ info: owner.info, refs: [...owner.refs] }))
}

/** Begins the load on an owner. @returns a function that ends the load there, with the values that the modules then have */
function hold(info: WorkerInfo, token: bigint): () => Promise<unknown> {
  if (info.id === currentRuntime().info.id) {
    loads.begin(token)
    return async () => loads.end(token)
  }
  const held = inAnyCase((unlimited) => noGrad(() => stream(info, loads.hold, [token], unlimited)))
  // If the owner cannot be reached, the claim says so.
  held.next().catch(() => {})
  return () => held.return()
}

/** Waits for all, so that none is at work when it rejects. An end in the middle would leave some workers changed, so no limits hold. */
async function onEach(owners: readonly Owner[], ask: (owner: WorkerInfo, unlimited: CallOptions) => Promise<unknown>): Promise<void> {
  const ends = await inAnyCase((unlimited) => Promise.allSettled(owners.map(({ info }) => ask(info, unlimited))))
  const failure = ends.find((end) => end.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}
