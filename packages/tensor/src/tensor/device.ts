/**
 * Device: a worker's way to its kernels. One per thread and spec, made when first asked for; the scope says which one is current.
 * Backends stand below, operations above. Which kernel runs depends on op, dtype, shape and device alone.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, inSpan, tracerOf, tracing, withScope } from '@postgrad/base/internal'
import { BACKENDS, type DeviceSpec } from '../kernels/backends.js'
import { ELEMENT_WISE, type KernelTable, type Operand, type UserKernels } from '../kernels/table/operands.js'
import { overArrays, userKernelsOverArrays } from '../kernels/table/over-arrays.js'
import { type Backend, type BackendName, isUnsupported, KERNEL_OPS, type KernelOp } from '../kernels/table/table.js'
import type { DType } from '../values/dtype.js'
import { DTYPES, isDType } from '../values/dtype.js'

/** What would run for a call, or why nothing would. */
export interface KernelInfo {
  /** The device's name. */
  readonly device: string
  /** The operation that was asked for. */
  readonly op: KernelOp
  /** Its dtype. */
  readonly dtype: DType
  /** Whether there is a kernel; else the operation throws KERNEL_UNSUPPORTED. */
  readonly supported: boolean
  /** The name of the code, e.g. 'simd'; empty when unsupported. */
  readonly variant: string
  /** Why it is unsupported; null when it is supported. */
  readonly reason: string | null
}

/** Where operations run: a backend with its kernels, one for each name and thread. `device('wasm')` gives it. PyTorch: `torch.device`. */
export class Device {
  /** As given to `device()`: 'wasm', 'js'. */
  readonly spec: DeviceSpec
  /** Whose kernels run here. */
  readonly backend: BackendName
  /** @internal */
  readonly implementation: Backend
  /** @internal */
  readonly kernels: KernelTable
  /** @internal */
  readonly userKernels: UserKernels

  constructor(spec: DeviceSpec, implementation: Backend) {
    this.spec = spec
    this.backend = implementation.name as BackendName
    this.implementation = implementation
    this.kernels = callable(implementation)
    this.userKernels = userKernelsOverArrays(implementation.userKernels)
  }

  /** Whether reads may be synchronous: kernels have written their results when they return. */
  get synchronous(): boolean {
    return this.implementation.synchronous
  }

  /** Says what would run, without running it. `shape` is the output's. @throws INVALID_ARGUMENT for an unknown op or dtype */
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

  /** Resolves when kernels may run; operations on a device that is not ready throw. */
  ready(): Promise<void> {
    return this.implementation.ready()
  }

  /** The name that `device()` takes. */
  toString(): string {
    return this.spec
  }
}

/** One device per spec, for this thread: kernels and their caches belong to it, so a second one would compile everything again. */
const devices = new Map<string, Device>()
const DEFAULT_SPEC: DeviceSpec = 'wasm'
let fallback: Device | null = null

/** The thread's device of that name. PyTorch: `torch.device`. @throws DEVICE_UNKNOWN */
export function device(spec: DeviceSpec): Device {
  let found = devices.get(spec)
  if (found === undefined) {
    const create = Object.hasOwn(BACKENDS, spec) ? BACKENDS[spec] : undefined
    if (create === undefined) {
      throw new PostgradError('DEVICE_UNKNOWN', {
        op: 'device',
        expected: `one of ${Object.keys(BACKENDS).join(', ')}`,
        got: String(spec),
        remedy: 'Pass one of these names.',
      })
    }
    found = new Device(spec, create())
    devices.set(spec, found)
  }
  return found
}

/** The scope's device, else the thread's default. */
export function currentDevice(): Device {
  const scoped = currentScope().device
  if (scoped !== null) return scoped as Device
  if (fallback === null) fallback = device(DEFAULT_SPEC)
  return fallback
}

/** Runs `fn` with another device for its operations (through its awaits as well), and returns what it returns. */
export function withDevice<T>(target: Device | DeviceSpec, fn: () => T): T {
  if (typeof fn !== 'function') {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'withDevice',
      expected: 'a function as the code that it is for',
      got: typeof fn,
      remedy: 'Write () => ….',
    })
  }
  return withScope({ device: typeof target === 'string' ? device(target) : target }, fn)
}

/** The kernels of the current device. */
export function currentKernels(): KernelTable {
  return tracing === null ? currentDevice().kernels : kernelsOfTraced(currentDevice())
}

/** Those of another worker of this thread may be the ones that are traced. */
function kernelsOfTraced(device: Device): KernelTable {
  return tracerOf(currentScope().worker) === null ? device.kernels : tracedKernels(device)
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
    return isUnsupported(entry) ? refusal(backend, op, dtype, entry.unsupported) : overArrays(op, entry)
  })
}

const traced = new WeakMap<Device, KernelTable>()

/** The device's kernels, each within a span. On a device that queues its kernels the span ends when the kernel is queued. */
function tracedKernels(device: Device): KernelTable {
  let table = traced.get(device)
  if (table === undefined) {
    const { spec, implementation, kernels } = device
    table = tableOf((op, dtype) => {
      const kernel = kernels[op][dtype] as (...args: unknown[]) => void
      return (...args: unknown[]) => {
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
