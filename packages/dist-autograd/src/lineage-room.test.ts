import { expect, test } from '@jest/globals'
import { depthOf } from './lineage-room.js'

test('DA-32 a room without its depth is refused', () => {
  expect(depthOf([7])).toBe(7)
  for (const room of [null, []]) expect(() => depthOf(room)).toThrow(expect.objectContaining({ code: 'LINEAGE_MALFORMED' }))
})
