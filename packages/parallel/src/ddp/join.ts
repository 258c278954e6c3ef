/**
 * Training with uneven inputs: a rank without inputs continues to take part in the collectives of the others, until no rank has any. `Joinable` classes define
 * its part; `DistributedDataParallel` is one. PyTorch: `torch.distributed.algorithms.join`.
 *
 *     rank 0   batch  batch  batch  ·after·
 *     rank 1   batch  main   main   ·after·      `notify` of each batch counts who has one; `main` is `mainHook`, `after` is `postHook`
 *
 * `notify` is an all-reduce in which every rank says whether it has a batch. So all ranks learn in the same iteration who is left.
 */
import { PostgradError } from '@postgrad/base'
import { allReduce, type ProcessGroup } from '@postgrad/process-group'
import { tensor } from '@postgrad/tensor'
import { argumentText, checkFunction, checkOptions, invalidArgument } from '@postgrad/tensor/internal'

/** Options of `join`. */
export interface UnevenInputsOptions {
  /** Whether to join. Default true. false only runs `fn`, for programs whose ranks have equally many inputs. */
  readonly enable?: boolean
  /** Whether all ranks fail with JOIN_TERMINATED as soon as the first rank has no input left; default false. */
  readonly throwOnEarlyTermination?: boolean
  /** Whether gradients are divided by the number of all ranks (default true), or by the number of ranks that still have inputs. */
  readonly divideByInitialWorldSize?: boolean
}

/** The collectives of a rank without inputs, for one Joinable. PyTorch: `JoinHook`. */
export interface JoinHook {
  /** Takes part in the collectives of one iteration of the other ranks. */
  mainHook(): void | PromiseLike<void>
  /** Called at the end, on all ranks. `isLastJoiner` is true if no other rank had inputs for longer than this one. */
  postHook(isLastJoiner: boolean): void | PromiseLike<void>
}

/** An object that can take part in `join`. In each iteration it awaits `context.notify(this)` before its other collectives. PyTorch: `Joinable`. */
export interface Joinable {
  /** The group whose collectives the object uses. PyTorch: `join_process_group`. */
  readonly joinGroup: ProcessGroup
  /** The `join` that is under way; `join` sets it. Null outside of a `join`. */
  joinContext: JoinContext | null
  joinHook(options: Required<UnevenInputsOptions>): JoinHook
}

/**
 * A `join` that is under way on this rank.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * await model.join(async () => {
 *   const context: JoinContext | null = model.joinContext
 *   await model.backward((await model.forward(x)).sum())
 *   context?.active // [0, 1]
 * })
 */
export class JoinContext {
  /** The options of the `join`, with their defaults. */
  readonly options: Required<UnevenInputsOptions>
  private readonly first: Joinable
  private readonly group: ProcessGroup
  /** The ranks of the group that had an input in the last iteration that this rank knows of. */
  active: readonly number[]

  /** @internal */
  constructor(first: Joinable, options: Required<UnevenInputsOptions>) {
    this.first = first
    this.options = options
    this.group = first.joinGroup
    this.active = [...this.group.ranks.keys()]
  }

  /**
   * Says that this rank has an input. Only the first object in the list of `join` does so; for the others the call does nothing.
   * @throws JOIN_TERMINATED if a rank has no input left and `throwOnEarlyTermination` is set
   */
  async notify(joinable: Joinable): Promise<void> {
    if (joinable !== this.first) return
    await this.count(true)
    if (this.options.throwOnEarlyTermination && this.active.length < this.group.size) {
      throw terminated('Detected at least one rank that exhausted inputs. Throwing across all ranks.', this.active)
    }
  }

  /** @internal */
  async count(hasInput: boolean): Promise<void> {
    this.active = await ranksThat(hasInput, this.group)
  }
}

/** The number that each rank of a group gives, by rank: a collective. */
export async function numbersOf(own: number, group: ProcessGroup): Promise<number[]> {
  const numbers = tensor(
    Array.from({ length: group.size }, (_, rank) => (rank === group.rank ? own : 0)),
    { dtype: 'int32', device: 'cpu' },
  )
  await allReduce(numbers, { group })
  return [...numbers.dataSync()]
}

