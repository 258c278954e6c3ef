/**
 * Kernels that users write, by gpu.js in mode cpu. The backends of the cpu also run float64, without gpu.js, as the function that the text is
 * (`js/user-kernel.ts`). Above: `raw/user-kernel.ts`, which checks what users give.
 */
import { PostgradError } from '@postgrad/base'
import { runPlain, tryReads } from '../js/user-kernel.js'
import type { ArrayUserKernels, UserKernel } from '../table/table.js'
import { KernelCompiler } from './compiler.js'
import { checkIndexable } from './kernels.js'

export class GpuUserKernels implements ArrayUserKernels {
  readonly variant = 'gpu.js cpu'
  readonly #compiler: KernelCompiler
  /** Two kernels may have one name; the number tells them apart in the compiler's keys. */
  readonly #numbers = new WeakMap<UserKernel, number>()
  #last = 0

  readonly #float64: boolean

  constructor(compiler: KernelCompiler, { float64 = false } = {}) {
    this.#compiler = compiler
    this.#float64 = float64
  }

  run(
    kernel: UserKernel,
    n: number,
    constants: Readonly<Record<string, number>>,
    args: readonly (Float32Array | Float64Array | number)[],
    out: Float32Array | Float64Array,
    outOffset: number,
  ): void {
    const { name } = kernel
    if (out.BYTES_PER_ELEMENT === 8) {
      if (!this.#float64) throw noFloat64(name, this.variant)
      runPlain(kernel, n, constants, args, out.subarray(outOffset) as Float64Array)
      return
    }
    checkIndexable(name, this.variant, n)
    let key = `${name}|#${this.#numberOf(kernel)}|${n}`
    for (const arg of args) {
      if (typeof arg === 'number') continue
      checkIndexable(name, this.variant, arg.length)
      key += `|${arg.length}`
    }
    for (const constant in constants) key += `|${constant}=${constants[constant]}`
    const source = (): string => {
      // Once for every size, when it is compiled.
      tryReads(kernel, n, constants, args)
      return kernel.source
    }
    const result = this.#compiler.run(key, source, [n], constants, args as readonly (Float32Array | number)[])
    if (!ArrayBuffer.isView(result) || (result as Float32Array).length !== n) throw notNumbers(name, n, result)
    out.set(result as Float32Array, outOffset)
  }

  #numberOf(kernel: UserKernel): number {
    let number = this.#numbers.get(kernel)
    if (number === undefined) {
      number = ++this.#last
      this.#numbers.set(kernel, number)
    }
    return number
  }
}

/** Those of the backends of the cpu: also in float64, which gpu.js does not have. */
export const hostUserKernels = (): ArrayUserKernels => new GpuUserKernels(new KernelCompiler(), { float64: true })

function noFloat64(name: string, variant: string): PostgradError {
  return new PostgradError('KERNEL_UNSUPPORTED', {
    op: name,
    message: `${variant} has no float64: it returns float32 alone, which would drop half of the digits`,
    remedy: "Convert with to('float32'), or run it on another device: withDevice('wasm', fn).",
    values: { variant, dtype: 'float64' },
  })
}

function notNumbers(name: string, n: number, result: unknown): PostgradError {
  const first = Array.isArray(result) ? (result as readonly unknown[])[0] : undefined
  return new PostgradError('KERNEL_RESULT', {
    op: name,
    expected: `one number from each of ${n} threads`,
    got: ArrayBuffer.isView(first) ? `${(first as Float32Array).length} numbers from each` : typeof result,
    remedy: 'Return one number: each thread computes one element of the result.',
  })
}
