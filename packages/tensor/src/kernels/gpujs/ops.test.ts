/** All raw operations with the gpu.js kernels against PyTorch's numbers, in float32; missing kernels must be refused. */
import { expect, test } from '@jest/globals'
import { rawOperations as raw } from '../../ops/define/define.js'
import { opsSuite } from '../../ops/ops.suite.js'
import { tensor } from '../../tensor/create.js'
import { withDevice } from '../../tensor/device.js'
import { gpujsDevice } from '../../tensor/gpujs-device.suite.js'

const device = gpujsDevice()

opsSuite('gpujs', () => device, { tolerance: { float32: 2e-6, float64: 1e-13 }, mayRefuse: true })

test('what has no kernel throws KERNEL_UNSUPPORTED with the reason and a remedy', () => {
  const x = tensor([1, 2], { dtype: 'float64' })
  expect(() => withDevice(device, () => raw.exp(x))).toThrow(
    expect.objectContaining({
      code: 'KERNEL_UNSUPPORTED',
      message: expect.stringContaining('float32 alone'),
      remedy: expect.stringContaining('to('),
      values: { device: 'gpujs', op: 'exp', dtype: 'float64' },
    }),
  )
  const i = tensor(Int32Array.of(1, 2))
  expect(() => withDevice(device, () => raw.mul(i, i))).toThrow(expect.objectContaining({ code: 'KERNEL_UNSUPPORTED' }))
})
