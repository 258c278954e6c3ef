/** Writing into tensors that are there: only where `out` lies, at its strides, also over an argument; on every device. */
import { describe, expect, test } from '@jest/globals'
import { device, tensor, withDevice, zeros } from '../index.js'
import { binaryInto, gradInto, matmulInto, raw, unaryInto } from '../internal.js'
import { gpujsDevice } from '../tensor/gpujs-device.suite.js'

describe.each([device('js'), device('wasm'), gpujsDevice()])('%s', (device) => {
  const on = (name: string, fn: () => void) => test(name, () => withDevice(device, fn))
  const matrix = () =>
    tensor([
      [1, -2, 3],
      [-4, 5, -6],
    ])

  on('unaryInto, of a part and over itself', () => {
    const out = zeros([3, 2])
    unaryInto('relu', raw.narrow(matrix(), 1, 1, 2), raw.narrow(out, 0, 1, 2).reshape([2, 2]))
    expect(out.toArray()).toEqual([
      [0, 0],
      [0, 3],
      [5, 0],
    ])
    const x = matrix()
    unaryInto('neg', x, x)
    expect(x.toArray()).toEqual([
      [-1, 2, -3],
      [4, -5, 6],
    ])
  })

  on('binaryInto, into columns and over an argument', () => {
    const out = zeros([2, 4])
    binaryInto('mul', matrix(), matrix(), raw.narrow(out, 1, 1, 3))
    expect(out.toArray()).toEqual([
      [0, 1, 4, 9],
      [0, 16, 25, 36],
    ])
    const x = matrix()
    binaryInto('sub', x, raw.expand(tensor([1, 2, 3]), [2, 3]), x)
    expect(x.toArray()).toEqual([
      [0, -4, 0],
      [-5, 3, -9],
    ])
  })

  on('gradInto, over the gradient', () => {
    const d = tensor([1, 2, 3])
    gradInto('reluBackward', d, tensor([1, 0, 5]), d)
    expect(d.toArray()).toEqual([1, 0, 3])
  })

  on('matmulInto, of a transpose and into a part', () => {
    const out = zeros([2, 2, 2])
    matmulInto(matrix(), matrix().T, raw.select(out, 0, 1))
    expect(out.toArray()).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      [
        [14, -32],
        [-32, 77],
      ],
    ])
  })
})

test('a size that does not fit is a bug, which an assertion names', () => {
  expect(() => unaryInto('neg', zeros([2]), zeros([3]))).toThrow(expect.objectContaining({ code: 'ERR_ASSERTION' }))
  expect(() => matmulInto(zeros([2, 3]), zeros([2, 3]), zeros([2, 3]))).toThrow(expect.objectContaining({ code: 'ERR_ASSERTION' }))
})
