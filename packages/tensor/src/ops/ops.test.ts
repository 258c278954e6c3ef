/** The js backend against PyTorch's numbers; the other backends call the same suite, in their folders. */
import { expect, test } from '@jest/globals'
import { tensor } from '../index.js'
import type { Binary } from '../kernels/table/operands.js'
import { isUnsupported } from '../kernels/table/table.js'
import { Device, device } from '../tensor/device.js'
import { CALLS, goldenCases } from '../tensor/golden.suite.js'
import { rawOperations } from './define/define.js'
import { goldenFailures, opsSuite } from './ops.suite.js'

const tolerance = { float32: 1e-6, float64: 1e-13 }

opsSuite('js', () => device('js'), { tolerance })

test('the golden set covers every operation', () => {
  const covered = new Set(goldenCases().map((c) => c.op))
  // Parts of public operations, whose cases go through them.
  const parts = ['powNumber', 'powTensor', 'trueDivide', 'truncDivide', 'attention', 'toFrom', 'arrived', 'filled', 'zeroed', 'copied']
  parts.push('embeddingAt', 'nllLossRows', 'crossEntropyRows', 'orderedSum')
  expect(Object.keys(CALLS).filter((op) => !covered.has(op))).toEqual(parts)
})

test('the suite notices a kernel that is wrong in its last bits, and one that writes to its input', async () => {
  const whole = device('js').implementation
  const add = whole.kernels.add.float32
  if (isUnsupported(add)) throw new Error('the js backend adds')
  const wrong = (spoil: (out: Float32Array, a: Float32Array) => void): Device => {
    const kernel: Binary = (a, b, out) => {
      add(a, b, out)
      spoil(out.storage.host as Float32Array, a.storage.host as Float32Array)
    }
    return new Device('js', { ...whole, kernels: { ...whole.kernels, add: { ...whole.kernels.add, float32: kernel } } })
  }
  const cases = goldenCases().filter((c) => c.op === 'add' && c.label === 'equal shapes')
  expect(cases).toHaveLength(1)
  const run = (spoil: (out: Float32Array, a: Float32Array) => void) => goldenFailures(wrong(spoil), cases, { tolerance })
  expect(await run(() => {})).toEqual([])
  expect(await run((out) => (out[8] = out[8]! + 1e-5))).toEqual([expect.stringContaining('element 8')])
  expect(await run((_, a) => (a[0] = 7))).toEqual(['equal shapes: input 0 was written to'])
})

test('lerp begins at the nearer end, whatever the sign of a weight in a tensor', () => {
  const { lerp } = rawOperations
  const [a, b] = [tensor([1, 1e-30]), tensor([Number.POSITIVE_INFINITY, -3.4e38])]
  const by = (weight: number) => [...lerp(a, b, tensor([weight, weight])).dataSync()]
  expect(by(-1)).toEqual([...lerp(a, b, -1).dataSync()])
  expect(by(-1)).toEqual([Number.NEGATIVE_INFINITY, Math.fround(3.4e38)])
})
