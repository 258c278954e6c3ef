/** The ranks and ids that processes of a group get. */
import { describe, expect, test } from '@jest/globals'
import { HashStore } from '@postgrad/transport'
import { RealClock } from '@postgrad/transport/internal'
import { claim, NEXT_RANK, SUCCESSORS } from './claim.js'

const ID_MAX = 65_535

describe('INI-21 a group that has given out all ids', () => {
  test.each([2, null])('has none for another successor, of worldSize %p', async (worldSize) => {
    const store = new HashStore(new RealClock())
    const take = () => claim(store, { rank: 1, worldSize })
    expect(await take()).toEqual({ id: 1, rank: 1, before: 0 })
    const { id } = await take()
    await store.add(SUCCESSORS, ID_MAX - 1 - id)
    expect(await take()).toEqual({ id: ID_MAX, rank: 1, before: 2 })
    await expect(take()).rejects.toMatchObject({ code: 'WORKER_ID_OUT_OF_RANGE' })
  })

  test('has none for another rank', async () => {
    const store = new HashStore(new RealClock())
    await store.add(NEXT_RANK, ID_MAX)
    await expect(claim(store, { rank: null, worldSize: null })).rejects.toMatchObject({ code: 'WORKER_ID_OUT_OF_RANGE' })
  })
})
