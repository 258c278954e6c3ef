/** Tensors on a device with a memory of its own: all operations give equal results there, and only the program's own copies go up and down. */
import { describe, expect, test } from '@jest/globals'
import { threadHeap } from '../heap/thread-heap.js'
import { arange, device, fromTypedArray, fullLike, onesLike, randLike, tensor, withDevice, zeros, zerosLike } from '../index.js'
import * as operations from '../ops/all.js'
import { opsSuite } from '../ops/ops.suite.js'
import { residentDevice } from './resident-device.suite.js'
import type { Tensor } from './tensor.js'

opsSuite('a device with a memory of its own', residentDevice, {
  tolerance: { float32: 1e-6, float64: 1e-13 },
  readEarly: [
    'equal',
    'allclose',
    'maskedSelect',
    'nonzero',
    'repeatInterleave',
    'index',
    'indexPut',
    'indexPut_',
    'oneHot',
    'embeddingBag',
  ],
})

const { einsum, hstack } = operations

const code = (expected: string) => expect.objectContaining({ code: expected })

describe('a tensor knows its device', () => {
  test('whatever backend of the cpu made it', () => {
    const made = [tensor(1), withDevice('wasm', () => tensor(1)), tensor(1, { device: 'wasm' })]
    for (const x of made) expect([x.device === device('cpu'), x.device.type, String(x.device)]).toEqual([true, 'cpu', 'cpu'])
    expect(device('wasm').type).toBe('cpu')
  })

  test('factories take the scope’s device, functions …Like the model’s, and options say otherwise', async () => {
    const there = residentDevice()
    const inside = withDevice(there, () => [tensor([1, 2]), zeros([2]), arange(2), tensor(1, { device: 'cpu' })])
    expect(inside.map((x) => String(x.device))).toEqual([there.spec, there.spec, there.spec, 'cpu'])
    const model = inside[0]!
    for (const like of [zerosLike(model), onesLike(model), fullLike(model, 3), randLike(model), zerosLike(model, { dtype: 'int32' })]) {
      expect(String(like.device)).toBe(there.spec)
    }
    expect(String(zerosLike(model, { device: 'cpu' }).device)).toBe('cpu')
    expect([...(await fullLike(model, 3).data())]).toEqual([3, 3])
    expect(String(withDevice(there, () => fromTypedArray(new Float32Array(2))).device)).toBe('cpu')
  })

  test('to() goes up, cpu() comes down, and a tensor that is there already is returned', async () => {
    const there = residentDevice()
    const x = tensor([
      [1, 2],
      [3, 4],
    ]).T
    const up = x.to(there)
    expect([String(up.device), up.shape, [...(await up.data())]]).toEqual([there.spec, [2, 2], [1, 3, 2, 4]])
    expect(up.to(there)).toBe(up)
    expect(x.to('cpu')).toBe(x)
    expect(x.to('wasm')).toBe(x)
    const both = x.to(there, 'int32')
    expect([String(both.device), both.dtype]).toEqual([there.spec, 'int32'])
    expect([String(x.to(up).device), up.to(both).dtype]).toEqual([there.spec, 'int32'])
    const down = await up.cpu()
    expect([String(down.device), down.toArray()]).toEqual([
      'cpu',
      [
        [1, 3],
        [2, 4],
      ],
    ])
    expect(await x.cpu()).toBe(x)
    expect(() => up.to('cpu')).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', remedy: 'Write await x.cpu().' }))
    expect(there.home.uploads).toEqual([16, 16, 16])
  })

  test('a view of it is read by its strides', async () => {
    const x = arange(12).reshape([3, 4]).to(residentDevice())
    expect([...(await x.T.narrow(0, 1, 2).data())]).toEqual([1, 5, 9, 2, 6, 10])
    expect([...(await x.select(1, 3).data())]).toEqual([3, 7, 11])
    expect(await x.select(1, 3).select(0, 2).item()).toBe(11)
    expect([...(await x.narrow(0, 0, 0).data())]).toEqual([])
  })

  test('a device that is not here is refused with those that are, a dtype that is none with those that are', () => {
    const x = tensor(1)
    for (const target of ['cuda:0', 'gpu', 0, null, {}] as unknown as 'cpu'[]) {
      expect(() => x.to(target)).toThrow(
        expect.objectContaining({ code: 'DEVICE_UNKNOWN', message: expect.stringMatching(/one of cpu, .*wasm/) }),
      )
    }
    for (const target of ['float16', 'int64', 'double'] as unknown as 'float32'[])
      expect(() => x.to(target)).toThrow(code('DTYPE_MISMATCH'))
    expect(() => x.to('cpu', 'float16' as 'float32')).toThrow(code('DTYPE_MISMATCH'))
    expect(() => zeros([1], { device: 'cuda' as 'cpu' })).toThrow(code('DEVICE_UNKNOWN'))
    expect(() => withDevice('cuda' as 'cpu', () => 1)).toThrow(code('DEVICE_UNKNOWN'))
  })

  test('two devices in one call are refused, numbers and tensors of the cpu without dimensions come along', async () => {
    const there = residentDevice()
    const [here, up] = [tensor([1, 2]), tensor([3, 4]).to(there)]
    const mixed: (() => unknown)[] = [
      () => here.add(up),
      () => up.add(here),
      () => hstack([up, here]),
      () => einsum('i,i->', up, here),
      () => up.add_(here),
      () => tensor(1).add_(up.sum()),
      () => up.reshape([1, 2]).crossEntropy(tensor([0], { dtype: 'int32' }).to(there), { weight: here }),
      () => up.add(tensor([1, 2]).to(residentDevice())),
    ]
    for (const call of mixed) {
      expect(call).toThrow(expect.objectContaining({ code: 'DEVICE_MISMATCH', remedy: expect.stringContaining(`to('${there}')`) }))
    }
    expect([...(await up.add(tensor(1)).data())]).toEqual([4, 5])
    expect([...(await tensor(10).sub(up).data())]).toEqual([7, 6])
    expect([...(await up.mul(2).data())]).toEqual([6, 8])
    // Copies go between devices.
    expect([...(await up.copy_(here).data())]).toEqual([1, 2])
  })

  test('operations run where their operands are, whatever device is current', async () => {
    const there = residentDevice()
    const x = tensor([1, 4])
    expect(withDevice(there, () => x.sqrt()).toArray()).toEqual([1, 2])
    expect([...(await x.to(there).sqrt().data())]).toEqual([1, 2])
  })
})

