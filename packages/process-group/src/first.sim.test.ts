import { expect, test } from '@jest/globals'
import { tensor } from '@postgrad/tensor'
import { allReduce, barrier, broadcast, ReduceOp } from './index.js'
import { Ranks } from './sim-ranks.suite.js'

test('PG-0 first', async () => {
  const ranks = new Ranks(1, 4)
  const got = await ranks.inGroup(async (rank) => {
    const x = tensor([rank, 1, 2])
    await allReduce(x)
    await barrier()
    const y = tensor([rank])
    await broadcast(y, 2)
    const z = tensor([rank + 1], { dtype: 'int32' })
    await allReduce(z, { op: ReduceOp.AVG })
    return [x.toArray(), y.toArray(), z.toArray()]
  })
  for (const each of got) expect(each).toEqual([[6, 4, 8], [2], [2]])
  expect(await ranks.leftovers()).toEqual([])
})