/** The ranks of a group for which `flag` is true: a collective. */
export async function ranksThat(flag: boolean, group: ProcessGroup): Promise<number[]> {
  const all = await numbersOf(Number(flag), group)
  return [...all.keys()].filter((rank) => all[rank] === 1)
}

/**
 * Runs `fn`, a loop over this rank's inputs, and then takes part in the iterations of ranks that have more inputs. If `fn` throws, `join` rejects with that
 * error. The other ranks then wait for this rank until their deadlines, unless it ends. PyTorch: `with Join(joinables, …)`.
 * @throws INVALID_ARGUMENT if an argument is not valid; JOIN_TERMINATED if a rank has no input left and `throwOnEarlyTermination` is set; the errors of
 * `allReduce`
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * const optimizer = new SGD(model.parameters(), { lr: 0.1 })
 * await join([model], async () => {
 *   for (let batch = 0; batch <= getRank(); batch++) { // rank 1 has one batch more
 *     await model.backward((await model.forward(x)).sum())
 *     optimizer.step()
 *   }
 * })
 */
export async function join<T>(joinables: readonly Joinable[], fn: () => T | Promise<T>, options: UnevenInputsOptions = {}): Promise<T> {
  if (!Array.isArray(joinables)) throw invalidArgument('join', 'an array of Joinables', argumentText(joinables), 'Write join([model], fn).')
  const others = joinables.filter((joinable) => typeof joinable?.joinHook !== 'function')
  if (others.length > 0) {
    const remedy =
      'Pass objects as of DistributedDataParallel or ZeroRedundancyOptimizer. Other objects take no part in collectives, and need not join.'
    throw invalidArgument('join', 'Joinables', argumentText(others[0]), remedy)
  }
  checkFunction('join', 'the loop over the inputs', fn)
  checkOptions('join', options, ['enable', 'throwOnEarlyTermination', 'divideByInitialWorldSize'])
  const [first] = joinables
  if (first === undefined) throw invalidArgument('join', 'at least one Joinable', 'none')
  if (joinables.some(({ joinGroup }) => joinGroup !== first.joinGroup)) {
    throw invalidArgument(
      'join',
      'Joinables of one process group',
      'several',
      'Using a join over different process groups is not supported.',
    )
  }
  if (joinables.some(({ joinContext }) => joinContext !== null)) {
    throw invalidArgument('join', 'Joinables that are in no other join', 'one that is in a join')
  }
  const { enable = true, throwOnEarlyTermination = false, divideByInitialWorldSize = true } = options
  if (!enable) return fn()
  const settings = { enable, throwOnEarlyTermination, divideByInitialWorldSize }
  const context = new JoinContext(first, settings)
  const hooks = joinables.map((joinable) => joinable.joinHook(settings))
  for (const joinable of joinables) joinable.joinContext = context
  try {
    const result = await fn()
    await shadow(context, hooks, first.joinGroup)
    return result
  } finally {
    for (const joinable of joinables) joinable.joinContext = null
  }
}

async function shadow(context: JoinContext, hooks: readonly JoinHook[], { rank }: ProcessGroup): Promise<void> {
  let isLastJoiner = true
  for (;;) {
    await context.count(false)
    if (context.active.length === 0) break
    isLastJoiner = false
    if (context.options.throwOnEarlyTermination) throw terminated(`Rank ${rank} exhausted all inputs.`, context.active)
    for (const hook of hooks) await hook.mainHook()
  }
  for (const hook of hooks) await hook.postHook(isLastJoiner)
}

function terminated(message: string, active: readonly number[]): PostgradError {
  return new PostgradError('JOIN_TERMINATED', {
    op: 'join',
    message,
    remedy: 'Give all ranks equally many inputs, or leave { throwOnEarlyTermination } out.',
    values: { active },
  })
}
