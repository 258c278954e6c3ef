/**
 * One batch: its plan (`BatchPlan`), and the functions that load its samples, in this thread or a worker's, for `data-loader.ts`.
 * See Note [What an epoch depends on] in `data-loader.ts`.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { isThenable, whatOf, withScope } from '@postgrad/base/internal'
import { Generator } from '@postgrad/tensor'
import { collateSeed, sampleSeed } from './random.js'

/** Plain data: it goes to workers as it is. */
export interface BatchPlan {
  /** Of the epoch, from 0. */
  readonly number: number
  /** How many samples come before it in the epoch. */
  readonly place: number
  readonly indices: readonly number[]
  /** Of the epoch. */
  readonly seed: number
}

/** The samples of a batch, each got with its own seed in the scope's generator. They are got one after the other, as in PyTorch: to load several at once, use workers. */
export async function loadSamples<T>(plan: BatchPlan, get: (index: number, k: number) => T | Promise<T>): Promise<T[]> {
  const generator = new Generator(0)
  return withScope({ generator }, async () => {
    const samples: T[] = []
    for (const [k, index] of plan.indices.entries()) {
      generator.manualSeed(sampleSeed(plan.seed, plan.place + k))
      try {
        const sample = get(index, k)
        // An await costs a turn; most datasets are synchronous.
        samples.push(isThenable(sample) ? await sample : sample)
      } catch (error) {
        throw new PostgradError('DATASET_FAILED', {
          op: 'DataLoader',
          message: `sample ${index} (in batch ${plan.number}) could not be loaded: ${textOf(error)}`,
          remedy: 'See the cause: the dataset threw it.',
          values: { index, batch: plan.number },
          cause: error,
        })
      }
    }
    return samples
  })
}

/** An error that has a code keeps it, and its remedy. Any other error of a user's own function becomes COLLATE_FAILED, with the samples that the function got. */
export async function collateSamples<T, B>(
  collate: (samples: readonly T[]) => B | Promise<B>,
  samples: readonly T[],
  plan: Pick<BatchPlan, 'number' | 'seed'> & { readonly indices?: readonly number[] },
): Promise<B> {
  try {
    return await withScope({ generator: new Generator(collateSeed(plan.seed, plan.number)) }, () => collate(samples))
  } catch (error) {
    const which = plan.indices === undefined || plan.indices.length === 0 ? '' : `, samples ${plan.indices.join(', ')}`
    const what = isPostgradError(error) ? `, in ${error.op}: ${whatOf(error)}` : `: ${textOf(error)}`
    throw new PostgradError(isPostgradError(error) ? error.code : 'COLLATE_FAILED', {
      op: 'DataLoader',
      message: `batch ${plan.number}${which}${what}`,
      ...(isPostgradError(error) && { remedy: error.remedy }),
      values: { ...(isPostgradError(error) ? error.values : {}), batch: plan.number, ...(plan.indices && { indices: plan.indices }) },
      cause: error,
    })
  }
}

export function textOf(error: unknown): string {
  if (isPostgradError(error)) return error.message
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown }
  return typeof message === 'string' ? `${name}: ${message}` : String(error)
}
