import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { crossEntropy, noGrad } from '@postgrad/autograd'
import { BatchNorm1d, SGD } from '@postgrad/nn'
import { allReduce, broadcast, type ProcessGroup } from '@postgrad/process-group'
import type { Tensor } from '@postgrad/tensor'
import type { BufferCommHookLocation } from './buffer-hook.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { type Case, expectState, MODELS, numbers, started, TOLERANCE, target } from './golden.suite.js'
import { batchOf, lossOf, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'

const golden = JSON.parse(readFileSync(new URL('../../golden/ddp-buffers.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly { readonly size: number; readonly location: BufferCommHookLocation; readonly states: readonly Case['state'][] }[]
}

/** As the docstring of `registerBufferCommHook` has it. */
async function average(group: ProcessGroup, buffers: ReadonlyMap<string, Tensor>): Promise<void> {
  for (const [name, buffer] of buffers) {
    if (name.endsWith('num_batches_tracked')) continue
    buffer.mul_(1 / group.size)
    await allReduce(buffer, { group })
  }
}

test.each(golden.cases.map((each) => [each.location, each.size, each] as const))(
  'DDP-18 buffers that a hook averages (%s, %i ranks) are those of PyTorch, on every rank',
  async (_, __, { size, location, states }) => {
    await overSeeds(size, async (rank, group) => {
      const module = started('cnn')
      const model = await DistributedDataParallel.create(module)
      model.registerBufferCommHook(group, average, { location })
      const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
      for (let step = 0; step < 12; step++) {
        optimizer.zeroGrad()
        await model.backward(crossEntropy(await model.forward(numbers(MODELS.cnn.shape, rank, step)), target(rank, step)))
        optimizer.step()
      }
      expectState(module, states[rank]!, TOLERANCE)
    })
  },
)

test("DDP-18 a hook that gives rank 0's buffers before a forward does what is done without", async () => {
  await overSeeds(3, async (rank, group) => {
    const found: unknown[] = []
    for (const isHooked of [false, true]) {
      const model = await DistributedDataParallel.create(new BatchNorm1d(4))
      const give = async (_: null, buffers: ReadonlyMap<string, Tensor>): Promise<void> => {
        for (const buffer of buffers.values()) await broadcast(buffer, 0, { group })
      }
      if (isHooked) model.registerBufferCommHook(null, give, { location: 'preForward' })
      for (let step = 0; step < 3; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
      // Neither is called where nothing is reduced.
      await model.noSync(() => model.forward(batchOf(rank, 3)))
      await noGrad(() => model.forward(batchOf(rank, 4)))
      found.push(values(model.buffers()))
    }
    expect(found[1]).toEqual(found[0])
  })
})

test('DDP-18 with uneven inputs ranks without any call it too, behind forward by default', async () => {
  for (const location of ['preForward', undefined] as const) {
    const counts = await overSeeds(3, async (rank, group) => {
      const model = await DistributedDataParallel.create(new BatchNorm1d(4))
      let count = 0
      const hook = async (state: ProcessGroup, buffers: ReadonlyMap<string, Tensor>): Promise<void> => {
        expect([...buffers.keys()]).toEqual(['running_mean', 'running_var', 'num_batches_tracked'])
        // Where it is called: the batch has been counted, or not.
        const isBehind = rank === 2 && count < 4 && (await buffers.get('num_batches_tracked')!.item()) === count + 1
        if (rank === 2 && count < 4) expect(isBehind).toBe(location === undefined)
        count++
        await average(state, buffers)
      }
      model.registerBufferCommHook(group, hook, location === undefined ? {} : { location })
      await model.join(async () => {
        for (let step = 0; step < 2 + rank; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
      })
      return [count, values(model.buffers())] as const
    })
    for (const [count, buffers] of counts) {
      expect(count).toBe(4)
      expect(buffers).toEqual(counts[0]![1])
    }
  }
})

test('DDP-18 what cannot be is refused, and what a hook throws is the error of the forward pass', async () => {
  await overSeeds(1, async () => {
    const model = await DistributedDataParallel.create(new BatchNorm1d(4))
    expect(() => model.registerBufferCommHook(null, 3 as never)).toThrow('the hook')
    expect(() => model.registerBufferCommHook(null, () => {}, { location: 'inForward' as never })).toThrow("'preForward' or 'postForward'")
    expect(() => model.registerBufferCommHook(null, () => {}, { place: 'preForward' } as never)).toThrow('place')
    model.registerBufferCommHook(null, () => {
      throw new Error('no')
    })
    expect(() => model.registerBufferCommHook(null, () => {})).toThrow(expect.objectContaining({ code: 'DDP_COMM_HOOK_EXISTS' }))
    expect(await failure(model.forward(batchOf(0, 0)))).toMatchObject({ message: 'no' })
    const still = await DistributedDataParallel.create(new BatchNorm1d(4), { broadcastBuffers: false })
    expect(() => still.registerBufferCommHook(null, () => {})).toThrow('broadcastBuffers')
    model.dispose()
    expect(() => model.registerBufferCommHook(null, () => {})).toThrow(expect.objectContaining({ code: 'DDP_DISPOSED' }))
    // Its hook would throw 'no'.
    expect(await failure(model.reduceGradients())).toMatchObject({ code: 'DDP_DISPOSED' })
  })
})
