/** The scratch of chains: its size, also where the heap has little room, and none. */
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { seen, small } from '../../chains/chains.fixture.js'
import { compile, randn, type Tensor } from '../../index.js'
import { Storage, withHeapFrom, withHeapLimit } from '../../internal.js'
import { setComputeThreads, withThreadLimits } from '../wasm/threads/compute-threads.js'

let restore = (): void => {}
beforeEach(() => {
  // Two threads in name: no kernel is large enough to start a helper.
  restore = withThreadLimits({ cores: 2, sharedWork: Number.POSITIVE_INFINITY })
})
afterEach(() => {
  setComputeThreads(1)
  restore()
})

/** The buffers of scratch that `fn` asks for: how many float64 each has room for, and whether the heap had it. */
function scratchOf(fn: () => void): { readonly length: number; readonly isHad: boolean }[] {
  const { inHeap } = Storage
  const found: { length: number; isHad: boolean }[] = []
  Storage.inHeap = (dtype, length) => {
    const storage = inHeap.call(Storage, dtype, length)
    if (dtype === 'float64') found.push({ length, isHad: storage !== null })
    return storage
  }
  try {
    fn()
  } finally {
    Storage.inHeap = inHeap
  }
  return found
}

test('CHAIN-1 for helper threads, scratch is as large as the tensors; where the heap has no room for that, it is as large as blocks; where it has none, it is not in the heap', () => {
  const n = 200_000
  const x = withHeapFrom(1, () => randn([n]))
  const fn = (y: Tensor) => y.mul(2).tanh().add(1)
  const compiled = compile(fn)
  const expected = seen([fn(x)])
  setComputeThreads(2)
  // Room for the result and two buffers; for the result and a few blocks; for nothing.
  const found = [16 * n, 7 * n, 0].map((bytes) => {
    const made: Tensor[] = []
    const scratch = withHeapLimit(bytes, () => scratchOf(() => made.push(compiled(x))))
    expect(seen(made)).toEqual(expected)
    const sizeOf = (length: number) => (length * 8 > n * 4 ? 'tensor' : length > 1024 ? 'block' : 'numbers')
    return scratch.map(({ length, isHad }) => `${sizeOf(length)}: ${isHad ? 'had' : 'no room'}`)
  })
  expect(found).toEqual([
    ['numbers: had', 'tensor: had', 'tensor: had'],
    ['numbers: had', 'tensor: no room', 'tensor: no room', 'numbers: had', 'block: had'],
    ['numbers: no room', 'tensor: no room', 'tensor: no room', 'numbers: no room', 'block: no room'],
  ])
})

test('a chain with elements of several widths has wide buffers for the wide ones alone', () => {
  withHeapFrom(1, () => {
    const x = randn([5000])
    const lengths = (fn: (x: Tensor) => Tensor) => scratchOf(() => void small(() => compile(fn)(x))).map(({ length }) => length)
    const narrow = (y: Tensor) => y.sin().exp().cos()
    const [of32] = lengths(narrow) as [number]
    const [of64] = lengths((y) => narrow(y.to('float64')).to('float32')) as [number]
    expect(of64).toBeGreaterThan(1.9 * of32)
    expect(lengths((y) => narrow(narrow(y).to('float64').exp()).to('float32'))).toEqual([of32, of64])
  })
})
