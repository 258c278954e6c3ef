/**
 * What a thread of the pool runs. It makes each dataset at the first batch that needs it, and keeps it: a pool belongs to one DataLoader.
 * Whatever happens becomes a payload: the pool's own way for errors would lose their class, code and cause.
 */
import { workerData } from 'node:worker_threads'
import { type Payload, PayloadCodec, transferables } from '@postgrad/wire/internal'
import { move, transferableSymbol, valueSymbol } from 'piscina'
import { collateSamples, loadSamples } from './batch.js'
import { defaultCollate } from './collate.js'
import type { Dataset } from './dataset.js'
import { makeDataset } from './worker-dataset.js'
import type { BatchTask, WorkerBoot } from './worker-protocol.js'

const boot = workerData as WorkerBoot
const payloads = new PayloadCodec(null)
const making = new Map<number, Promise<Dataset<unknown>>>()

export default async function run(task: BatchTask): Promise<unknown> {
  const payload = await reply(task)
  return move({ [transferableSymbol]: transferables(payload), [valueSymbol]: payload })
}

async function reply({ plan, items, collate }: BatchTask): Promise<Payload> {
  try {
    const datasets = new Map<number, Dataset<unknown>>()
    for (const [source] of items) if (!datasets.has(source)) datasets.set(source, await datasetOf(source))
    const samples = await loadSamples(plan, (_, k) => {
      const [source, index] = items[k]!
      return datasets.get(source)!.get(index)
    })
    return payloads.encodeResult(collate ? await collateSamples(defaultCollate, samples, plan) : samples)
  } catch (error) {
    return payloads.encodeError(error)
  }
}

function datasetOf(source: number): Promise<Dataset<unknown>> {
  let dataset = making.get(source)
  if (dataset === undefined) {
    dataset = makeDataset(boot.sources[source]!)
    making.set(source, dataset)
  }
  return dataset
}
