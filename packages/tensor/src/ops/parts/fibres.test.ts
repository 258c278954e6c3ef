/** Tests of reductions beyond PyTorch's numbers: the order of summation must not depend on strides. */
import { expect, test } from '@jest/globals'
import { Generator, randn, withDevice } from '../../index.js'
import { raw } from '../../internal.js'

const DIMS = [undefined, 0, 1, 2, [0, 1], [1, 2], [0, 2]] as const

for (const device of ['js', 'wasm'] as const) {
  for (const dtype of ['float32', 'float64'] as const) {
    test.each(DIMS)(`${device}, ${dtype}: a sum over %j has the same bits whatever the strides`, (dims) => {
      withDevice(device, () => {
        const x = randn([13, 50, 9], { dtype, generator: new Generator(3) })
        const expected = raw.sum(x, dims).dataSync()
        for (const order of [
          [2, 1, 0],
          [1, 0, 2],
          [0, 2, 1],
        ]) {
          // The same values in the same shape, but lying in another order (the orders are their own inverses).
          const other = raw.permute(raw.contiguous(raw.permute(x, order)), order)
          expect(other.isContiguous).toBe(false)
          expect(raw.sum(other, dims).dataSync()).toEqual(expected)
        }
      })
    })
  }
}

test.each(['float32', 'float64'] as const)(
  'BITS-4 SUM: %s: a sum over the first and the last dimensions has the bits of that of a copy',
  (dtype) => {
    withDevice('wasm', () => {
      // Parts of a multiple of 64 elements go without a copy; the others do not.
      for (const shape of [
        [3, 5, 8, 8],
        [2, 7, 192],
        [2, 3, 4, 5, 16],
        [1, 4, 64],
        [4, 2, 65],
        [4, 2, 72],
        [0, 3, 64],
        [3, 0, 64],
      ]) {
        const x = randn(shape, { dtype, generator: new Generator(4) })
        for (let kept = 1; kept <= shape.length - 2; kept++) {
          const dims = shape.map((_, d) => d).filter((d) => d < kept || d > kept)
          const right = raw.sum(raw.contiguous(raw.permute(x, [kept, ...dims])), shape.map((_, d) => d).slice(1))
          expect(raw.sum(x, dims).dataSync()).toEqual(right.dataSync())
          const other = raw.permute(raw.contiguous(raw.permute(x, shape.map((_, d) => d).reverse())), shape.map((_, d) => d).reverse())
          expect(raw.sum(other, dims.toReversed(), true)).toMatchObject({ shape: shape.map((n, d) => (d === kept ? n : 1)) })
          expect(raw.sum(other, dims).dataSync()).toEqual(right.dataSync())
        }
      }
    })
  },
)
