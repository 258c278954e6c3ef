/**
 * One batch: what is asked for (`BatchPlan`), and how its samples are got, in this thread or in a worker's. The DataLoader stands above.
 * See Note [What an epoch depends on] in `data-loader.ts`.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { isThenable, withScope } from '@postgrad/base/internal'
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

/** The samples of a batch, each got with its own seed in the scope's generator. They are got one after the other, as in PyTorch: more at once is what workers are for. */
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
          remedy: 'See the cause: the error is of the dataset.',
          values: { index, batch: plan.number },
          cause: error,
        })
      }
    }
    return samples
  })
}

/** An error that has a code keeps it; what a user's own function throws is told with the samples that it got. */
export async function collateSamples<T, B>(
  collate: (samples: readonly T[]) => B | Promise<B>,
  samples: readonly T[],
  plan: Pick<BatchPlan, 'number' | 'seed'> & { readonly indices?: readonly number[] },
): Promise<B> {
  try {
    return await withScope({ generator: new Generator(collateSeed(plan.seed, plan.number)) }, () => collate(samples))
  } catch (error) {
    const which = plan.indices === undefined ? '' : `, samples ${plan.indices.join(', ')}`
    throw new PostgradError(isPostgradError(error) ? error.code : 'COLLATE_FAILED', {
      op: 'DataLoader',
      message: `batch ${plan.number}${which}: ${textOf(error)}`,
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
