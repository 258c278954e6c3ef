/**
 * Device: where tensors lie, and the kernels that compute there. One per thread and spec, made when first asked for; the scope has the current one.
 * Operations call its backend's kernels. Which kernel runs depends on op, dtype, shape and device alone.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, inSpan, tracerOf, tracing, withScope } from '@postgrad/base/internal'
import { CPU, type Memory, type MemoryStats, noteDevice } from '../heap/memory.js'
import { BACKENDS, type BackendSpec } from '../kernels/backends.js'
import type { Backend } from '../kernels/table/backend.js'
import { ELEMENT_WISE, type KernelMap, type KernelTable, type Operand } from '../kernels/table/operands.js'
import type { FusedOp } from '../kernels/table/ops.js'
import { type BackendName, isUnsupported, KERNEL_OPS, type KernelOp } from '../kernels/table/table.js'
import type { DType } from '../values/dtype.js'
import { DTYPES, isDType } from '../values/dtype.js'
import { records, settleOperands, settling } from './settling.js'

/** The kernel that would run for an operation, or the reason why there is none. */
export interface KernelInfo {
  /** The name of the device. */
  readonly device: string
  /** The operation that was asked for. */
  readonly op: KernelOp
  /** The dtype that was asked for. */
  readonly dtype: DType
  /** Whether there is a kernel. Without one the operation fails with KERNEL_UNSUPPORTED. */
  readonly supported: boolean
  /** The name of the code, such as 'simd'; empty if unsupported. */
  readonly variant: string
  /** Why the operation is unsupported; null if it is supported. */
  readonly reason: string | null
}

/**
 * A place where tensors are stored, with kernels that compute there. `device('cpu')` is this process with its default kernels. `device('wasm')` and
 * `device('js')` are this process with the kernels of that backend. Tensors of these three can be mixed. PyTorch: `torch.device`.
 * @example device('wasm').kernelFor('matmul', 'float32').supported // true
 */
export class Device {
  /** The name that was given to `device()`: 'cpu', 'wasm', … */
  readonly spec: string
  /** The backend whose kernels run here. */
  readonly backend: BackendName
  /** @internal Where its tensors lie. */
  readonly home: Memory
  /** @internal */
  readonly implementation: Backend
  /** @internal */
  readonly kernels: KernelTable
  #settling: KernelTable | null = null

  constructor(spec: string, implementation: Backend, home: Memory = CPU, kernels: KernelTable = callable(implementation)) {
    this.spec = spec
    this.backend = implementation.name
    this.implementation = implementation
    this.home = home
    this.kernels = kernels
  }

  /** @internal The same kernels, which compute pending operands before they begin: those of a thread that records chains. */
  get settlingKernels(): KernelTable {
    this.#settling ??= tableOf((op, dtype) => settling(op, this.kernels[op][dtype]))
    return this.#settling
  }

  /** The memory where the device stores tensors: 'cpu' for each backend of this process. PyTorch: `torch.device.type`. */
  get type(): string {
    return this.home.name
  }

  /** Whether the program can read tensors of the device at once, with `dataSync()`: true for the cpu. */
  get synchronous(): boolean {
    return this.home.buffers === null
  }

  /**
   * The bytes of the device's memory that this thread uses. On the cpu these are the blocks of the shared heap, including those in which kernels compute, and
   * `reserved` is the heap of all threads of the process. Small tensors are JavaScript arrays and not counted here; `process.memoryUsage().arrayBuffers` counts
   * them. PyTorch: `torch.cuda.memory_stats`.
   */
  memory(): MemoryStats {
    return this.home.stats()
  }

