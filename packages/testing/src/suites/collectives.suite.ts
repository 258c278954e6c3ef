/** Small collectives for `explore`: every order in which their messages can come must give the same bits. */
import { allReduce, barrier, broadcast, initProcessGroup, type ProcessGroup, recv, send } from '@postgrad/process-group'
import { currentWorker } from '@postgrad/rpc'
import { full, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { type Exploration, explore } from '../explore/explore.js'

export const rank = (): number => currentWorker().info.id
/** Whose sum depends on its order. */
export const own = (): Tensor => tensor([[1e8, 1, -1e8][rank()]!, rank()])

export const PROGRAMS: readonly (readonly [string, (group: ProcessGroup) => Promise<unknown>])[] = [
  ['a reduction', async () => (await allReduce(own())).toArray()],
  ['two at once', async () => (await Promise.all([allReduce(own()), broadcast(own(), 1)])).map((x) => x.toArray())],
  [
    'a reduction by slices, from heap to heap',
    async (group) => {
      // Two slices of two pieces each.
      group.limits = { oneStepBytes: 0, rootBytes: 0, pieceBytes: 64 }
      group.heaps = [0, 0, 2]
      return (await allReduce(full([64], [1e8, 1, -1e8][rank()]!))).toArray()
    },
  ],
  [
    'tensors that wait for room',
    async (group) => {
      group.direct.window = { tensorsMax: 1, bytesMax: 1e9 }
      await barrier()
      if (rank() === 0) return Promise.all([1, 2, 2].map((n) => send(tensor([n]), 1))).then(() => null)
      const x = zeros([1])
      if (rank() === 1) for (let n = 0; n < 3; n++) await recv(x, 0)
      return x.toArray()
    },
  ],
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
export function everyOrder(program: (group: ProcessGroup) => Promise<unknown>, ordersMax: number): Promise<Exploration> {
  return explore({ workers: 3, ordersMax, seeds: 20 }, (sim) => {
    const ends = sim.workers.map(({ name }) =>
      sim.on(name).run(async () => {
        const group = await initProcessGroup()
        return program(group)
      }),
    )
    return Promise.all(ends)
  })
}
