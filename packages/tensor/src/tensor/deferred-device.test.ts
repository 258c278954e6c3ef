/** Operations where kernels run late, as on a GPU: all of them give what they give elsewhere, once they are awaited. */
import { expect, test } from '@jest/globals'
import { tensor, withDevice } from '../index.js'
import { operations } from '../operations.js'
import { opsSuite } from '../ops/ops.suite.js'
import { type DeferredBackend, deferredDevice } from './deferred-device.suite.js'

opsSuite('a device that computes late', deferredDevice, {
  tolerance: { float32: 1e-6, float64: 1e-13 },
  readEarly: ['equal', 'allclose', 'maskedSelect'],
})

test('what depends on elements is refused where these are not there yet', async () => {
  const device = deferredDevice()
  await withDevice(device, async () => {
    const mask = tensor([1, 2, 3]).gt(1)
    expect(() => mask.dataSync()).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'dataSync' }))
    expect(() => operations.nonzero(mask)).toThrow(
      expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'nonzero', remedy: expect.stringContaining('data()') }),
    )
    await mask.data()
    expect([...(await operations.nonzero(mask).data())]).toEqual([1, 2])
  })
})

test('INDEX: floating indices that are not there yet are refused with the remedy, int32 ones need no look', async () => {
  await withDevice(deferredDevice(), async () => {
    const [x, late] = [tensor([[1, 2, 3]]), tensor([0, 1]).add(0)]
    expect(() => operations.crossEntropy(tensor([[1, 2]]), late.narrow(0, 0, 1))).toThrow(
      expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', remedy: expect.stringContaining("to('int32')") }),
    )
    expect([...(await operations.indexSelect(x, 1, late.to('int32')).data())]).toEqual([1, 2])
    await late.data()
    expect([...(await operations.indexSelect(x, 1, late).data())]).toEqual([1, 2])
  })
})

test('kernels do wait until something is awaited', async () => {
  const device = deferredDevice()
  const waiting = () => (device.implementation as DeferredBackend).waiting
  await withDevice(device, async () => {
    const y = tensor([1, 2]).add(3).exp()
    expect([waiting(), [...y.storage.host]]).toEqual([2, [0, 0]])
    expect((await y.data())[0]).toBeCloseTo(Math.exp(4), 3)
    expect(waiting()).toBe(0)
  })
})
