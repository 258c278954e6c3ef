/** Gradients between two devices. */
import { expect, test } from '@jest/globals'
import { isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { defineFunction } from '../index.js'

test('what cpu() brings down has its history: the gradient goes back up to the leaf', async () => {
  const there = residentDevice()
  const leaf = tensor([1, 2], { device: there, requiresGrad: true })
  const down = await leaf.mul(3).cpu()
  expect([String(down.device), down.requiresGrad, down.gradFn?.name]).toEqual(['cpu', true, 'ToBackward'])
  down
    .mul(tensor([1, 10]))
    .sum()
    .backward()
  expect([String(leaf.grad!.device), (await leaf.grad!.cpu()).toArray()]).toEqual([there.spec, [3, 30]])
})

test('to() and back within the cpu keeps dtype and history', () => {
  const leaf = tensor([1, 2], { requiresGrad: true })
  leaf.to('cpu', 'float64').mul(2).to(leaf).sum().backward()
  expect([leaf.grad!.dtype, leaf.grad!.toArray()]).toEqual(['float32', [2, 2]])
})

test('the graph does not keep the tensor whose dtype and device to() takes', () => {
  const model = tensor([1], { dtype: 'float64' })
  const y = tensor([1, 2], { requiresGrad: true }).to(model)
  expect([y.dtype, (y.gradFn as unknown as { attrs: unknown[] }).attrs.filter(isTensor)]).toEqual(['float64', []])
})

test('a leaf of the cpu gets no gradient from a device that cannot be read at once, and the error says what to do', () => {
  const leaf = tensor([1, 2], { requiresGrad: true })
  const loss = leaf.to(residentDevice()).sum()
  expect(() => loss.backward()).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', op: 'to' }))
  expect(leaf.grad).toBeNull()
})

test('in-place operations, views and hooks work there', async () => {
  const leaf = tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { device: residentDevice(), requiresGrad: true },
  )
  const y = leaf.mul(2)
  y.select(0, 1).mul_(5)
  leaf.registerHook((g) => g.neg())
  y.sum().backward()
  expect((await leaf.grad!.cpu()).toArray()).toEqual([
    [-2, -2],
    [-10, -10],
  ])
})

test('a custom function whose result gets no gradient is given zeros, here and there', async () => {
  const seen: string[] = []
  const first = defineFunction({
    name: 'First',
    forward: (_, x: Tensor) => x.mul(1),
    backward: (_, g) => {
      seen.push(`${g.device.type.replace(/:\d+/, '')} ${g.shape}`)
      return g
    },
  })
  const none = defineFunction({ name: 'None', forward: (_, x: Tensor) => x.mul(1), backward: () => null })
  for (const device of [undefined, residentDevice()]) {
    const x = tensor([1, 2], { requiresGrad: true, ...(device === undefined ? {} : { device }) })
    none(first(x)).sum().backward()
    expect([...(await x.grad!.data())]).toEqual([0, 0])
  }
  expect(seen).toEqual(['cpu 2', 'resident 2'])
})

test('a copy from the cpu has a gradient that would have to come back: it is refused like that of to()', () => {
  const leaf = tensor([1, 2], { requiresGrad: true })
  const there = tensor([0, 0], { device: residentDevice() })
  there.copy_(leaf)
  expect(() => there.sum().backward()).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS' }))
})

test('what is written after cpu() was called is neither in the copy nor in its history', async () => {
  const leaf = tensor([1], { device: residentDevice(), requiresGrad: true })
  const h = leaf.mul(2)
  const coming = h.cpu()
  h.mul_(3)
  const down = await coming
  down.sum().backward()
  expect([down.toArray(), (await leaf.grad!.cpu()).toArray()]).toEqual([[2], [2]])
})

test('a gradient on another device than its value is refused, whether backward, a hook of a tensor or a hook of a node returns it', () => {
  const there = residentDevice()
  const leaf = tensor([1, 2], { device: there, requiresGrad: true })
  const refused = (op: string) =>
    expect.objectContaining({
      code: 'DEVICE_MISMATCH',
      op,
      message: expect.stringContaining(`grad.to('${there}')`),
      values: { index: 0, devices: [String(there), 'cpu'] },
    })
  const stray = defineFunction({ name: 'Stray', forward: (_, x: Tensor) => x.mul(1), backward: () => tensor([1, 1]) })
  expect(() => stray(leaf).sum().backward()).toThrow(refused('StrayBackward'))
  const hooked = leaf.mul(1)
  hooked.registerHook(() => tensor([1, 1]))
  expect(() => hooked.sum().backward()).toThrow(refused('hook of MulBackward'))
  const y = leaf.mul(1)
  y.gradFn!.registerPreHook(() => [tensor([1, 1])])
  expect(() => y.sum().backward()).toThrow(refused('hook of MulBackward'))
  const far = defineFunction({ name: 'Far', forward: (_, x: Tensor) => x.mul(1), backward: () => tensor([1, 1], { device: there }) })
  const near = tensor([1, 2], { requiresGrad: true })
  expect(() => far(near).sum().backward()).toThrow(
    expect.objectContaining({ code: 'DEVICE_MISMATCH', message: expect.stringContaining("compute the gradient on 'cpu'") }),
  )
  expect(() => leaf.mul(1).backward(tensor([1, 1]))).toThrow(
    expect.objectContaining({
      code: 'DEVICE_MISMATCH',
      op: 'backward',
      message: expect.stringContaining(`the gradient of root 0 on device '${there}', where the root is`),
    }),
  )
  expect(leaf.grad).toBeNull()
})

test('a gradient of the cpu without dimensions follows its value to the device, as a number does', async () => {
  const there = residentDevice()
  const leaf = tensor([1, 2], { device: there, requiresGrad: true })
  leaf.sum().backward(tensor(3))
  const total = defineFunction({ name: 'Total', forward: (_, x: Tensor) => x.mul(1), backward: () => tensor(2) })
  const part = tensor(1, { device: there, requiresGrad: true })
  total(part).backward()
  expect([leaf.grad!, part.grad!].map(({ device }) => String(device))).toEqual([String(there), String(there)])
  expect([(await leaf.grad!.cpu()).toArray(), await part.grad!.item()]).toEqual([[3, 3], 2])
  const hooked = tensor(1, { device: there, requiresGrad: true })
  const y = hooked.mul(2)
  y.registerHook(() => tensor(5))
  y.backward()
  expect([String(hooked.grad!.device), await hooked.grad!.item()]).toEqual([String(there), 10])
})

test('to() takes dtype and device from another tensor, and the dtype that is given goes before', () => {
  const other = tensor([1], { dtype: 'float64' })
  const x = tensor([1.5, 2], { requiresGrad: true })
  expect([x.to(other).dtype, x.to(other, 'int32').dtype, x.to(other, 'float32') === x]).toEqual(['float64', 'int32', true])
  expect(() => x.to(other, 'bogus' as 'int32')).toThrow(expect.objectContaining({ code: 'DTYPE_MISMATCH' }))
})
