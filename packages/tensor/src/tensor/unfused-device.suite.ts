/** The wasm device without fused kernels, so that the operations run which they are made of. For tests alone. */
import { jsKernels } from '../kernels/js/backend.js'
import { FUSED_OPS } from '../kernels/table/ops.js'
import { Device, device } from './device.js'

export function unfusedDevice(): Device {
  const { implementation } = device('wasm')
  const without = Object.fromEntries(FUSED_OPS.map((op) => [op, jsKernels[op]]))
  return new Device('unfused', { ...implementation, label: 'unfused', kernels: { ...implementation.kernels, ...without } })
}
