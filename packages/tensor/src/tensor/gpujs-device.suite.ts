/** A device of the gpu.js kernels, which run in mode cpu here and on a GPU one day. For tests alone: users' devices have other kernels. */
import { createGpujsBackend } from '../kernels/gpujs/backend.js'
import { Device } from './device.js'

export function gpujsDevice(): Device {
  return new Device('gpujs', createGpujsBackend())
}
