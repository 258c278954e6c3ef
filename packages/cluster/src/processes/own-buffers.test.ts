/** Messages between processes own their bytes. */
import { expect, test } from '@jest/globals'
import { withOwnBuffers } from './own-buffers.js'

test('CLU-91 bytes of a message between processes can be moved on without taking others away', () => {
  const channel = Uint8Array.from({ length: 32 }, (_, i) => i)
  const message = { list: [{ header: channel.subarray(0, 8) }, null], segments: [channel.subarray(8, 24)], n: 3, whole: new Uint8Array(4) }
  const { whole } = message
  withOwnBuffers(message)
  expect(message).toEqual({
    list: [{ header: Uint8Array.from([0, 1, 2, 3, 4, 5, 6, 7]) }, null],
    segments: [Uint8Array.from({ length: 16 }, (_, i) => 8 + i)],
    n: 3,
    whole: new Uint8Array(4),
  })
  const { buffer } = message.list[0]!.header
  expect([buffer.byteLength, message.segments[0]!.buffer.byteLength, message.whole]).toEqual([8, 16, whole])
  structuredClone(null, { transfer: [buffer as ArrayBuffer] })
  expect(channel.length).toBe(32)
})
