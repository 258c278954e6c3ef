/** Whether the kernels of the default device compute right here: a small product, compared with the loops of js. */
import { type DeviceSpec, isPostgradError, tensor, withDevice } from 'postgrad'
import { type Finding, fail, ok } from './finding.js'

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

/** Whether the default device works. */
export async function judgeWasm(compute: (device: DeviceSpec) => Promise<readonly number[]>): Promise<Finding> {
  const name = 'device wasm'
  try {
    const [got, right] = [await compute('wasm'), await compute('js')]
    const worst = Math.max(...got.map((value, at) => Math.abs(value - right[at]!)))
    if (got.length === right.length && worst <= TOLERANCE) return ok(name, 'works')
    return fail(name, `computes something else: off by ${worst}`, 'Its results are wrong.', 'Use --device js, and report this as a bug.')
  } catch (error) {
    const why = isPostgradError(error) || error instanceof Error ? error.message : String(error)
    const todo = isPostgradError(error, 'HEAP_UNAVAILABLE')
      ? 'The memory in which it computes is missing, not SIMD: raise the limit on virtual memory (ulimit -v unlimited), or use --device js.'
      : 'WebAssembly with shared memory and SIMD is missing; use --device js.'
    return fail(name, `does not work: ${why}`, 'Programs on it fail.', todo)
  }
}