describe('memory', () => {
  test('counts what is in use and its peak, and a tensor that is closed gives its buffer back after what was queued before', async () => {
    const there = residentDevice()
    const x = zeros([256], { device: there })
    const y = x.add(1)
    expect(there.memory()).toEqual({ inUse: 2048 + 4, peak: 2048 + 4, reserved: 2048 + 4 })
    x.close()
    expect([...(await y.data())].every((v) => v === 1)).toBe(true)
    expect(there.memory()).toEqual({ inUse: 1024, peak: 2048 + 4, reserved: 1024 })
    expect(() => x.add(1)).toThrow(code('TENSOR_CLOSED'))
    await expect(x.data()).rejects.toThrow(code('TENSOR_CLOSED'))
  })

  test('of the cpu counts the blocks of the heap', () => {
    threadHeap()
    const before = device('cpu').memory()
    const x = zeros([1 << 20])
    const { inUse, peak, reserved } = device('wasm').memory()
    expect(inUse - before.inUse).toBeGreaterThanOrEqual(4 << 20)
    expect(peak).toBeGreaterThanOrEqual(inUse)
    expect(reserved).toBeGreaterThanOrEqual(4 << 20)
    x.close()
    expect(device('cpu').memory().inUse).toBe(before.inUse)
  })
})

describe('what depends on elements', () => {
  const up = (x: Tensor) => x.to(residentDevice())

  test('is refused with the remedy', async () => {
    const mask = up(tensor([1, 2, 3])).gt(1)
    expect(() => mask.dataSync()).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'dataSync' }))
    expect(() => operations.nonzero(mask)).toThrow(
      expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'nonzero', remedy: expect.stringContaining('cpu()') }),
    )
    expect([...(await operations.nonzero(await mask.cpu()).data())]).toEqual([1, 2])
    expect(String(mask)).toMatch(/^tensor\(shape=\[3\], dtype=bool, device=resident:\d+\)$/)
  })

  test('INDEX: floating indices are refused, int32 ones need no look', async () => {
    const x = up(tensor([[1, 2, 3]]))
    const at = tensor([0, 1]).to(x.device)
    expect(() => operations.indexSelect(x, 1, at)).toThrow(
      expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', remedy: expect.stringContaining("to('int32')") }),
    )
    expect([...(await operations.indexSelect(x, 1, at.to('int32')).data())]).toEqual([1, 2])
    expect([...(await operations.take(x, tensor([-1, 0], { dtype: 'int32' }).to(x.device)).data())]).toEqual([3, 1])
  })

  test('INDEX: an index out of range is reported by the next read, once', async () => {
    const x = up(tensor([[1, 2, 3]]))
    const far = operations.indexSelect(x, 1, tensor([7], { dtype: 'int32' }).to(x.device))
    await expect(far.data()).rejects.toThrow(expect.objectContaining({ code: 'INDEX_OUT_OF_RANGE', op: 'indexSelect' }))
    expect([...(await x.data())]).toEqual([1, 2, 3])
  })
})

test('kernels wait until something is read', async () => {
  const there = residentDevice()
  const y = tensor([1, 2]).to(there).add(3).exp()
  expect([there.home.waiting > 0, there.home.downloads]).toEqual([true, []])
  expect((await y.data())[0]).toBeCloseTo(Math.exp(4), 3)
  expect([there.home.waiting, there.home.downloads]).toEqual([0, [8]])
})
