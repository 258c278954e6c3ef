/** Tensors as users see them: making them, views and their storage, versions, reads, and the methods' way through the handler. */

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import {
  arange,
  type DType,
  eye,
  full,
  isTensor,
  type NestedArray,
  ones,
  onesLike,
  rand,
  randint,
  Tensor,
  type TypedArray,
  tensor,
  zeros,
  zerosLike,
} from '../index.js'
import { rawHandler } from '../install.js'
import { byteSize, numelOf, raw } from '../internal.js'
import * as functionsOfUsers from '../ops/all.js'
import type { GradOps } from './grad-ops.js'
import { installOpHandler } from './tensor.js'

describe('creation', () => {
  test.each<[string, NestedArray | TypedArray, DType, number[]]>([
    ['a number', 3, 'float32', []],
    ['a boolean', true, 'bool', []],
    ['nested numbers', [[1, 2, 3]], 'float32', [1, 3]],
    ['nested booleans', [true, false], 'bool', [2]],
    ['numbers and booleans', [1, true], 'float32', [2]],
    ['nothing', [], 'float32', [0]],
    ['rows of nothing', [[], []], 'float32', [2, 0]],
    ['Float32Array', new Float32Array(2), 'float32', [2]],
    ['Float64Array', new Float64Array(2), 'float64', [2]],
    ['Int32Array', new Int32Array(2), 'int32', [2]],
    ['Uint8Array', new Uint8Array(2), 'bool', [2]],
  ])('from %s', (_, data, dtype, shape) => {
    const x = tensor(data)
    expect([x.dtype, x.shape, x.numel]).toEqual([dtype, shape, numelOf(shape)])
  })

  test('a typed array is copied', () => {
    const source = new Float32Array([1, 2])
    const x = tensor(source)
    source[0] = 9
    expect(x.toArray()).toEqual([1, 2])
  })

  test('dtype converts', () => {
    expect(tensor([1.75, -2], { dtype: 'int32' }).toArray()).toEqual([1, -2])
    expect(tensor([0.5, 0], { dtype: 'bool' }).toArray()).toEqual([true, false])
    expect(tensor(new Uint8Array([7, 0])).dataSync()).toEqual(new Uint8Array([1, 0]))
    expect(arange(3, { dtype: 'bool' }).dataSync()).toEqual(new Uint8Array([0, 1, 1]))
    expect([...randint(2, 9, [20], { dtype: 'bool' }).dataSync()].every((v) => v === 1)).toBe(true)
  })

  test('filled, ranges, identity', () => {
    expect(zeros([2, 2]).toArray()).toEqual([
      [0, 0],
      [0, 0],
    ])
    expect(ones([2], { dtype: 'int32' }).toArray()).toEqual([1, 1])
    expect(full([2], 2.5).toArray()).toEqual([2.5, 2.5])
    expect(full([], 7).itemSync()).toBe(7)
    expect(eye(2, 3).toArray()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ])
    expect(arange(3).toArray()).toEqual([0, 1, 2])
    expect(arange(1, 4).toArray()).toEqual([1, 2, 3])
    expect(arange(1, 2, 0.5).toArray()).toEqual([1, 1.5])
    expect(arange(3, 0, -1, { dtype: 'int32' }).toArray()).toEqual([3, 2, 1])
    expect(arange(0).shape).toEqual([0])
    expect(arange(5, 5, -1).shape).toEqual([0])
    // torch.arange(0, 6, 1.5, dtype=torch.int32): as many as in real numbers, with a step of 1
    expect(arange(0, 6, 1.5, { dtype: 'int32' }).toArray()).toEqual([0, 1, 2, 3])
    expect(full([2], -(2 ** 31), { dtype: 'int32' }).toArray()).toEqual([-(2 ** 31), -(2 ** 31)])
    const x = tensor([[true, false]])
    expect([zerosLike(x).dtype, zerosLike(x).shape]).toEqual(['bool', [1, 2]])
    expect(onesLike(x, { dtype: 'float32' }).toArray()).toEqual([[1, 1]])
  })

  test('a shape that the caller changes afterwards does not change the tensor', () => {
    const shape = [2, 3]
    const x = zeros(shape)
    shape[0] = 9
    expect(x.shape).toEqual([2, 3])
    const target = [3, 2]
    const y = x.view(target)
    const z = x.reshape(target)
    target[0] = 9
    expect([y.shape, z.shape]).toEqual([
      [3, 2],
      [3, 2],
    ])
  })
})

