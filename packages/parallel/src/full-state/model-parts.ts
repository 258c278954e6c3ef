/**
 * Finds the parts of a model that lies on several workers, with the names that its tensors have in the same model in one place. `save-model.ts` gathers them, `load-model.ts` scatters into them.
 *
 *     new Model { embedding: RemoteModule on a, head: Linear here }     a: weight → embedding.weight      here: weight → head.weight
 *     [stage 0 on a, stage 1 on b], Sequentials of 2 and 3 layers       a: 0.weight → 0.weight            b: 0.weight → 2.weight
 *
 * An owner describes its tensors and names the modules of other workers in them, which are asked next; so no tensor goes through a worker that is neither its owner nor the caller.
 */
import { noGrad } from '@postgrad/autograd'
import { Module, Sequential } from '@postgrad/nn'
import { type CallOptions, call, expose, OwnerRRef, RRef, rref, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { DType } from '@postgrad/tensor'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { remoteModulesIn } from '../checkpoint/entry.js'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { PipelineStage } from '../pipelining/stage.js'
import { RemoteModule } from '../remote-module.js'

/**
 * A model on several workers: a module with RemoteModules at any depth; a RemoteModule; a reference to a module, or a PipelineStage of this worker; models by name, whose names come before those of their
 * tensors; or the Sequentials of `splitSequential` in their order, which are one Sequential. A DistributedDataParallel counts as its module.
 */
export type DistributedModel =
  | Module
  | RRef<Module>
  | PipelineStage
  | readonly DistributedModel[]
  | { readonly [name: string]: DistributedModel }

/** A tensor of a part, as its owner describes it. */
export interface PartTensor {
  /** Within its module. */
  readonly key: string
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Of its storage: another one later says that it was written to. */
  readonly version: number
}

/** A tensor with its owner, and its name in the model in one place. */
export interface NamedTensor extends PartTensor {
  readonly name: string
  readonly owner: WorkerInfo
  readonly ref: RRef<Module>
}

interface Described {
  readonly tensors: readonly PartTensor[]
  readonly nested: readonly (readonly [path: string, module: RemoteModule])[]
  /** Of a Sequential; null: it is none. */
  readonly layers: number | null
}

type Limits = Pick<CallOptions, 'timeoutMs' | 'signal'>

/** The tensors of a model, by name. */
export interface FoundTensors {
  readonly tensors: ReadonlyMap<string, NamedTensor>
  /** Gives the references up that were made for it. */
  end(): void
}

/** @throws (rejects) INVALID_ARGUMENT (no model; two tensors of one name), and as an owner cannot be asked */
export async function tensorsOf(op: string, model: DistributedModel, limits: Limits): Promise<FoundTensors> {
  const self = currentRuntime().info
  const tensors = new Map<string, NamedTensor>()
  const made: RRef[] = []
  const end = (): void => {
    for (const ref of made.splice(0)) ref.dispose()
  }

  const take = async (ref: RRef<Module>, rename: (key: string) => string): Promise<number | null> => {
    const owner = ref.owner()
    const { tensors: found, nested, layers } = await askOwner(owner, there.describe, [ref], limits)
    // Those in modules of this worker are the program's own.
    if (owner.id !== self.id) for (const [, module] of nested) made.push(module.getModuleRref())
    for (const tensor of found) {
      const name = rename(tensor.key)
      if (tensors.has(name)) throw invalidArgument(op, 'a model whose tensors have different names', `'${name}' twice`, 'Rename a part.')
      tensors.set(name, { ...tensor, name, owner, ref })
    }
    for (const [path, module] of nested) await take(module.getModuleRref(), (key) => rename(`${path}.${key}`))
    return layers
  }

  /** @returns the number of layers of a Sequential */
  const walk = async (part: DistributedModel, rename: (key: string) => string): Promise<number | null> => {
    if (part instanceof RemoteModule) return await take(part.getModuleRref(), rename)
    if (part instanceof RRef) return await take(part, rename)
    if (part instanceof PipelineStage) return await walk(part.module, rename)
    if (part instanceof Module) {
      const ref = rref(part as Module)
      made.push(ref)
      return await take(ref, rename)
    }
    if (Array.isArray(part)) {
      let layers = 0
      for (const each of part as readonly DistributedModel[]) {
        const from = layers
        const more = await walk(each, (key) => rename(later(key, from)))
        if (more === null)
          throw invalidArgument(op, 'Sequentials in an array', argumentText(each), 'Pass other modules by name: { encoder, decoder }.')
        layers += more
      }
      return layers
    }
    if (typeof part !== 'object' || part === null || Object.keys(part).length === 0)
      throw invalidArgument(op, 'a module, a reference to one, or modules by name', argumentText(part))
    for (const [name, each] of Object.entries(part)) await walk(each, (key) => rename(`${name}.${key}`))
    return null
  }

  try {
    await walk(model, (key) => key)
    return { tensors, end }
  } catch (error) {
    end()
    throw error
  }
}

/** '1.weight', two layers later: '3.weight'. */
function later(key: string, layers: number): string {
  const [index, ...rest] = key.split('.')
  return [Number(index) + layers, ...rest].join('.')
}

/** Runs a function of an owner, which may be this worker. */
export function askOwner<A extends readonly unknown[], T>(
  owner: WorkerInfo,
  fn: (...args: A) => T | Promise<T>,
  args: A,
  limits: Limits,
): PromiseLike<Awaited<T>> {
  if (owner.id === currentRuntime().info.id) return Promise.resolve(noGrad(() => fn(...args))) as Promise<Awaited<T>>
  return noGrad(() => call(owner, fn as never, args as never, { timeoutMs: 0, ...limits })) as PromiseLike<Awaited<T>>
}

// --- on the owner

/** The module itself. A DistributedDataParallel has its parameters under other names. */
export async function moduleOf(ref: RRef<Module>): Promise<Module> {
  const module = ref instanceof OwnerRRef && ref.hasValue ? (ref.localValue() as Module) : await ref.toHere()
  if (module instanceof PipelineStage) return module.module
  if (!(module instanceof Module))
    throw invalidArgument(
      'saveModel',
      'a reference to a module',
      argumentText(module),
      'Pass rref(module), made on the worker of the module.',
    )
  return module instanceof DistributedDataParallel ? module.module : module
}

async function describe(ref: RRef<Module>): Promise<Described> {
  const module = await moduleOf(ref)
  const tensors = Object.entries(module.stateDict()).map(
    ([key, { dtype, shape, storage }]): PartTensor => ({ key, dtype, shape: [...shape], version: storage.version }),
  )
  return { tensors, nested: remoteModulesIn(module), layers: module instanceof Sequential ? module.length : null }
}

const there = { describe } as const
expose({ 'postgrad.fullState.describe': describe })
