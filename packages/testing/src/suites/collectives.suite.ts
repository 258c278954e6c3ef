/** Small collectives for `explore`: every order in which their messages can come must give the same bits. */
import { allReduce, broadcast, initProcessGroup, recv, send } from '@postgrad/process-group'
import { currentWorker } from '@postgrad/rpc'
import { type Tensor, tensor, zeros } from '@postgrad/tensor'
import { type Exploration, explore } from '../explore/explore.js'

export const rank = (): number => currentWorker().info.id
/** Whose sum depends on its order. */
export const own = (): Tensor => tensor([[1e8, 1, -1e8][rank()]!, rank()])

export const PROGRAMS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['a reduction', async () => (await allReduce(own())).toArray()],
  ['two at once', async () => (await Promise.all([allReduce(own()), broadcast(own(), 1)])).map((x) => x.toArray())],
  [
    'tensors around the ring',
    async () => {
      const x = zeros([2])
      await send(own(), (rank() + 1) % 3)
      await recv(x)
      return x.toArray()
    },
  ],
]

/** Three ranks make a group and run it; the orders beyond the search are drawn. */
export function everyOrder(program: () => Promise<unknown>, ordersMax: number): Promise<Exploration> {
  return explore({ workers: 3, ordersMax, seeds: 20 }, (sim) => {
    const ends = sim.workers.map(({ name }) =>
      sim.on(name).run(async () => {
        await initProcessGroup()
        return program()
      }),
    )
    return Promise.all(ends)
  })
}