  /** Says which code would run, without running it. `shape` is the output's. @throws INVALID_ARGUMENT if the operation or the dtype is unknown */
  kernelFor(op: KernelOp, dtype: DType, shape: readonly number[] = []): KernelInfo {
    if (!(KERNEL_OPS as readonly string[]).includes(op) || !isDType(dtype)) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'kernelFor',
        expected: `one of the kernel ops (${KERNEL_OPS.join(', ')}) and of the dtypes (${DTYPES.join(', ')})`,
        got: `${op}, ${dtype}`,
      })
    }
    const entry = this.implementation.kernels[op][dtype]
    if (isUnsupported(entry)) return { device: this.spec, op, dtype, supported: false, variant: '', reason: entry.unsupported }
    return { device: this.spec, op, dtype, supported: true, variant: this.implementation.variantOf(op, dtype, shape), reason: null }
  }

  /** Resolves when kernels can run. Before that, operations on the device throw. */
  ready(): Promise<void> {
    return this.implementation.ready()
  }

  /** The name of the device, as `device()` takes it. */
  toString(): string {
    return this.spec
  }

  /** The name of the device, for `JSON.stringify` and test frameworks. */
  toJSON(): string {
    return this.spec
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Device { '${this.spec}' }`
  }
}

/**
 * The names of the devices of a process. 'cpu' uses the kernels of 'wasm'; 'wasm', 'js' and 'blas' use the kernels of that backend. 'blas' computes products of
 * matrices with the system's OpenBLAS, MKL, BLIS or Accelerate, which needs the package koffi: linear layers, convolutions and recurrent layers become faster.
 */
export type DeviceSpec = 'cpu' | 'wasm' | 'js' | 'blas'

/** One device per spec, for this thread: kernels and their caches belong to it, so a second one would compile everything again. */
const devices = new Map<string, Device>()
/** The device of each memory, which a tensor there shows. */
const homes = new Map<Memory, Device>()
const FASTEST: BackendSpec = 'wasm'

/**
 * The device of this thread with that name. PyTorch: `torch.device`.
 * @throws DEVICE_UNKNOWN if the name is unknown; BLAS_NOT_FOUND of 'blas' if koffi or the library is missing
 * @example zeros([2], { device: device('cpu') }).device.type // 'cpu'
 */
export function device(spec: DeviceSpec): Device {
  const found = devices.get(spec)
  if (found !== undefined) return found
  if (spec === 'cpu') {
    const { implementation, kernels } = device(FASTEST)
    return addDevice(new Device(spec, implementation, CPU, kernels))
  }
  const create = Object.hasOwn(BACKENDS, spec) ? BACKENDS[spec] : undefined
  if (create === undefined) throw unknownDevice('device', spec)
  const made = new Device(spec, create())
  devices.set(spec, made)
  return made
}

/** @internal A device of its own memory, which tensors there show, and `device()` finds from now on. */
export function addDevice(made: Device): Device {
  devices.set(made.spec, made)
  homes.set(made.home, made)
  noteDevice(made.home)
  return made
}

function unknownDevice(op: string, got: unknown): PostgradError {
  const names = new Set(['cpu', ...Object.keys(BACKENDS), ...devices.keys()])
  return new PostgradError('DEVICE_UNKNOWN', {
    op,
    expected: `one of ${[...names].join(', ')}`,
    got: String(got),
    remedy: 'Pass one of these names: they are the devices that this process has.',
  })
}

/** The device that a caller of `op` gave. @throws DEVICE_UNKNOWN */
export function deviceFor(op: string, given: unknown): Device {
  if (given instanceof Device) return given
  if (typeof given === 'string' && (given === 'cpu' || devices.has(given) || Object.hasOwn(BACKENDS, given)))
    return device(given as DeviceSpec)
  throw unknownDevice(op, given)
}

/** A device with a memory of its own that this thread has made. A message names it, which makes none. @throws DEVICE_UNKNOWN */
export function memoryDevice(op: string, spec: string): Device {
  const found = devices.get(spec)
  if (found === undefined || found.home === CPU) throw unknownDevice(op, spec)
  return found
}

/** The device whose tensors lie there. */
export function deviceOf(home: Memory): Device {
  return homes.get(home) ?? device('cpu')
}

/** `device('cpu')`, at hand: every operation asks for it. */
let cpu: Device | null = null

/**
 * The device of the scope; outside of `withDevice` the cpu.
 * @example withDevice('js', () => currentDevice().spec) // 'js'
 */
export function currentDevice(): Device {
  const scoped = currentScope().device as Device | null
  if (scoped !== null) return scoped
  cpu ??= device('cpu')
  return cpu
}

/**
 * Runs `fn` with another current device, also after its awaits, and returns its result. Functions that make tensors put them on that device. Operations compute
 * where their operands are; on the cpu, the current device decides whose kernels compute. PyTorch: `with torch.device(…)`.
 * @throws DEVICE_UNKNOWN if the device is unknown
 * @example withDevice('js', () => tensor([1, 2]).add(1)) // [2, 3]
 */
export function withDevice<T>(target: Device | DeviceSpec, fn: () => T): T {
  if (typeof fn !== 'function') {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'withDevice',
      expected: 'a function as the code that it is for',
      got: typeof fn,
      remedy: 'Write () => ….',
    })
  }
  return withScope({ device: deviceFor('withDevice', target) }, fn)
}

/** The device that computes with operands in that memory: the current one if they lie there, else their own. */
export function computing(home: Memory): Device {
  const current = currentDevice()
  return current.home === home ? current : deviceOf(home)
}

/** The kernels for this operand, and so for all of a call. The first line is on the way of every operation, and calls as little as it can. */
export function kernelsFor({ storage }: Operand): KernelTable {
  const current = (currentScope().device as Device | null) ?? cpu
  if (current !== null && current.home === storage.memory && tracing === null) return records ? current.settlingKernels : current.kernels
  return kernelsAt(storage.memory)
}

export function kernelsAt(home: Memory): KernelTable {
  const device = computing(home)
  return tracing === null ? kernelsNow(device) : kernelsOfTraced(device)
}

function kernelsNow(device: Device): KernelTable {
  return records ? device.settlingKernels : device.kernels
}

/** Those of another worker of this thread may be the ones that are traced. */
function kernelsOfTraced(device: Device): KernelTable {
  return tracerOf(currentScope().worker) === null ? kernelsNow(device) : tracedKernels(device)
}

/** The fused kernel for this operand, or null where the device has none: then its callers run the operations. */
export function fusedKernel<Op extends FusedOp>(op: Op, { storage, dtype }: Operand): KernelMap[Op] | null {
  const device = computing(storage.memory)
  if (isUnsupported(device.implementation.kernels[op][dtype])) return null
  const kernels = tracing === null ? kernelsNow(device) : kernelsOfTraced(device)
  return kernels[op][dtype] as KernelMap[Op]
}

function tableOf(cell: (op: KernelOp, dtype: DType) => object): KernelTable {
  const table: Record<string, Record<string, object>> = {}
  for (const op of KERNEL_OPS) {
    const row: Record<string, object> = {}
    for (const dtype of DTYPES) row[dtype] = cell(op, dtype)
    table[op] = row
  }
  return table as unknown as KernelTable
}

function callable(backend: Backend): KernelTable {
  return tableOf((op, dtype) => {
    const entry = backend.kernels[op][dtype]
    return isUnsupported(entry) ? refusal(backend, op, dtype, entry.unsupported) : entry
  })
}

const traced = new WeakMap<Device, KernelTable>()

/** The device's kernels, each within a span. On a device that queues its kernels the span ends when the kernel is queued. */
function tracedKernels(device: Device): KernelTable {
  let table = traced.get(device)
  if (table === undefined) {
    const { spec, implementation, settlingKernels } = device
    table = tableOf((op, dtype) => {
      const kernel = settlingKernels[op][dtype] as (...args: unknown[]) => void
      return (...args: unknown[]) => {
        // A chain has a span of its own, before that of the kernel.
        settleOperands(args)
        const operands = args.filter((arg) => arg !== null && typeof arg === 'object' && 'storage' in arg) as Operand[]
        const { shape, numel } = operands.at(-1)!
        // `variantOf` knows dense operands alone.
        const isDense = !ELEMENT_WISE.has(op) || operands.every((x) => x.isContiguous && (x.numel === numel || x.numel === 1))
        const variant = isDense ? implementation.variantOf(op, dtype, shape) : null
        inSpan('kernel', op, { device: spec, dtype, variant }, () => kernel(...args))
      }
    })
    traced.set(device, table)
  }
  return table
}

function refusal(backend: Backend, op: KernelOp, dtype: DType, reason: string): () => never {
  return () => {
    throw new PostgradError('KERNEL_UNSUPPORTED', {
      op,
      message: `device '${backend.label}' has no kernel for ${dtype}: ${reason}`,
      remedy: "Convert with to(dtype), or run it on another device: withDevice('js', fn).",
      values: { device: backend.label, op, dtype },
    })
  }
}