describe('views', () => {
  const x = arange(6).view([2, 3])

  test('share the storage: a write through one shows in all', () => {
    const base = arange(6).view([2, 3])
    const row = base.select(0, 1)
    row.fill_(9)
    expect(base.toArray()).toEqual([
      [0, 1, 2],
      [9, 9, 9],
    ])
    expect(base.T.storage).toBe(base.storage)
    base.T.narrow(0, 0, 1).mul_(2)
    expect(base.toArray()).toEqual([
      [0, 1, 2],
      [18, 9, 9],
    ])
  })

  test('T reverses all dimensions', () => {
    expect(x.T.toArray()).toEqual([
      [0, 3],
      [1, 4],
      [2, 5],
    ])
    expect(zeros([2, 3, 4]).T.shape).toEqual([4, 3, 2])
    expect(x.T.T.isContiguous).toBe(true)
  })

  test('reshape copies only when it must', () => {
    expect(x.reshape([6]).storage).toBe(x.storage)
    expect(x.T.reshape([6]).storage).not.toBe(x.storage)
    expect(x.T.contiguous().view([6]).toArray()).toEqual([0, 3, 1, 4, 2, 5])
    expect(x.contiguous()).toBe(x)
    expect(x.to('float32')).toBe(x)
    expect(x.clone().storage).not.toBe(x.storage)
  })

  test('detach has no history and the same elements', () => {
    const d = x.detach()
    expect(d).not.toBe(x)
    expect(d.storage).toBe(x.storage)
    expect(d.toArray()).toEqual(x.toArray())
  })
})

describe('versions', () => {
  test('each in-place operation raises the version once, on every view', () => {
    const x = ones([2, 2])
    const y = x.T
    expect(x.storage.version).toBe(0)
    x.add_(1)
      .sub_(1)
      .mul_(2)
      .div_(2)
      .add_(x, 0.5)
      .fill_(3)
      .zero_()
      .copy_(ones([2]))
    expect(y.storage.version).toBe(8)
    expect(y.toArray()).toEqual([
      [1, 1],
      [1, 1],
    ])
  })

  test('a refused write changes nothing', () => {
    const x = ones([2])
    expect(() => x.add_(ones([3]))).toThrow()
    expect(() => x.to('int32').add_(0.5)).toThrow()
    expect(x.storage.version).toBe(0)
    expect(x.toArray()).toEqual([1, 1])
  })

  test('an argument that overlaps the target is read before it is written', () => {
    const x = arange(4).view([2, 2])
    x.add_(x.T)
    expect(x.toArray()).toEqual([
      [0, 3],
      [3, 6],
    ])
    const y = arange(4)
    y.narrow(0, 1, 3).copy_(y.narrow(0, 0, 3))
    expect(y.toArray()).toEqual([0, 0, 1, 2])
    const z = arange(3)
    z.mul_(z)
    expect(z.toArray()).toEqual([0, 1, 4])
    z.add_(z.select(0, 2))
    expect(z.toArray()).toEqual([4, 5, 8])
  })
})

describe('reads', () => {
  test('are snapshots in row-major order', async () => {
    const x = arange(6).view([2, 3])
    const data = await x.T.data()
    x.zero_()
    expect([...data]).toEqual([0, 3, 1, 4, 2, 5])
    const dense = x.dataSync()
    x.fill_(1)
    expect([...dense]).toEqual([0, 0, 0, 0, 0, 0])
    expect([...x.narrow(1, 1, 2).dataSync()]).toEqual([1, 1, 1, 1])
  })

  test('one element', async () => {
    const x = arange(6).view([2, 3]).T
    expect(x.select(0, 1).select(0, 1).itemSync()).toBe(4)
    expect(await x.narrow(0, 2, 1).narrow(1, 1, 1).item()).toBe(5)
    expect(tensor(true).itemSync()).toBe(1)
  })

  test('nested arrays', () => {
    expect(tensor([[true], [false]]).toArray()).toEqual([[true], [false]])
    expect(tensor(2).toArray()).toBe(2)
    expect(zeros([2, 0]).toArray()).toEqual([[], []])
    expect(zeros([0, 2]).toArray()).toEqual([])
  })
})

