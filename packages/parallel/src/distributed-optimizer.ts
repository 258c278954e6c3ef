/**
 * An optimizer over parameters that live on several workers: one local optimizer per owner, all stepped at once with the gradients of a
 * distributed context. Its owner's side is `local-optimizer.ts`. PyTorch: `torch.distributed.optim.DistributedOptimizer`.
 */
import { PostgradError } from '@postgrad/base'
import type { DistAutogradContext } from '@postgrad/dist-autograd'
import { currentDistAutograd } from '@postgrad/dist-autograd/internal'
import { Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop, SGD } from '@postgrad/nn'
import { call, currentWorker, expose, type RRef, type WorkerInfo } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { type LocalOptimizer, makeLocalOptimizer, type OptimizerClass, stepLocalOptimizer } from './local-optimizer.js'

/** What the constructor of an optimizer class takes beside the parameters. */
export type OptionsOf<C extends OptimizerClass> = ConstructorParameters<C>[1]

export interface StepOptions<Settings = object> {
  /**
   * Set on every parameter group of every owner before this step, and kept from then on: a schedule passes `{ lr }`. They travel with the step, so
   * they cost no message.
   */
  readonly settings?: Partial<Settings>
  /** Time for the step on each owner in ms; default the worker's `rpcTimeoutMs`; 0 is no limit. */
  readonly timeoutMs?: number
}

interface Part {
  readonly owner: WorkerInfo
  /** How the creation ended; waiting for it never throws, so that nothing stays unhandled if nobody steps. */
  readonly made: Promise<{ readonly optimizer: RRef<LocalOptimizer> } | { readonly error: unknown }>
}

export class DistributedOptimizer<C extends OptimizerClass = OptimizerClass> {
  private readonly parts: readonly Part[]
  private disposed = false

  /**
   * Makes one `optimizerClass` on every owner of `params`, with the same options. The class must be exposed on the owners (those of nn are). Returns at
   * once; `ready()` and the first `step` wait for the owners.
   * @throws NO_PARAMETERS, FUNCTION_NOT_EXPOSED, RPC_NOT_INITIALIZED
   */
  constructor(optimizerClass: C, params: readonly RRef<Tensor>[], options: OptionsOf<C> = {} as OptionsOf<C>) {
    if (params.length === 0) {
      throw new PostgradError('NO_PARAMETERS', {
        op: 'DistributedOptimizer',
        expected: 'at least one RRef to a parameter',
        got: 'none',
        remedy: 'Pass the RRefs of the parameters of all workers.',
      })
    }
    const name = currentWorker().registry.nameOf(optimizerClass)
    this.parts = [...groupByOwner(params)].map(([owner, own]) => ({
      owner,
      made: call(owner, makeLocalOptimizer, [name, own, options]).then(
        (optimizer) => ({ optimizer }),
        (error: unknown) => ({ error }),
      ),
    }))
  }

  /** Waits until every owner has its optimizer. Rejects with OPTIMIZER_CREATION_FAILED (values: owner; cause: its error). */
  async ready(): Promise<void> {
    await this.optimizers()
  }

  /**
   * Steps every owner's parameters with the gradients that the owner has in the context; a parameter without one stays untouched. Resolves when all
   * owners have stepped. Steps of several callers come one after the other on each owner, in no particular order over owners. No `zeroGrad`: gradients
   * belong to the context. Rejects with CONTEXT_NOT_FOUND, CONTEXT_RELEASED, OPTIMIZER_DISPOSED, OPTIMIZER_CREATION_FAILED, OPTIMIZER_STEP_FAILED
   * (values: owners; cause: the first owner's error: INVALID_ARGUMENT for a setting that its groups do not have); the other owners have stepped then.
   * @param context a context, or its id
   */
  async step(context: DistAutogradContext | bigint, { settings = {}, ...options }: StepOptions<OptionsOf<C>> = {}): Promise<void> {
    const contextId = typeof context === 'object' && context !== null ? context.id : context
    currentDistAutograd().container.retrieve(contextId, 'DistributedOptimizer.step')
    if (this.disposed) throw disposedError()
    const optimizers = await this.optimizers()
    const steps = await Promise.allSettled(
      optimizers.map(({ owner, optimizer }) => call(owner, stepLocalOptimizer, [optimizer, contextId, settings], options)),
    )
    throwFirst(
      'OPTIMIZER_STEP_FAILED',
      'step',
      steps.flatMap((step, index) => (step.status === 'rejected' ? [{ owner: optimizers[index]!.owner, error: step.reason }] : [])),
    )
  }

  /** Gives up the owners' optimizers and what they have gathered (momentum). Idempotent; stepping afterwards rejects with OPTIMIZER_DISPOSED. */
  dispose(): void {
    this.disposed = true
    for (const { made } of this.parts) void made.then((part) => 'optimizer' in part && part.optimizer.dispose())
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  private async optimizers(): Promise<{ owner: WorkerInfo; optimizer: RRef<LocalOptimizer> }[]> {
    const made = await Promise.all(this.parts.map(async ({ owner, made: part }) => ({ owner, ...(await part) })))
    const failures = made.flatMap((part) => ('error' in part ? [part] : []))
    throwFirst('OPTIMIZER_CREATION_FAILED', 'DistributedOptimizer', failures)
    return made as { owner: WorkerInfo; optimizer: RRef<LocalOptimizer> }[]
  }
}

/** In order of first appearance; RRefs of one owner keep theirs. */
function groupByOwner(params: readonly RRef<Tensor>[]): Map<WorkerInfo, RRef<Tensor>[]> {
  const owners = new Map<number, WorkerInfo>()
  const groups = new Map<WorkerInfo, RRef<Tensor>[]>()
  for (const param of params) {
    const { id } = param.owner()
    const owner = owners.get(id) ?? param.owner()
    owners.set(id, owner)
    groups.set(owner, [...(groups.get(owner) ?? []), param])
  }
  return groups
}

function disposedError(): PostgradError {
  return new PostgradError('OPTIMIZER_DISPOSED', {
    op: 'DistributedOptimizer.step',
    message: 'this optimizer has been given up',
    remedy: 'Dispose of it after its last step.',
  })
}

function throwFirst(code: string, op: string, failures: readonly { readonly owner: WorkerInfo; readonly error: unknown }[]): void {
  const [first] = failures
  if (first === undefined) return
  const names = failures.map(({ owner }) => owner.name)
  const why = first.error instanceof Error ? first.error.message : String(first.error)
  throw new PostgradError(code, {
    op,
    message: `the optimizer on ${names.map((name) => `'${name}'`).join(', ')} failed: ${why}`,
    remedy: 'See the cause; the optimizers of other owners are not undone.',
    cause: first.error,
    values: { owners: names },
  })
}

expose({ SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop })
