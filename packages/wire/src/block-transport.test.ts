/** Tensors that are named instead of written: what the codec asks of a transport, and what it makes of names from the wire. */
import { beforeEach, expect, test } from '@jest/globals'
import { arange, type Tensor } from '@postgrad/tensor'
import type { BlockName, BlockTransport } from './block-transport.js'
import { Codec } from './codec.js'
import { MessageType } from './message-type.js'

const codec = new Codec()
/** Keeps tensors by their number. */
class Shelf implements BlockTransport {
  readonly given: Tensor[] = []
  isFull = false
  give(tensor: Tensor): BlockName | null {
    if (this.isFull) return null
    return [this.given.push(tensor) - 1, -7, 2, 3, 0]
  }
  take([id, generation, sender, epoch, offset]: BlockName, dtype: string, shape: readonly number[], numel: number): Tensor {
    const tensor = this.given[id]!
    expect([generation, sender, epoch, offset, dtype, shape, numel]).toEqual([-7, 2, 3, 0, tensor.dtype, tensor.shape, tensor.numel])
    return tensor
  }
}

let shelf: Shelf
beforeEach(() => {
  shelf = new Shelf()
})

const large = arange(0, 5000).reshape([2, 2500])
const small = arange(0, 3)
const bytes = new Uint8Array(6000).fill(9)

test('large tensors are named, the rest travels; everything arrives in its place, with its grad flag', () => {
  const wanted = large.clone()
  wanted.autograd = { requiresGrad: true, grad: null, isGradUnseen: false, gradFn: null, outputNr: 0 }
  const out = codec.prepare(MessageType.RESULT, [{ a: large, b: bytes, c: [small, wanted], d: large }])
  const frame = codec.encode(out, null, shelf)
  expect(shelf.given).toEqual([large, wanted, large])
  expect(frame.segments.map((segment) => segment.length)).toEqual([6000])
  const message = codec.decode(frame, null, shelf)
  const [{ a, b, c, d }] = message.body as [{ a: Tensor; b: Uint8Array; c: Tensor[]; d: Tensor }]
  expect([a, c[1], d]).toEqual([large, wanted, large])
  expect(b).toEqual(bytes)
  expect(c[0]!.toArray()).toEqual([0, 1, 2])
  expect(message.requiresGrad).toEqual([false, false, true, false])
})

test('a message is as it was when it has been encoded: the next one gets the bytes', () => {
  const out = codec.prepare(MessageType.RESULT, [[large, small]])
  codec.encode(out, null, shelf)
  const frame = codec.encode(out)
  expect(frame.segments).toHaveLength(1)
  const [value] = codec.decode(frame).body as [Tensor[]]
  expect(value.map((x) => x.toArray())).toEqual([large.toArray(), small.toArray()])
})

test('where the transport has no room the bytes travel', () => {
  shelf.isFull = true
  const frame = codec.encode(codec.prepare(MessageType.RESULT, [large]), null, shelf)
  expect(frame.segments).toHaveLength(1)
  expect((codec.decode(frame, null, shelf).body[0] as Tensor).toArray()).toEqual(large.toArray())
})

test('a block from a worker with which no heap is shared is corrupt', () => {
  const frame = codec.encode(codec.prepare(MessageType.RESULT, [large]), null, shelf)
  expect(() => codec.decode(frame)).toThrow(expect.objectContaining({ code: 'WIRE_CORRUPT' }))
})

test('a message is as it was when the transport fails in the middle of it', () => {
  const out = codec.prepare(MessageType.RESULT, [[large, large]])
  const give = shelf.give.bind(shelf)
  shelf.give = (tensor) => {
    if (shelf.given.length === 1) throw new Error('no further')
    return give(tensor)
  }
  expect(() => codec.encode(out, null, shelf)).toThrow('no further')
  const [value] = codec.decode(codec.encode(out)).body as [Tensor[]]
  expect(value.map((x) => x.toArray())).toEqual([large.toArray(), large.toArray()])
})

test.each([
  ['block', 0],
  ['sender', 2],
  ['epoch', 3],
  ['offset', 4],
])('a name whose %s is negative is corrupt', (_, word) => {
  shelf.give = () => [0, -7, 2, 3, 0].with(word, -1) as unknown as BlockName
  const frame = codec.encode(codec.prepare(MessageType.RESULT, [large]), null, shelf)
  expect(() => codec.decode(frame, null, shelf)).toThrow(expect.objectContaining({ code: 'WIRE_CORRUPT' }))
})