describe('the slot of autograd', () => {
  // Where the library is one file, autograd has been loaded.
  let before: GradOps<Tensor> = rawHandler
  beforeAll(() => {
    before = installOpHandler(rawHandler) ?? rawHandler
  })
  afterAll(() => {
    installOpHandler(before)
  })

  test('without autograd: no gradient, and gradients are refused with a remedy', () => {
    const x = ones([2])
    expect([x.autograd, x.requiresGrad, x.isLeaf, x.grad, x.gradFn]).toEqual([null, false, true, null, null])
    x.grad = null
    expect(() => {
      x.grad = ones([2])
    }).toThrow('Call requiresGrad_() first.')
    for (const attempt of [
      () => x.requiresGrad_(),
      () => x.backward(),
      () => x.registerHook((g) => g),
      () => ones([1], { requiresGrad: true }),
    ]) {
      expect(attempt).toThrow("Import from 'postgrad' or '@postgrad/autograd'.")
    }
    expect(x.requiresGrad_(false)).toBe(x)
  })

  test('filled: the getters read it', () => {
    const x = ones([2])
    const gradFn = { name: 'AddBackward' }
    x.autograd = { requiresGrad: true, grad: null, isGradUnseen: false, gradFn, outputNr: 0 }
    expect([x.requiresGrad, x.isLeaf, x.gradFn]).toEqual([true, false, gradFn])
    expect(x.toString()).toBe('tensor([1., 1.], gradFn=<AddBackward>)')
    x.grad = x.detach()
    expect(x.grad?.toArray()).toEqual([1, 1])
  })
})

test('every operation is a method, and gives what the function gives', () => {
  const a = rand([3, 3])
  const b = rand([3, 3])
  const same = (x: Tensor, y: Tensor) => expect(x.toArray()).toEqual(y.toArray())
  same(a.add(b), raw.add(a, b))
  same(a.sub(b), raw.sub(a, b))
  same(a.matmul(b).sum(0, true), raw.sum(raw.matmul(a, b), 0, true))
  same(a.gt(b).where(a, b), raw.maximum(a, b))
  same(a.softmax(1), raw.softmax(a, 1))
  // As in PyTorch: what has no first tensor, and most of `torch.nn.functional`.
  const isMethod = (op: string) => typeof (Tensor.prototype as unknown as Record<string, unknown>)[op] === 'function'
  const functions = [
    ...[
      'broadcastTensors',
      'cat',
      'stack',
      'hstack',
      'vstack',
      'meshgrid',
      'pad',
      'oneHot',
      'einsum',
      'tensordot',
      'linear',
      'dropout',
      'cdist',
    ],
    ...[
      'conv1d',
      'conv2d',
      'convTranspose1d',
      'convTranspose2d',
      'maxPool1d',
      'maxPool2d',
      'maxPool2dWithIndices',
      'avgPool1d',
      'avgPool2d',
    ],
    ...[
      'adaptiveAvgPool1d',
      'adaptiveAvgPool2d',
      'layerNorm',
      'batchNorm',
      'groupNorm',
      'instanceNorm',
      'embeddingBag',
      'cosineSimilarity',
    ],
    ...['mseLoss', 'l1Loss', 'smoothL1Loss', 'huberLoss', 'bceLoss', 'bceWithLogits', 'klDiv', 'gaussianNllLoss', 'pairwiseDistance'],
    'scaledDotProductAttention',
  ]
  expect(
    Object.keys(functionsOfUsers)
      .filter((op) => !isMethod(op))
      .sort(),
  ).toEqual(functions.sort())
})

test('where of two numbers: int32 if both are integers, else float32', () => {
  const cond = tensor([true, false])
  expect([cond.where(1, 2).dtype, cond.where(1, 2.5).dtype, cond.where(0.5, 2).dtype]).toEqual(['int32', 'float32', 'float32'])
  expect(cond.where(1, 2).toArray()).toEqual([1, 2])
})

test('helpers', () => {
  expect(isTensor(ones([1]))).toBe(true)
  expect(isTensor({ shape: [1] })).toBe(false)
  expect(byteSize(zeros([3, 5]).narrow(0, 0, 1))).toBe(20)
})
