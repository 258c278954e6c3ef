import { expect, test } from '@jest/globals'
import { overGroupSeeds } from './group-programs.suite.js'

test('SHD-1, SHD-2, SHD-3, GRP-2: 60 random programs end together, and no call is cut off', async () => {
  expect(await overGroupSeeds(60)).toEqual([])
})
