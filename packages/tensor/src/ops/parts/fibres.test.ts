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
