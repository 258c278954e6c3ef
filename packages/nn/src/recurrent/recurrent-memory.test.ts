/** Tensors that recurrent layers save for backward are freed with the graph, and not earlier. */
import { expect, test } from '@jest/globals'
import { checkpoint, grad } from '@postgrad/autograd'
import { type Tensor, tensor } from '@postgrad/tensor'
import { threadHeap, withHeapFrom, withHeapLimit } from '@postgrad/tensor/internal'
import { GRU, LSTM, RNN } from '../index.js'

type Layer = LSTM | GRU | RNN
const LAYERS: Readonly<Record<string, () => Layer>> = {
  LSTM: () => new LSTM(3, 4, { numLayers: 2, bidirectional: true }),
  GRU: () => new GRU(3, 4, { numLayers: 2, bidirectional: true }),
  RNN: () => new RNN(3, 4, { numLayers: 2, bidirectional: true }),
}

const wave = (shape: readonly number[], salt: number) =>
  tensor(Float32Array.from({ length: shape.reduce((n, extent) => n * extent, 1) }, (_, i) => Math.sin(i * 1.3 + salt))).reshape(shape)
const values = (t: Tensor | null) => Array.from(t!.dataSync())

/** All is in the heap, and what is given back is destroyed. */
function inPoisonedHeap<T>(fn: () => T): T {
  const heap = threadHeap()
  const { release } = heap
  heap.release = (block) => {
    new Uint8Array(heap.buffer, block.address, block.capacityBytes).fill(0xff)
    release.call(heap, block)
  }
  try {
    return withHeapFrom(1, () => withHeapLimit(Number.POSITIVE_INFINITY, fn))
  } finally {
    heap.release = release
  }
}

/** Outputs and gradients of two passes through one graph, of a checkpoint, and of second derivatives. */
function results(make: () => Layer): number[][] {
  const layer = make()
  for (const [i, p] of layer.parameters().entries()) p.detach().copy_(wave(p.shape, i))
  const x = wave([5, 2, 3], 9).requiresGrad_()
  const forward = (input: Tensor) => layer.forward(input)[0]
  const y = forward(x)
  y.sin().sum().backward(null, { retainGraph: true })
  y.sin().sum().backward()
  checkpoint(forward, x).sin().sum().backward()
  const [g] = grad(forward(x).sin().sum(), [x], { createGraph: true })
  g!.mul(g!).sum().backward()
  return [y, x.grad, g!, ...layer.parameters().map((p) => p.grad)].map(values)
}

test.each(Object.entries(LAYERS))('%s: the bits of a heap that destroys what is given back', (_, make) => {
  expect(inPoisonedHeap(() => results(make))).toEqual(results(make))
})

test.each(Object.entries(LAYERS))('%s: after backward the graph holds nothing of the steps', (_, make) => {
  const layer = make()
  const x = wave([50, 20, 3], 1)
  const heap = threadHeap()
  const growth = (fn: () => void): number => {
    fn()
    const before = heap.heldBytes
    fn()
    return heap.heldBytes - before
  }
  const [held, kept] = withHeapFrom(1, () =>
    withHeapLimit(Number.POSITIVE_INFINITY, () => [
      growth(() => layer.forward(x)[0].sum().backward()),
      growth(() => layer.forward(x)[0].sum().backward(null, { retainGraph: true })),
    ]),
  ) as [number, number]
  expect(held).toBeLessThan(0.9 * kept)
})
