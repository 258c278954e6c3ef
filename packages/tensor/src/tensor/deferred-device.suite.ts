/**
 * A device that computes as late as a GPU may: the js backend, whose kernels wait in a queue until somebody settles it. An
 * operation that looks at elements too early finds what was there before. For tests alone.
 */
import assert from 'node:assert/strict'
import { hostUserKernels } from '../kernels/gpujs/user-kernels.js'
import { createJsBackend } from '../kernels/js/backend.js'
import { type ArrayKernelTable, type Backend, isUnsupported, KERNEL_OPS, type KernelOp } from '../kernels/table/table.js'
import { DTYPES, type TypedArray } from '../values/dtype.js'
import { Device } from './device.js'

type AnyKernel = Readonly<Record<string, (...args: unknown[]) => void>>

/** How many arrays a kernel writes: the last ones among its arguments. All others write one. */
const OUTPUTS: Readonly<Partial<Record<KernelOp, number>>> = {
  maxPool2d: 2,
  layerNorm: 3,
  layerNormBackward: 3,
  channelNorm: 3,
  channelNormBackward: 3,
}
export class DeferredBackend implements Backend {
  readonly name = 'js'
  readonly label = 'deferred'
  readonly synchronous = false
  readonly kernels: ArrayKernelTable
  readonly userKernels: Backend['userKernels']
  readonly #js = createJsBackend(hostUserKernels())
  readonly #pending = new Set<TypedArray>()
  #queue: (() => void)[] = []

  constructor() {
    this.kernels = Object.fromEntries(
      KERNEL_OPS.map((op) => [op, Object.fromEntries(DTYPES.map((dtype) => [dtype, this.#deferred(op, this.#js.kernels[op][dtype])]))]),
    ) as unknown as ArrayKernelTable
    const { variant } = this.#js.userKernels
    this.userKernels = {
      variant,
      run: (...args) => this.#enqueue([args[4]], () => this.#js.userKernels.run(...args)),
    }
  }

  /** Kernels that wait. */
  get waiting(): number {
    return this.#queue.length
  }

  ready(): Promise<void> {
    return Promise.resolve()
  }

  async settle(): Promise<void> {
    await Promise.resolve()
    const queue = this.#queue
    this.#queue = []
    for (const run of queue) run()
    this.#pending.clear()
  }

  isSettled(array: TypedArray): boolean {
    return !this.#pending.has(array)
  }

  variantOf(): string {
    return 'loop'
  }

  #deferred(op: KernelOp, kernel: object): object {
    if (isUnsupported(kernel)) return kernel
    const entries = Object.entries(kernel as AnyKernel).map(([form, run]) => [form, (...args: unknown[]) => this.#call(op, run, args)])
    return Object.fromEntries(entries)
  }

  #call(op: KernelOp, run: (...args: unknown[]) => void, args: readonly unknown[]): void {
    // Of those at the end that are not wanted, null stands in the place.
    const arrays = args.filter((arg) => arg === null || ArrayBuffer.isView(arg)) as (TypedArray | null)[]
    const outputs = arrays.slice(-(OUTPUTS[op] ?? 1)).filter((array) => array !== null)
    const inputs = arrays.filter((array) => array !== null && !outputs.includes(array)) as TypedArray[]
    this.#enqueue(outputs, () => {
      const before = inputs.map((array) => array.slice())
      run(...args)
      before.forEach((copy, i) => {
        assert(
          copy.every((v, j) => Object.is(v, inputs[i]![j])),
          `${op} writes to more than its last ${outputs.length} arrays`,
        )
      })
    })
  }

  #enqueue(outputs: readonly TypedArray[], run: () => void): void {
    for (const out of outputs) this.#pending.add(out)
    this.#queue.push(run)
  }
}

export function deferredDevice(): Device {
  return new Device('js', new DeferredBackend())
}
