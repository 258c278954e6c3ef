/** All raw operations on the gpujs devices against PyTorch's numbers, as far as float32 goes; what has no kernel must say so. */
import { expect, test } from '@jest/globals'
import { tensor } from '../../create.js'
import { device, withDevice } from '../../device.js'
import type { DType } from '../../dtype.js'
import { opsSuite } from '../../ops.suite.js'
import * as raw from '../../raw/index.js'

/** The host moves these, for every dtype. */
const MOVES: ReadonlySet<string> = new Set([
  ...['clone', 'contiguous', 'cat', 'stack', 'embedding', 'copy_', 'fill_', 'zero_', 'to'],
  ...['view', 'reshape', 'transpose', 'permute', 'expand', 'squeeze', 'unsqueeze', 'narrow', 'select'],
])
/** Their int32 tensors are indices, which are exact in float32. */
const INDEXED: ReadonlySet<string> = new Set(['argmax', 'nllLoss', 'crossEntropy', 'embeddingBackward'])

function skip(op: string, label: string, dtypes: readonly DType[]): string | null {
  if (MOVES.has(op)) return null
  if (dtypes.includes('float64')) return 'gpu.js returns float32 alone'
  if (dtypes.includes('int32') && !(INDEXED.has(op) && dtypes.includes('float32'))) return 'int32 is exact only up to 2^24 in gpu.js'
  if (dtypes.includes('bool') && label.includes('number 2')) return 'a bool and the number 2 meet as int32'
  return null
}

for (const spec of ['gpujs:cpu', 'gpujs:webasm'] as const) {
  opsSuite(spec, () => device(spec), { tolerance: { float32: 2e-6, float64: 1e-13 }, skip })

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
