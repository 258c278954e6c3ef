/** Tests of reductions beyond PyTorch's numbers: the order of summation must not depend on strides. */
import { expect, test } from '@jest/globals'
import { Generator, randn, withDevice } from '../../index.js'
import { raw } from '../../internal.js'
import type { SumApart } from '../../kernels/table/operands.js'
import { Device, device } from '../../tensor/device.js'

const DIMS = [undefined, 0, 1, 2, [0, 1], [1, 2], [0, 2]] as const

for (const spec of ['js', 'wasm'] as const) {
  for (const dtype of ['float32', 'float64'] as const) {
    test.each(DIMS)(`${spec}, ${dtype}: a sum over %j has the same bits whatever the strides`, (dims) => {
      withDevice(spec, () => {
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

/** The device wasm, whose kernel `sumApart` reports its calls. */
function counting(dtype: 'float32' | 'float64', called: () => void): Device {
  const { implementation } = device('wasm')
  const { sumApart } = implementation.kernels
  const kernel = sumApart[dtype] as SumApart
  const counted: SumApart = (...args) => {
    called()
    kernel(...args)
  }
  return new Device('wasm', { ...implementation, kernels: { ...implementation.kernels, sumApart: { ...sumApart, [dtype]: counted } } })
}

test.each(['float32', 'float64'] as const)(
  'BITS-4 SUM: %s: a sum over the first and the last dimensions has the bits of that of a copy',
  (dtype) => {
    let calls = 0
    const found: (readonly [string, number])[] = []
    withDevice(
      counting(dtype, () => calls++),
      () => {
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
            calls = 0
            const dims = shape.map((_, d) => d).filter((d) => d < kept || d > kept)
            const right = raw.sum(raw.contiguous(raw.permute(x, [kept, ...dims])), shape.map((_, d) => d).slice(1))
            expect(raw.sum(x, dims).dataSync()).toEqual(right.dataSync())
            const other = raw.permute(raw.contiguous(raw.permute(x, shape.map((_, d) => d).reverse())), shape.map((_, d) => d).reverse())
            expect(raw.sum(other, dims.toReversed(), true)).toMatchObject({ shape: shape.map((n, d) => (d === kept ? n : 1)) })
            expect(raw.sum(other, dims).dataSync()).toEqual(right.dataSync())
            found.push([`[${shape}] but dimension ${kept}`, calls])
          }
        }
      },
    )
    // Parts of a multiple of 64 elements go without a copy; other parts, and tensors without elements, do not.
    expect(found).toEqual([
      ['[3,5,8,8] but dimension 1', 3],
      ['[3,5,8,8] but dimension 2', 0],
      ['[2,7,192] but dimension 1', 3],
      ['[2,3,4,5,16] but dimension 1', 3],
      ['[2,3,4,5,16] but dimension 2', 0],
      ['[2,3,4,5,16] but dimension 3', 0],
      ['[1,4,64] but dimension 1', 3],
      ['[4,2,65] but dimension 1', 0],
      ['[4,2,72] but dimension 1', 0],
      ['[0,3,64] but dimension 1', 0],
      ['[3,0,64] but dimension 1', 0],
    ])
  },
)
