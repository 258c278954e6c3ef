/**
 * Finds the parts of a model that lies on several workers, with the names that its tensors have in the same model in one place. `save-model.ts` gathers them, `load-model.ts` scatters into them.
 *
 *     new Model { embedding: RemoteModule on a, head: Linear here }     a: weight → embedding.weight      here: weight → head.weight
 *     [stage 0 on a, stage 1 on b], Sequentials of 2 and 3 layers       a: 0.weight → 0.weight            b: 0.weight → 2.weight
 *
 * An owner describes its tensors and names the modules of other workers in them, which are asked next; so no tensor goes through a worker that is neither its owner nor the caller.
 */
import type { PostgradError } from '@postgrad/base'
import { Module, Sequential } from '@postgrad/nn'
import { expose, OwnerRRef, RRef, rref, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { DType } from '@postgrad/tensor'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { remoteModulesIn } from '../checkpoint/entry.js'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { PipelineStage } from '../pipelining/stage.js'
import { RemoteModule } from '../remote-module.js'
import { type Limits, PREFIX } from './limits.js'

/**
 * A model on several workers: a module with RemoteModules at any depth; a RemoteModule; a reference to a module, or a PipelineStage of this worker; models by name, whose names come before those of their
 * tensors; or the Sequentials of `splitSequential` in their order, which are one Sequential. `saveModel` takes a DistributedDataParallel, at any depth, as its module; `loadModel` refuses it.
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
  /** The same in the model in one place, without the `module` of a DistributedDataParallel. */
  readonly path: string
  readonly dtype: DType
  readonly shape: readonly number[]
  /** The version of the tensor's storage: a later read compares it, to see whether the program has written to the tensor. */
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
  /** How many layers a Sequential has; null for another module. */
  readonly layers: number | null
}

/** The tensors of a model, by name. */
export interface FoundTensors {
  readonly tensors: ReadonlyMap<string, NamedTensor>
  /** Gives the references up that were made for it. */
  end(): void
}

/** @throws (rejects) INVALID_ARGUMENT (no model; two tensors of one name), and as an owner cannot be asked */
export async function tensorsOf(model: DistributedModel, limits: Limits): Promise<FoundTensors> {
  const { op } = limits
  const self = currentRuntime().info
  const tensors = new Map<string, NamedTensor>()
  const made: RRef[] = []
  const end = (): void => {
    for (const ref of made.splice(0)) ref.dispose()
  }

  const take = async (ref: RRef<Module>, rename: (key: string) => string): Promise<number | null> => {
    const owner = ref.owner()
    const { tensors: found, nested, layers } = await limits.ask(owner, describe, [op, ref])
    // Those in modules of this worker are the program's own.
    if (owner.id !== self.id) for (const [, module] of nested) made.push(module.getModuleRref())
    for (const tensor of found) {
      const name = rename(tensor.path)
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
        const more = await walk(each, (key) => rename(later(op, key, from)))
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

/** '1.weight', two layers later: '3.weight'. @throws INVALID_ARGUMENT for a tensor in no layer, as a class of the program's own may have */
function later(op: string, key: string, layers: number): string {
  const [index, ...rest] = key.split('.')
  if (/^\d+$/.test(index!)) return [Number(index) + layers, ...rest].join('.')
  throw invalidArgument(
    op,
    'Sequentials in an array, whose tensors are all in layers',
    `the tensor '${key}'`,
    'Pass other modules by name: { encoder, decoder }.',
  )
}

// --- on the owner

/** The module itself. A DistributedDataParallel has its parameters under other names. @throws INVALID_ARGUMENT */
export async function moduleOf(op: string, ref: RRef<Module>): Promise<Module> {
  const value: unknown = ref instanceof OwnerRRef && ref.hasValue ? ref.localValue() : await ref.toHere()
  const module = value instanceof PipelineStage ? value.module : value
  if (!(module instanceof Module))
    throw invalidArgument(op, 'a reference to a module', argumentText(module), 'Pass rref(module), made on the worker of the module.')
  if (!(module instanceof DistributedDataParallel)) return module
  if (op === 'loadModel') throw replicaRefused(op, 'a DistributedDataParallel')
  return module.module
}

async function describe(op: string, ref: RRef<Module>): Promise<Described> {
  const module = await moduleOf(op, ref)
  const wrapped = replicasIn(module)
  if (op === 'loadModel' && wrapped.length > 0) throw replicaRefused(op, `a DistributedDataParallel as '${wrapped[0]}'`)
  const tensors = Object.entries(module.stateDict()).map(
    ([key, { dtype, shape, storage }]): PartTensor => ({
      key,
      path: pathWithout(wrapped, key),
      dtype,
      shape: [...shape],
      version: storage.version,
    }),
  )
  const nested = remoteModulesIn(module).map(([path, each]) => [pathWithout(wrapped, path), each] as const)
  return { tensors, nested, layers: module instanceof Sequential ? module.length : null }
}

function replicaRefused(op: string, got: string): PostgradError {
  return invalidArgument(
    op,
    'a model without DistributedDataParallel, since the replicas of other ranks would keep their weights',
    got,
    'Load before DistributedDataParallel.create, which gives all ranks the weights of rank 0, or load into ddp.module on every rank.',
  )
}

/** The paths of the DistributedDataParallels in a module, inner ones first. */
function replicasIn(module: Module, prefix = '', above: readonly Module[] = []): string[] {
  if (module instanceof RemoteModule || above.includes(module)) return []
  return module.namedChildren().flatMap(([name, child]) => {
    const inner = replicasIn(child, `${prefix}${name}.`, [...above, module])
    return child instanceof DistributedDataParallel ? [...inner, prefix + name] : inner
  })
}

/** 'dense.module.weight' is 'dense.weight', if 'dense' is a DistributedDataParallel. */
function pathWithout(replicas: readonly string[], key: string): string {
  return replicas.reduce(
    (path, each) => (path.startsWith(`${each}.module.`) ? each + path.slice(each.length + '.module'.length) : path),
    key,
  )
}

expose({ [`${PREFIX}describe`]: describe })
