/** Which devices compute here, and whether they compute right: a small product on each, compared with the loops of js. */
import { type DeviceSpec, isPostgradError, tensor, withDevice } from 'postgrad'
import { type Finding, fail, ok, warn } from './finding.js'

const ROWS = 4
const TOLERANCE = 1e-4

/** The product and a function of it, of fixed numbers. */
export async function computeOn(device: DeviceSpec): Promise<readonly number[]> {
  return withDevice(device, async () => {
    const numbers = (scale: number) =>
      Array.from({ length: ROWS }, (_, i) => Array.from({ length: ROWS }, (_, j) => Math.sin(scale * (i * ROWS + j))))
    const result = tensor(numbers(1))
      .matmul(tensor(numbers(0.5)))
      .tanh()
    return (result.toArray() as number[][]).flat()
  })
}

/** What to do about a device that does not work. */
const WITHOUT: Readonly<Record<string, string>> = {
  wasm: 'WebAssembly with shared memory and SIMD is missing; use --device js.',
  'gpujs:cpu': 'Use --device wasm, which is faster in any case.',
  'gpujs:webasm': 'Use --device wasm, which is faster in any case.',
}

export async function judgeDevice(device: string, compute: (device: DeviceSpec) => Promise<readonly number[]>): Promise<Finding> {
  const name = `device ${device}`
  const todo = WITHOUT[device] ?? 'Use another --device.'
  const judge = device === 'wasm' ? fail : warn
  try {
    const [got, right] = [await compute(device as DeviceSpec), await compute('js')]
    const worst = Math.max(...got.map((value, at) => Math.abs(value - right[at]!)))
    if (got.length === right.length && worst <= TOLERANCE) return ok(name, 'works')
    return judge(name, `computes something else: off by ${worst}`, 'Its results are wrong.', todo)
  } catch (error) {
    const why = isPostgradError(error) || error instanceof Error ? error.message : String(error)
    return judge(name, `does not work: ${why}`, 'Programs on it fail.', todo)
  }
}
