/**
 * Compiles gpu.js kernels for one device and keeps them, the least recently used going first. Below: gpu.js, loaded at the first kernel;
 * above: `kernels.ts`. gpu.js falls back to another mode by itself, with a warning at most: after each build the mode that really runs is
 * checked here, and a warning is a failure.
 */
import { createRequire } from 'node:module'
import { PostgradError } from '@postgrad/base'

/** The one mode of gpu.js that runs everywhere, sums in double, and rounds once at the end. */
const MODE = 'cpu'

/** Sizes and strides, baked into the kernel. */
export type Constants = Readonly<Record<string, number>>
/** What a kernel takes: flat arrays, or numbers. */
export type Argument = Float32Array | number
type Result = Float32Array | readonly Float32Array[]

/** The part of gpu.js that is used here (its own types need the DOM library). */
export interface GpuKernel {
  (...args: Argument[]): Result
  readonly kernel: { readonly constructor: { readonly mode: string }; readonly fallbackReason?: string | null; destroy(): void }
}
export interface Gpu {
  readonly kernels: object[]
  createKernel(source: string, settings: object): GpuKernel
}
type GpuModule = { readonly GPU: new (settings: { mode: typeof MODE }) => Gpu }

/** Kernels that a device keeps: one for each size, so they must have a bound. A kernel that went is compiled again, in about 1.3 ms. */
export const KERNELS_MAX = 96

const REMEDY = 'Write it in the part of JavaScript that gpu.js compiles (no closures, arrays or objects of its own; one number returned).'

export class KernelCompiler {
  readonly #kernels = new Map<string, GpuKernel>()
  readonly #kernelsMax: number
  readonly #load: () => Gpu
  #gpu: Gpu | null = null
  #compiled = 0

  /** `load` makes gpu.js at the first kernel. */
  constructor(kernelsMax = KERNELS_MAX, load = loadGpu) {
    this.#kernelsMax = kernelsMax
    this.#load = load
  }

  /** How many kernels are kept now, and how many were ever compiled. */
  get counts(): { readonly kept: number; readonly compiled: number } {
    return { kept: this.#kernels.size, compiled: this.#compiled }
  }

  /**
   * Runs the kernel of that key over `output` threads, compiling it first if need be. The key must name the source, the output, the
   * constants and the lengths of all array arguments: gpu.js bakes them in. What stands before its first | is the kernel's name.
   * @throws KERNEL_COMPILE when gpu.js does not build it, KERNEL_MODE when another mode than cpu would run
   */
  run(key: string, source: () => string, output: readonly number[], constants: Constants, args: readonly Argument[]): Result {
    let kernel = this.#kernels.get(key)
    if (kernel !== undefined) {
      // The map's order is that of use.
      this.#kernels.delete(key)
      this.#kernels.set(key, kernel)
      return kernel(...args)
    }
    kernel = this.#create(key, source(), output, constants, args)
    let result: Result
    try {
      result = this.#firstCall(key, kernel, args)
    } catch (error) {
      this.#discard(kernel)
      throw error
    }
    this.#kernels.set(key, kernel)
    if (this.#kernels.size > this.#kernelsMax) this.#evict()
    return result
  }

  #create(key: string, source: string, output: readonly number[], constants: Constants, args: readonly Argument[]): GpuKernel {
    this.#gpu ??= this.#load()
    this.#compiled++
    const settings = {
      output: [...output],
      constants: { ...constants },
      constantTypes: Object.fromEntries(Object.keys(constants).map((name) => [name, 'Integer'])),
      argumentTypes: args.map((arg) => (typeof arg === 'number' ? 'Float' : 'Array')),
      precision: 'single',
      strictIntegers: true,
      // Loops whose bound is no constant would stop after 1000 rounds, silently.
      loopMaxIterations: 2 ** 31 - 1,
    }
    try {
      return this.#gpu.createKernel(source, settings)
    } catch (cause) {
      throw this.#notBuilt(key, cause)
    }
  }

  #notBuilt(key: string, cause: unknown): PostgradError {
    const reason = String((cause as { message?: unknown } | null)?.message ?? cause).trim()
    return new PostgradError('KERNEL_COMPILE', {
      op: nameOf(key),
      message: `gpu.js could not build this kernel in mode '${MODE}': ${reason}`,
      remedy: REMEDY,
      values: { mode: MODE, key, reason },
      cause,
    })
  }

  /** gpu.js compiles at the first call, and this is where it would fall back. The console is watched for the length of that call alone. */
  #firstCall(key: string, kernel: GpuKernel, args: readonly Argument[]): Result {
    const warnings: string[] = []
    const warn = console.warn
    console.warn = (...parts: unknown[]) => {
      warnings.push(parts.join(' '))
    }
    let result: Result
    try {
      result = kernel(...args)
    } catch (cause) {
      throw this.#notBuilt(key, cause)
    } finally {
      console.warn = warn
    }
    const { kernel: built } = kernel
    const ran = built.constructor.mode
    if (ran !== MODE || built.fallbackReason || warnings.length > 0) {
      throw new PostgradError('KERNEL_MODE', {
        op: nameOf(key),
        expected: `a gpu.js kernel in mode '${MODE}', built without a warning`,
        got: `mode '${ran}'${[built.fallbackReason, ...warnings]
          .filter(Boolean)
          .map((text) => `; ${text}`)
          .join('')}`,
        remedy: REMEDY,
        values: { mode: MODE, ran, key, warnings },
      })
    }
    return result
  }

  #evict(): void {
    for (const [key, kernel] of this.#kernels) {
      this.#kernels.delete(key)
      this.#discard(kernel)
      return
    }
  }

  #discard({ kernel }: GpuKernel): void {
    kernel.destroy()
    // gpu.js's own list would keep it alive: destroy() leaves it there.
    const list = this.#gpu!.kernels
    const at = list.indexOf(kernel)
    if (at >= 0) list.splice(at, 1)
  }
}

function nameOf(key: string): string {
  return key.split('|', 1)[0]!
}

/** gpu.js takes a while to load and most workers never need it. It is CommonJS, and kernels are synchronous: hence `require`. */
function loadGpu(): Gpu {
  const { GPU } = createRequire(import.meta.url)('gpu.js') as GpuModule
  return new GPU({ mode: MODE })
}
