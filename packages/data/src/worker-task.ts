/**
 * The program of a worker's thread (`worker-pool.ts`), which runs one job per batch. It makes each dataset for its first batch, and
 * keeps it.
 */
import { collateSamples, loadSamples } from './batch.js'
import { defaultCollate } from './collate.js'
import type { Dataset } from './dataset.js'
import { makeDataset } from './worker-dataset.js'
import type { BatchTask, WorkerBoot } from './worker-protocol.js'

const making = new Map<number, Promise<Dataset<unknown>>>()

/** The thread's `JobProgram`: it has this one job. */
export async function runJob(_name: string, [task]: readonly [BatchTask], { sources }: WorkerBoot): Promise<unknown> {
  const { plan, items, collate } = task
  const datasetOf = (source: number): Promise<Dataset<unknown>> => {
    let dataset = making.get(source)
    if (dataset === undefined) {
      dataset = makeDataset(sources[source]!)
      making.set(source, dataset)
    }
    return dataset
  }
  const datasets = new Map<number, Dataset<unknown>>()
  for (const [source] of items) if (!datasets.has(source)) datasets.set(source, await datasetOf(source))
  const samples = await loadSamples(plan, (_, k) => {
    const [source, index] = items[k]!
    return datasets.get(source)!.get(index)
  })
  return collate ? collateSamples(defaultCollate, samples, plan) : samples
}
