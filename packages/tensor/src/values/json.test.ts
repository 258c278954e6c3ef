/** Tensors in JSON: read back, they have the same bits; also how test frameworks show and compare them. */

import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { arange, isTensor, ones, type Tensor, type TensorJson, tensor, withDevice, zeros } from '../index.js'
import { residentDevice } from '../tensor/resident-device.suite.js'

const again = (x: Tensor): Tensor => tensor(JSON.parse(JSON.stringify(x)) as TensorJson)

describe('JSON', () => {
  test('is dtype, shape and nested lists', () => {
    expect(JSON.stringify({ x: tensor([[1, 2.5]]), mask: tensor([true, false]) })).toBe(
      '{"x":{"dtype":"float32","shape":[1,2],"data":[[1,2.5]]},"mask":{"dtype":"bool","shape":[2],"data":[true,false]}}',
    )
  })

  test.each<[string, Tensor]>([
    ['floats that are no short decimals', tensor([0.1, 1 / 3, 1e-40, 3.4e38])],
    ['doubles', tensor([0.1, 1 / 3, 5e-324, 1.7e308], { dtype: 'float64' })],
    ['what JSON has no numbers for', tensor([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0])],
    ['integers', tensor([[-5], [2 ** 31 - 1]], { dtype: 'int32' })],
    ['a scalar', tensor(3)],
    ['bool', tensor([[true], [false]])],
    ['a view', arange(6).reshape([2, 3]).T],
    ['nothing', zeros([0])],
    ['rows of nothing', zeros([2, 0, 3])],
    ['no rows', zeros([0, 3])],
  ])('%s: the same bits, shape and dtype come back', (_, x) => {
    const y = again(x)
    expect([y.dtype, y.shape]).toEqual([x.dtype, x.shape])
    expect(Buffer.from(y.dataSync().slice().buffer as ArrayBuffer)).toEqual(Buffer.from(x.dataSync().slice().buffer as ArrayBuffer))
  })

  test('options convert', () => {
    expect(tensor(ones([2]).toJSON(), { dtype: 'float64' }).dtype).toBe('float64')
  })

  test.each<[string, unknown, string]>([
    ['another dtype', { dtype: 'int64', shape: [1], data: [1] }, 'DTYPE_MISMATCH'],
    ['a shape that is none', { dtype: 'float32', shape: [-1], data: [] }, 'INVALID_ARGUMENT'],
    ['a shape of another number of elements', { dtype: 'float32', shape: [2], data: [1] }, 'INVALID_ARGUMENT'],
    ['data that is too deep', { dtype: 'float32', shape: [1], data: [[1]] }, 'INVALID_ARGUMENT'],
    ['text', { dtype: 'float32', shape: [1], data: ['1'] }, 'INVALID_ARGUMENT'],
    ['null, as JSON writes NaN', { dtype: 'float32', shape: [1], data: [null] }, 'INVALID_ARGUMENT'],
    ['a property of all objects', { dtype: 'float32', shape: [1], data: ['constructor'] }, 'INVALID_ARGUMENT'],
  ])('%s is refused', (_, json, code) => {
    expect(() => tensor(json as TensorJson)).toThrow(expect.objectContaining({ code, op: 'tensor' }))
  })

  test('not before the device has written it', async () => {
    await withDevice(residentDevice(), async () => {
      const x = ones([1]).add(1)
      expect(() => JSON.stringify(x)).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'toJSON' }))
    })
  })
})

test('a test framework that prints a tensor without elements passes no key and gets words; JSON.stringify gets the error', async () => {
  const x = ones([2])
  x.close()
  const shown = { dtype: 'float32', shape: [2], data: 'TENSOR_CLOSED' }
  expect(x.toJSON()).toEqual(shown)
  expect(() => expect({ x }).toBe(1)).toThrow('"data": "TENSOR_CLOSED"')
  expect(() => JSON.stringify({ x })).toThrow(expect.objectContaining({ code: 'TENSOR_CLOSED' }))
  expect(() => tensor(shown as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  await withDevice(residentDevice(), async () => {
    const y = ones([1]).add(1)
    expect(y.toJSON().data).toBe('READ_NOT_SYNCHRONOUS')
    await y.data()
  })
})

/** They read every property of what they compare to print it. */
test.each([[[2]], [[]], [[2, 2]]])('a test framework prints how tensors of shape %j differ', (shape) => {
  expect(() => expect({ x: ones(shape) }).toEqual({ x: zeros([1, 3]) })).toThrow('"dtype": "float32"')
})

/**
 * A tensor with an iterator would be one to test frameworks, too: they iterate what they compare, each row is a new view that leads to its base, and the
 * comparison of two matrices never ends.
 */
test('equality of test frameworks ends; loops go over unbind()', () => {
  expect(zeros([2, 3])).toEqual(zeros([2, 3]))
  expect(zeros([2, 3])).not.toEqual(ones([2, 3]))
  expect(() => [...(ones([2]) as unknown as Iterable<Tensor>)]).toThrow(/iterable/)
  expect(
    arange(4)
      .reshape([2, 2])
      .unbind()
      .map((row) => row.toArray()),
  ).toEqual([
    [0, 1],
    [2, 3],
  ])
})

describe('inspection', () => {
  test('shows a closed tensor as such', () => {
    const x = ones([2])
    x.close()
    expect([inspect({ x }), `${x}`, isTensor(x)]).toEqual([
      '{ x: tensor(closed, shape=[2], dtype=float32) }',
      'tensor(closed, shape=[2], dtype=float32)',
      true,
    ])
  })

  test('what is no data is refused with what to do', () => {
    expect(() => tensor([ones([2])] as never)).toThrow(expect.objectContaining({ remedy: expect.stringContaining('stack(') }))
    expect(() => tensor([new Float32Array(2)] as never)).toThrow(expect.objectContaining({ remedy: expect.stringContaining('[...row]') }))
    expect(() => tensor(Promise.resolve(1) as never)).toThrow(expect.objectContaining({ remedy: expect.stringContaining('Await') }))
  })
})
