/**
 * References to all parameters of a model whose modules live on several workers, as `DistributedOptimizer` takes them. PyTorch's idea, never built:
 * `_get_all_remote_params(model)` (pytorch#33115).
 */
import { PostgradError } from '@postgrad/base'
import { Module } from '@postgrad/nn'
import { type CallOptions, call, expose, RRef, rref } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { RemoteModule } from './remote-module.js'

/**
 * References to all parameters of a tree of modules, in the order of `parameters()`. Modules here give references to their own tensors. Each RemoteModule in
 * the tree gives references to the parameters of its module, which may contain RemoteModules, too. A tensor or RemoteModule in several places is listed once. A
 * tensor that two modules on another worker share is listed twice, and an optimizer refuses it (DUPLICATE_PARAMETER). Dispose of the references when you do not
 * need them any more.
 * @throws INVALID_ARGUMENT if a value is not a module; the errors of `remoteParameters`
 * @example
 * class Net extends Module {
 *   local = new Linear(2, 4)
 *   far = new RemoteModule('worker1', Linear, [4, 1])
 * }
 * const parameters = await getAllRemoteParams(new Net())
 * parameters.map((each) => each.ownerName()) // ['worker0', 'worker0', 'worker1', 'worker1']
 */
export async function getAllRemoteParams(model: Module | RRef<Module>, options: CallOptions = {}): Promise<RRef<Tensor>[]> {
  if (model instanceof RRef) return await ofReference(model, options)
  if (!(model instanceof Module)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'getAllRemoteParams',
      expected: 'a module, or an RRef to one',
      got: model === null ? 'null' : typeof model,
      remedy: 'Pass the model itself.',
    })
  }
  return await resolved(partsOf(model), options)
}

/** The parts of a tree of modules, in order, each once. */
function partsOf(module: Module): (RRef<Tensor> | RemoteModule)[] {
  const parts: (Tensor | RemoteModule)[] = []
  gather(module, parts, new Set())
  const seen = new Set<Tensor | bigint>()
  const once = parts.filter((part) => {
    const id = part instanceof RemoteModule ? part.getModuleRref().rrefId : part
    return seen.has(id) ? false : seen.add(id)
  })
  return once.map((part) => (part instanceof RemoteModule ? part : rref(part)))
}

async function resolved(parts: readonly (RRef<Tensor> | RemoteModule)[], options: CallOptions): Promise<RRef<Tensor>[]> {
  const found = await Promise.all(parts.map((part) => (part instanceof RemoteModule ? ofReference(part.getModuleRref(), options) : [part])))
  return found.flat()
}

/** A module's own parameters, then those of its children. */
function gather(module: Module, into: (Tensor | RemoteModule)[], seen: Set<Module>): void {
  if (seen.has(module)) return
  seen.add(module)
  if (module instanceof RemoteModule) {
    into.push(module)
    return
  }
  into.push(...module.parameters({ recurse: false }))
  for (const child of module.children()) gather(child, into, seen)
}

/** An owner gives what it has and names who has the rest: references that went through it would stay with it. */
async function ofReference(ref: RRef<Module>, options: CallOptions): Promise<RRef<Tensor>[]> {
  const parts = await call(ref.owner(), partsThere, [ref], options)
  try {
    return await resolved(parts, options)
  } finally {
    for (const part of parts) if (part instanceof RemoteModule) part.dispose()
  }
}

const partsThere = async (ref: RRef<Module>): Promise<(RRef<Tensor> | RemoteModule)[]> => partsOf(await ref.toHere())

expose({ 'postgrad.paramParts': partsThere })
