/**
 * Kernels that users write, on the compiler of a device: the gpujs devices run them in their own mode, `wasm` and `reference` have a compiler in
 * mode 'cpu' for them alone. Above: `raw/user-kernel.ts`, which checks what users give.
 */
import { PostgradError } from '@postgrad/base'
import type { UserKernel, UserKernels } from '../table.js'
import type { KernelCompiler } from './compiler.js'
import { checkIndexable } from './kernels.js'

export class GpuUserKernels implements UserKernels {
  readonly variant: string
  readonly #compiler: KernelCompiler
  /** Two kernels may have one name; the number tells them apart in the compiler's keys. */
  readonly #numbers = new WeakMap<UserKernel, number>()
  #last = 0

  constructor(compiler: KernelCompiler) {
    this.#compiler = compiler
    this.variant = `gpu.js ${compiler.mode}`
  }

  run(
    kernel: UserKernel,
    n: number,
    constants: Readonly<Record<string, number>>,
    args: readonly (Float32Array | number)[],
    out: Float32Array,
    outOffset: number,
  ): void {
    const { name } = kernel
    checkIndexable(name, this.variant, n)
    let key = `${name}|#${this.#numberOf(kernel)}|${n}`
    for (const arg of args) {
      if (typeof arg === 'number') continue
      checkIndexable(name, this.variant, arg.length)
      key += `|${arg.length}`
    }
    for (const constant in constants) key += `|${constant}=${constants[constant]}`
    const result = this.#compiler.run(key, () => kernel.source, [n], constants, args)
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

function notNumbers(name: string, n: number, result: unknown): PostgradError {
  const first = Array.isArray(result) ? (result as readonly unknown[])[0] : undefined
  return new PostgradError('KERNEL_RESULT', {
    op: name,
    expected: `one number from each of ${n} threads`,
    got: ArrayBuffer.isView(first) ? `${(first as Float32Array).length} numbers from each` : typeof result,
    remedy: 'Return one number: each thread computes one element of the result.',
  })
}
