import { readFileSync } from 'node:fs'
import { test } from '@jest/globals'
import { crossEntropy } from '@postgrad/autograd'
import { SGD } from '@postgrad/nn'
import { allReduce, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import type { BufferCommHookLocation } from './buffer-hook.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { type Case, expectClose, expectState, MODELS, numbers, started, TOLERANCE, target } from './golden.suite.js'
import { overSeeds } from './sim-ranks.suite.js'

/** Of every third batch the pass is reduced, and a step follows. */
const golden = JSON.parse(readFileSync(new URL('../../golden/ddp-statistics.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly {
    readonly counts: readonly number[]
    readonly location: BufferCommHookLocation | null
    readonly ranks: readonly { readonly seen: readonly (readonly number[])[]; readonly state: Case['state'] }[]
  }[]
}

async function average(group: ProcessGroup, buffers: ReadonlyMap<string, Tensor>): Promise<void> {
  for (const [name, buffer] of buffers) {
    if (name.endsWith('num_batches_tracked')) continue
    buffer.mul_(1 / group.size)
    await allReduce(buffer, { group })
  }
}

test.each(golden.cases.map((each) => [each.counts.join(', '), each.location ?? 'none', each] as const))(
  'DDP-9 statistics of batch norms under noSync, ranks with %s batches, hook: %s, are those of PyTorch behind each batch',
  async (_, __, { counts, location, ranks }) => {
    await overSeeds(counts.length, async (rank, group) => {
      const module = started('cnn')
      const model = await DistributedDataParallel.create(module)
      if (location !== null) model.registerBufferCommHook(group, average, { location })
      const optimizer = new SGD(model.parameters(), { lr: 0.1 })
      const [mean] = module.buffers()
      const train = async (): Promise<void> => {
        for (let step = 0; step < counts[rank]!; step++) {
          const pass = async () =>
            model.backward(crossEntropy(await model.forward(numbers(MODELS.cnn.shape, rank, step)), target(rank, step)))
          const isQuiet = step % 3 !== 2
          await (isQuiet ? model.noSync(pass) : pass())
          expectClose(`rank ${rank} behind batch ${step}`, mean!, ranks[rank]!.seen[step]!, TOLERANCE)
          if (isQuiet) continue
          optimizer.step()
          optimizer.zeroGrad()
        }
      }
      await (new Set(counts).size > 1 ? model.join(train) : train())
      expectState(module, ranks[rank]!.state, TOLERANCE)
    })
  },
)

test.each([[[3, 4]], [[4, 3]], [[5, 6, 4]]])(
  'DDP-9 statistics: after join, ranks that had %j batches agree on which forward makes buffers alike',
  async (counts) => {
    await overSeeds(counts.length, async (rank) => {
      const model = await DistributedDataParallel.create(started('cnn'))
      const forward = () => model.forward(numbers(MODELS.cnn.shape, rank, 0))
      await model.join(async () => {
        for (let step = 0; step < counts[rank]!; step++) {
          const pass = async () => model.backward((await forward()).sum())
          await (step % 3 !== 2 ? model.noSync(pass) : pass())
        }
      })
      // A rank that took it for the first would wait for the others.
      await model.noSync(forward)
    })
  },
)
