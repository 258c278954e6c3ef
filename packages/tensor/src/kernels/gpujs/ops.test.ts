/** All raw operations on the gpujs devices against PyTorch's numbers, as far as float32 goes; what has no kernel must say so. */
import { expect, test } from '@jest/globals'
import { opsSuite } from '../../ops/ops.suite.js'
import * as raw from '../../raw/index.js'
import { tensor } from '../../tensor/create.js'
import { device, withDevice } from '../../tensor/device.js'

for (const spec of ['gpujs:cpu', 'gpujs:webasm'] as const) {
  opsSuite(spec, () => device(spec), { tolerance: { float32: 2e-6, float64: 1e-13 }, mayRefuse: true })

  test(`${spec}: what has no kernel throws KERNEL_UNSUPPORTED with the reason and a remedy`, () => {
    const x = tensor([1, 2], { dtype: 'float64' })
    expect(() => withDevice(spec, () => raw.exp(x))).toThrow(
      expect.objectContaining({
        code: 'KERNEL_UNSUPPORTED',
        message: expect.stringContaining('float32 alone'),
        remedy: expect.stringContaining('to('),
        values: { device: spec, op: 'exp', dtype: 'float64' },
      }),
    )
    const i = tensor(Int32Array.of(1, 2))
    expect(() => withDevice(spec, () => raw.mul(i, i))).toThrow(expect.objectContaining({ code: 'KERNEL_UNSUPPORTED' }))
  })
}
