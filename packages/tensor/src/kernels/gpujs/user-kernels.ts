/**
 * Runs users' kernels by gpu.js in mode cpu, for `raw/user-kernel.ts`, which checks them. The backends of the cpu also run float64, without
 * gpu.js, as the JavaScript function of the text (`js/user-kernel.ts`).
 */
import { PostgradError } from '@postgrad/base'
import { noNumber, runPlain, tryReads } from '../js/user-kernel.js'
import { elementsOf, type UserKernel, type UserKernels } from '../table/operands.js'
import { KernelCompiler } from './compiler.js'

const VARIANT = 'gpu.js cpu'

export function gpuUserKernels(compiler: KernelCompiler, { float64 = false } = {}): UserKernels {
  /** Two kernels may have one name; the number keeps the compiler's keys apart. */
  const numbers = new WeakMap<UserKernel, number>()
  let last = 0
  const run: UserKernels['run'] = (kernel, constants, operands, out) => {
    const { name } = kernel
    const n = out.numel
    const args = operands.map((arg) => (typeof arg === 'number' ? arg : elementsOf<Float32Array>(arg)))
    if (out.dtype === 'float64') {
      if (!float64) throw noFloat64(name)
      runPlain(kernel, constants, args, elementsOf(out))
      return
    }
    if (!numbers.has(kernel)) numbers.set(kernel, ++last)
    const source = (): string => {
      // Once for every size, when it is compiled.
      tryReads(kernel, n, constants, args)
      return kernel.source
    }
    const result = compiler.run(`${name}|#${numbers.get(kernel)}`, source, [n], constants, args)
    if (!ArrayBuffer.isView(result) || (result as Float32Array).length !== n) {
      const first = Array.isArray(result) ? (result[0] as Float32Array) : undefined
      throw noNumber(name, n, ArrayBuffer.isView(first) ? `${first.length} numbers from each` : typeof result)
    }
    elementsOf(out).set(result as Float32Array)
  }
  return { variant: VARIANT, run }
}

/** Those of the backends of the cpu: also in float64, which gpu.js does not have. */
export const hostUserKernels = (): UserKernels => gpuUserKernels(new KernelCompiler(), { float64: true })

function noFloat64(name: string): PostgradError {
  return new PostgradError('KERNEL_UNSUPPORTED', {
    op: name,
    message: `${VARIANT} has no float64: it returns float32 alone, which would drop half of the digits`,
    remedy: "Convert with to('float32'), or run it on another device: withDevice('wasm', fn).",
    values: { variant: VARIANT, dtype: 'float64' },
  })
}
