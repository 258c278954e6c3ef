/** Devices: one per thread and name, carried by the scope, and a table that says what runs and why not. */
import { inspect } from 'node:util'
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { currentDevice, Device, type DType, device, tensor, withDevice } from '../index.js'
import type { Backend } from '../kernels/table/backend.js'
import { FUSED_OPS } from '../kernels/table/ops.js'
import { isUnsupported, KERNEL_OPS, type KernelOp, unsupported } from '../kernels/table/table.js'

test('one device per name', () => {
  expect(device('js')).toBe(device('js'))
  expect(device('js').backend).toBe('js')
  expect([String(device('js')), JSON.stringify(device('js')), inspect(device('js'))]).toEqual(['js', '"js"', "Device { 'js' }"])
})

test('withDevice holds through awaits and does not leak', async () => {
  const before = currentDevice()
  const js = device('js')
  const inside = await withDevice('js', async () => {
    await Promise.resolve()
    return currentDevice()
  })
  expect(inside).toBe(js)
  expect(currentDevice()).toBe(before)
})

test('kernelFor names what would run, or the reason why nothing would', () => {
  const js = device('js')
  expect(js.kernelFor('add', 'float32', [3, 3])).toEqual({
    device: 'js',
    op: 'add',
    dtype: 'float32',
    supported: true,
    variant: 'loop',
    reason: null,
  })
  const none = js.kernelFor('div', 'int32')
  expect(none.supported).toBe(false)
  expect(none.reason).toMatch('true division')
  expect(() => js.kernelFor('fly' as KernelOp, 'float32')).toThrow('kernelFor: expected one of the kernel ops')
})

test('the js backend leaves out only cells that no operation asks for', () => {
  const { kernels } = device('js').implementation
  const fused: ReadonlySet<KernelOp> = new Set(FUSED_OPS)
  for (const op of KERNEL_OPS) {
    if (fused.has(op)) continue
    for (const dtype of ['float32', 'float64', 'int32'] as const) {
      const entry = kernels[op][dtype]
      if (!isUnsupported(entry)) continue
      if (entry.unsupported.startsWith('bits are')) continue
      // Of integers raw operations make real numbers first, or refuse them.
      expect([op, dtype]).toEqual([op, 'int32'])
      expect(entry.unsupported).toMatch(/real numbers|true division/)
    }
  }
})

/** The js backend with some cells taken out. */
function crippled(without: readonly [KernelOp, DType][]): Device {
  const whole = device('js').implementation
  const kernels = { ...whole.kernels } as Record<string, Record<string, object>>
  for (const [op, dtype] of without) kernels[op] = { ...kernels[op], [dtype]: unsupported('taken out for a test') }
  return new Device('crippled', { ...whole, label: 'crippled', kernels: kernels as unknown as Backend['kernels'] })
}

test('KERNEL_UNSUPPORTED carries the reason and the remedy', () => {
  const target = crippled([['exp', 'float64']])
  const x = tensor([1, 2], { dtype: 'float64' })
  let caught: unknown
  try {
    withDevice(target, () => x.exp())
  } catch (error) {
    caught = error
  }
  if (!isPostgradError(caught, 'KERNEL_UNSUPPORTED')) throw caught
  expect(caught.message).toBe(
    "exp: device 'crippled' has no kernel for float64: taken out for a test. " +
      "Convert with to(dtype), or run it on another device: withDevice('js', fn).",
  )
  expect(caught.values).toEqual({ device: 'crippled', op: 'exp', dtype: 'float64' })
  expect(withDevice(target, () => x.log()).dtype).toBe('float64')
})

test('an unknown name is refused with the names that exist', () => {
  expect(() => device('cuda' as 'wasm')).toThrow(/device: expected one of cpu, .*wasm.*got cuda/)
  expect(() => device('toString' as 'wasm')).toThrow('got toString')
  // Kernels that tests alone run.
  for (const name of ['reference', 'gpujs', 'gpujs:cpu', 'gpujs:webasm']) {
    expect(() => device(name as 'wasm')).toThrow(expect.objectContaining({ code: 'DEVICE_UNKNOWN' }))
  }
})
