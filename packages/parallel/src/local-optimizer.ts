/**
 * An owner's side of the distributed optimizer: a local optimizer over the parameters that live here, stepped with the gradients that this worker
 * has in a context. `distributed-optimizer.ts` calls it from elsewhere. PyTorch: `_LocalOptimizer`.
 */
import { noGrad } from '@postgrad/autograd'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { getGradients } from '@postgrad/dist-autograd/internal'
import type { Optimizer } from '@postgrad/nn'
import { type AnyClass, currentWorker, expose, type RRef, rref } from '@postgrad/rpc'
import { isTensor, type Tensor } from '@postgrad/tensor'

/** A class of optimizers: what it is made of is a list of parameters and options that can travel. */
// biome-ignore lint/suspicious/noExplicitAny: any optimizer's options; `unknown` would refuse every typed one
export type OptimizerClass<O = any> = new (params: Tensor[], options: O) => Optimizer

export class LocalOptimizer {
  private readonly optimizer: Optimizer

  constructor(optimizer: Optimizer) {
    this.optimizer = optimizer
  }

  /** Settings of all groups, from here on; all of them or none. @throws INVALID_ARGUMENT */
  set(settings: object): void {
    this.optimizer.set(settings)
  }

  /** Synchronous: steps of several callers come one after the other, in the order of their calls. */
  step(gradients: ReadonlyMap<Tensor, Tensor>): void {
    noGrad(() => this.optimizer.step(gradients))
  }
}

/** Makes the optimizer that is exposed under `name`, on the owner of `params`. */
export async function makeLocalOptimizer(name: string, params: RRef<Tensor>[], options: unknown): Promise<RRef<LocalOptimizer>> {
  const worker = currentWorker()
  const { target, isClass } = worker.registry.lookup(name, worker.info.name)
  if (!isClass) {
    throw new PostgradError('NOT_AN_OPTIMIZER', {
      op: 'DistributedOptimizer',
      expected: `a class of optimizers as '${name}'`,
      got: 'a function',
      remedy: 'Pass a class such as SGD.',
      values: { name },
    })
  }
  const values = await Promise.all(params.map((param) => param.toHere()))
  values.forEach(checkParameter)
  return rref(new LocalOptimizer(new (target as AnyClass)(values, options) as Optimizer))
}

/** Steps with what this worker has in the context. A worker that the context has not reached has nothing: its parameters stay as they are. */
export async function stepLocalOptimizer(optimizer: RRef<LocalOptimizer>, contextId: bigint, settings: object): Promise<void> {
  const local = await optimizer.toHere()
  local.set(settings)
  const gradients = gradientsIn(contextId)
  if (gradients !== null) local.step(gradients)
}

function gradientsIn(contextId: bigint): Map<Tensor, Tensor> | null {
  try {
    return getGradients(contextId)
  } catch (error) {
    if (isPostgradError(error, 'CONTEXT_NOT_FOUND')) return null
    throw error
  }
}

function checkParameter(value: unknown, index: number): void {
  if (isTensor(value) && value.requiresGrad && value.isLeaf) return
  throw new PostgradError('NOT_A_PARAMETER', {
    op: 'DistributedOptimizer',
    expected: `RRef ${index} to hold a leaf tensor that requires grad`,
    got: isTensor(value) ? 'a tensor that is none' : value === null ? 'null' : typeof value,
    remedy: "Pass RRefs to parameters, as rref(parameter) makes them on the parameter's owner.",
    values: { index },
  })
}

expose({ 'postgrad.makeLocalOptimizer': makeLocalOptimizer, 'postgrad.stepLocalOptimizer': stepLocalOptimizer })
