/**
 * Compiles gpu.js kernels for one device and keeps them; the least recently used go first. Loads gpu.js at the first kernel. Used by
 * `kernels.ts`. gpu.js falls back to another mode by itself, with a warning at most: after each build this file checks the mode that really
 * runs, and a warning is a failure.
 */
import { createRequire } from 'node:module'
import { PostgradError } from '@postgrad/base'

/** The one mode of gpu.js that runs everywhere, sums in double, and rounds once at the end. */
const MODE = 'cpu'

/** Sizes and strides, baked into the kernel. */
export type Constants = Readonly<Record<string, number>>
/** A kernel's argument: flat array, or number. */
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

/** Integers up to here are exact in float32, and so are indices in kernels. */
const INDEX_MAX = 2 ** 24

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
   * Runs a kernel over `output` threads, compiling it first if need be: once for each name, output, constants and lengths of arrays, which gpu.js bakes in. So
   * each source has its own name, which begins with the operation's name and |. A source that is a function is called when it is compiled.
   * @throws KERNEL_UNSUPPORTED for too many elements, KERNEL_COMPILE when gpu.js does not build it, KERNEL_MODE when another mode than cpu would run
   */
  run(name: string, source: string | (() => string), output: readonly number[], constants: Constants, args: readonly Argument[]): Result {
    const key = keyOf(name, output, constants, args)
    let kernel = this.#kernels.get(key)
    if (kernel !== undefined) {
      // The map's order is that of use.
      this.#kernels.delete(key)
      this.#kernels.set(key, kernel)
      return kernel(...args)
    }
    checkIndexable(nameOf(key), output, args)
    kernel = this.#create(key, typeof source === 'string' ? source : source(), output, constants, args)
    let result: Result
    try {
      result = this.#firstCall(key, kernel, args)
    } catch (error) {
      this.#discard(kernel)
      throw error
    }
    this.#kernels.set(key, kernel)
    if (this.#kernels.size > this.#kernelsMax) {
      const [oldest, unused] = this.#kernels.entries().next().value!
      this.#kernels.delete(oldest)
      this.#discard(unused)
    }
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
      // Else loops with a variable bound would stop after 1000 rounds, silently.
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

  #discard({ kernel }: GpuKernel): void {
    kernel.destroy()
    // gpu.js's own list would keep it alive: destroy() leaves it there.
    const list = this.#gpu!.kernels
    const at = list.indexOf(kernel)
    if (at >= 0) list.splice(at, 1)
  }
}

function keyOf(name: string, output: readonly number[], constants: Constants, args: readonly Argument[]): string {
  let key = `${name}|${output.join('|')}`
  for (const constant in constants) key += `|${constant}=${constants[constant]}`
  for (const arg of args) if (typeof arg !== 'number') key += `|${arg.length}`
  return key
}

function checkIndexable(op: string, output: readonly number[], args: readonly Argument[]): void {
  const threads = output.reduce((n, extent) => n * extent, 1)
  const elements = Math.max(threads, ...args.map((arg) => (typeof arg === 'number' ? 1 : arg.length)))
  if (elements <= INDEX_MAX) return
  throw new PostgradError('KERNEL_UNSUPPORTED', {
    op,
    message: `gpu.js has no kernel for ${elements} elements: it computes indices in float32, which is exact up to ${INDEX_MAX}`,
    remedy: "Split the operands with narrow(), or convert them with to('float64').",
    values: { op, elements },
  })
}

function nameOf(key: string): string {
  return key.split('|', 1)[0]!
}

/** gpu.js takes a while to load and most workers never need it. It is CommonJS, and kernels are synchronous: hence `require`. */
function loadGpu(): Gpu {
  const { GPU } = createRequire(import.meta.url)('gpu.js') as GpuModule
  return new GPU({ mode: MODE })
}
