/** Small collectives in the orders in which their messages can come: the same bits in each, nothing left, and a typed error at survivors when one dies. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { allGatherObject, allReduce, barrier, destroyProcessGroup, initProcessGroup, newGroup } from '@postgrad/process-group'
import { tensor } from '@postgrad/tensor'
import { expectSound } from '../check/expect-sound.js'
import { simulate } from '../simulate/simulate.js'
import { everyOrder, own, PROGRAMS, rank } from './collectives.suite.js'

test.each(PROGRAMS)('PG-10, PG-12: %s gives the same bits in each of many orders', async (_name, program) => {
  expect((await everyOrder(program, 60)).orders).toBeGreaterThan(15)
})

test('PG-4, PG-10, PG-18, PG-29: groups that are made, used and ended leave nothing, and every message is accounted for', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const simulation = await simulate({ workers: 3, seed }, async (sim) =>
      Promise.all(
        sim.workers.map(({ name }) =>
          sim.on(name).run(async () => {
            await initProcessGroup()
            const group = await newGroup([0, 2])
            const x = own()
            if (group.rank >= 0) await allReduce(x, { group })
            const said = await allGatherObject(rank())
            await barrier()
            destroyProcessGroup()
            return [x.toArray(), said]
          }),
        ),
      ),
    )
    expect(simulation.result).toEqual([
      [
        [0, 2],
        [0, 1, 2],
      ],
      [
        [1, 1],
        [0, 1, 2],
      ],
      [
        [0, 2],
        [0, 1, 2],
      ],
    ])
    expectSound(simulation)
  }
})

test('PG-24, PG-27: a worker that is started again joins the group that is made again', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const simulation = await simulate({ workers: 3, seed }, async (sim) => {
      const make = async () => {
        await initProcessGroup({ timeoutMs: 0 })
        return (await allReduce(own())).toArray()
      }
      const runs = sim.workers.map(({ name }) => sim.on(name).run(make))
      await Promise.all(runs)
      const waits = [0, 1].map((id) =>
        sim.on(`worker${id}`).run(async () => {
          const code = await barrier().then(
            () => 'none',
            (error: unknown) => (isPostgradError(error) ? error.code : String(error)),
          )
          destroyProcessGroup()
          return code
        }),
      )
      sim.restart('worker2')
      const codes = await Promise.all(waits)
      await sim.ready('worker2')
      const names = ['worker0', 'worker1', 'worker2']
      const again = async () => {
        await initProcessGroup({ ranks: names, timeoutMs: 0 })
        return (await allReduce(tensor([1]))).toArray()
      }
      return [codes, await Promise.all(names.map((name) => sim.on(name).run(again)))]
    })
    expect(simulation.result).toEqual([
      ['GROUP_BROKEN', 'GROUP_BROKEN'],
      [[3], [3], [3]],
    ])
  }
})
