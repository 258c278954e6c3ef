/** The results and refusals of PyTorch's gloo (`scripts/golden/collectives.py`). */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { type DType, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { allGather, allReduce, broadcast, gather, ReduceOp, recv, scatter, send } from './index.js'
import { Ranks } from './sim-ranks.suite.js'

interface Plain {
  readonly t: DType
  readonly shape: readonly number[]
  readonly data: readonly number[]
}
interface Case {
  readonly fn: string
  readonly dtype: DType
  readonly op?: keyof typeof ReduceOp
  readonly ranks: readonly { readonly out?: readonly Plain[]; readonly refused?: string }[]
}
const golden = JSON.parse(readFileSync(new URL('../golden/collectives.json', import.meta.url), 'utf8')) as {
  readonly inputs: Readonly<Record<string, readonly Plain[]>>
  readonly cases: readonly Case[]
}

const plain = (x: Tensor): Plain => ({ t: x.dtype, shape: [...x.shape], data: x.toArray() as number[] })

async function run({ fn, op }: Case, rank: number, x: Tensor): Promise<readonly Tensor[]> {
  const like = () => zeros([...x.shape], { dtype: x.dtype })
  switch (fn) {
    case 'allReduce':
      return [await allReduce(x, { op: ReduceOp[op!] })]
    case 'broadcast':
      return [await broadcast(x, 1)]
    case 'allGather':
      return allGather([like(), like(), like()], x)
    case 'gather':
      return (await gather(x, rank === 2 ? { dst: 2, gatherList: [like(), like(), like()] } : { dst: 2 })) ?? []
    case 'scatter':
      return [await scatter(like(), rank === 1 ? { src: 1, scatterList: [0, 1, 2].map((i) => x.add(i)) } : { src: 1 })]
    default: {
      const y = like()
      await send(x, (rank + 1) % 3, { tag: 4 })
      await recv(y, (rank + 2) % 3, { tag: 4 })
      return [y]
    }
  }
}

/** gloo refuses AVG, which is here; what else it refuses is refused here, too. */
const isOwn = ({ op }: Case): boolean => op === 'AVG'

test.each(golden.cases.map((one) => [`${one.fn} ${one.op ?? ''} ${one.dtype}`, one] as const))(
  'PG-11, PG-13: %s as in PyTorch',
  async (_name, one) => {
    const ranks = new Ranks(1, 3)
    const outcomes = await ranks.inGroup(async (rank) => {
      const { t, data } = golden.inputs[one.dtype]![rank]!
      try {
        return (await run(one, rank, tensor([...data], { dtype: t }))).map(plain)
      } catch (error) {
        return (error as { code: string }).code
      }
    })
    for (const [rank, outcome] of outcomes.entries()) {
      const { out, refused } = one.ranks[rank]!
      if (isOwn(one)) expect(refused).toContain('AVG')
      else expect(outcome).toEqual(refused === undefined ? out : 'DTYPE_MISMATCH')
    }
  },
)

test('PG-13: AVG of int32 rounds towards 0, as it does for NCCL; of bool there is none', async () => {
  const ranks = new Ranks(1, 3)
  const got = await ranks.inGroup(async (rank) => {
    const refused = await allReduce(tensor([true]), { op: ReduceOp.AVG }).catch((error: { code: string }) => error.code)
    const x = tensor(
      [
        [5, -7],
        [3, 2],
        [0, 0],
      ][rank]!,
      { dtype: 'int32' },
    )
    return [refused, (await allReduce(x, { op: ReduceOp.AVG })).toArray()]
  })
  for (const each of got) expect(each).toEqual(['DTYPE_MISMATCH', [2, -1]])
})
