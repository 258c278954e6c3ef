/**
 * A device with a memory of its own, as a GPU has: the host holds numbers for its buffers and never their elements. Kernels, copies and frees wait in a queue until
 * somebody reads. Its kernels are those of `js`, so results have the bits of `js`. For tests alone; it counts what goes up and comes down.
 */
import assert from 'node:assert/strict'
import type { Buffers, Memory, MemoryStats } from '../heap/memory.js'
import type { Backend } from '../kernels/table/backend.js'
import type { KernelTable, Operand, UserKernels } from '../kernels/table/operands.js'
import { FUSED_OPS } from '../kernels/table/ops.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from '../kernels/table/table.js'
import { DTYPES, type DType, type TypedArray, viewOn } from '../values/dtype.js'
import { indexOutOfRange } from '../values/errors.js'
import { addDevice, Device, device } from './device.js'

type Run = (...args: unknown[]) => void

/** How many operands a kernel writes: the last ones. All others write one. */
const OUTPUTS: Readonly<Partial<Record<KernelOp, number>>> = {
  maxPool2d: 2,
  layerNorm: 3,
  layerNormBackward: 3,
  channelNorm: 3,
  channelNormBackward: 3,
}

/** Which operand holds indices, and how many rows there are, among the arguments of a kernel. */
const INDICES: Readonly<Partial<Record<KernelOp, (args: readonly unknown[]) => [index: Resident, extent: number]>>> = {
  ...Object.fromEntries(
    (['indexSelect', 'gather', 'indexAdd', 'scatterAdd', 'scatter'] as const).map((op) => [
      op,
      (args: readonly unknown[]) => [args[1], args[4]],
    ]),
  ),
  nll: ([x, target]) => [target as Resident, (x as Resident).shape.at(-1)!],
  classLoss: ([x, target]) => [target as Resident, (x as Resident).shape.at(-1)!],
  classLossBackward: ([, x, target]) => [target as Resident, (x as Resident).shape.at(-1)!],
  nllBackward: ([, target, out]) => [target as Resident, (out as Resident).shape.at(-1)!],
}

/** An operand as the queue keeps it: its buffer in the place of its storage. */
interface Resident extends Omit<Operand, 'storage'> {
  readonly buffer: number
  readonly length: number
}

export class ResidentMemory implements Memory, Buffers {
  readonly name: string
  readonly buffers = this
  /** Copies from the host and to it: how many, and of how many bytes. */
  readonly uploads: number[] = []
  readonly downloads: number[] = []
  /** When the bytes of a read come: a test may let them come late. */
  arrival: () => Promise<void> = () => Promise.resolve()
  readonly #held = new Map<number, ArrayBuffer>()
  #next = 1
  #queue: (() => void)[] = []
  #inUse = 0
  #peak = 0
  #error: unknown = null
  /** Those whose turn in the queue is to come. */
  readonly #reads = new Set<{ bytes: Uint8Array; error: unknown }>()

  constructor(name: string) {
    this.name = name
  }

  stats(): MemoryStats {
    return { inUse: this.#inUse, peak: this.#peak, reserved: this.#inUse }
  }

  get waiting(): number {
    return this.#queue.length
  }

  allocate(bytes: number): number {
    const buffer = this.#next++
    this.#held.set(buffer, new ArrayBuffer(bytes))
    this.#inUse += bytes
    this.#peak = Math.max(this.#peak, this.#inUse)
    return buffer
  }

  free(buffer: number): void {
    this.enqueue(() => {
      this.#inUse -= this.#bytes(buffer).byteLength
      this.#held.delete(buffer)
    })
  }

  write(buffer: number, bytes: Uint8Array): void {
    const copy = bytes.slice()
    this.uploads.push(copy.length)
    this.enqueue(() => new Uint8Array(this.#bytes(buffer)).set(copy))
  }

  async read(buffer: number, at: number, length: number): Promise<Uint8Array> {
    const read = { bytes: new Uint8Array(), error: this.#error }
    this.#error = null
    this.#reads.add(read)
    this.enqueue(() => {
      read.bytes = new Uint8Array(this.#bytes(buffer).slice(at, at + length))
      this.#reads.delete(read)
    })
    await this.arrival()
    this.flush()
    this.downloads.push(length)
    if (read.error !== null) throw read.error
    return read.bytes
  }

  /** The bytes of reads that begin from now on come when the returned function is called. */
  holdReads(): () => void {
    const before = this.arrival
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    this.arrival = () => held
    return () => {
      this.arrival = before
      release()
    }
  }

  guard(buffer: number, error: Error): void {
    this.enqueue(() => {
      if (new Uint8Array(this.#bytes(buffer))[0] !== 0) throw error
    })
  }

  enqueue(run: () => void): void {
    this.#queue.push(run)
  }

  /** Runs what waits; the next read reports the first error. */
  flush(): void {
    const queue = this.#queue
    this.#queue = []
    for (const run of queue) {
      try {
        run()
      } catch (error) {
        for (const read of this.#reads) read.error ??= error
        if (this.#reads.size === 0) this.#error ??= error
      }
    }
  }

  arrayOf({ buffer, dtype, length }: Resident): TypedArray {
    return viewOn(dtype, this.#bytes(buffer), 0, length)
  }

  #bytes(buffer: number): ArrayBuffer {
    const held = this.#held.get(buffer)
    assert(held !== undefined, `buffer ${buffer} was given back before its last use`)
    return held
  }

  /** An operand of this memory, as the queue keeps it. */
  resident(op: string, { storage, offset, shape, strides, dtype, numel, isContiguous }: Operand): Resident {
    assert(storage.memory === this, `${op} on '${this.name}' got a tensor of '${storage.memory.name}'`)
    return { buffer: storage.device!.buffer, length: storage.length, offset, shape, strides, dtype, numel, isContiguous }
  }
}

const isOperand = (arg: unknown): arg is Operand => typeof arg === 'object' && arg !== null && 'storage' in arg
const isResident = (arg: unknown): arg is Resident => typeof arg === 'object' && arg !== null && 'buffer' in arg

class ResidentBackend implements Backend {
  readonly name = 'js'
  readonly label: string
  readonly kernels: KernelTable
  readonly userKernels: UserKernels
  readonly #memory: ResidentMemory

  constructor(memory: ResidentMemory) {
    this.#memory = memory
    this.label = memory.name
    const { kernels, implementation } = device('js')
    // Fused kernels are lacking: their callers look for them.
    const cell = (op: KernelOp, dtype: DType) => {
      const entry = implementation.kernels[op][dtype]
      return isUnsupported(entry) && (FUSED_OPS as readonly string[]).includes(op) ? entry : this.#late(op, kernels[op][dtype] as Run)
    }
    this.kernels = Object.fromEntries(
      KERNEL_OPS.map((op) => [op, Object.fromEntries(DTYPES.map((dtype) => [dtype, cell(op, dtype)]))]),
    ) as unknown as KernelTable
    const { variant, run } = implementation.userKernels
    this.userKernels = { variant, run: this.#lateUser(run as unknown as Run) as unknown as UserKernels['run'] }
  }

  ready(): Promise<void> {
    return Promise.resolve()
  }

  variantOf(): string {
    return 'loop'
  }

  /** The kernel, when its turn comes. */
  #late(op: KernelOp, run: Run): Run {
    return (...given) => {
      const args = given.map((arg) => (isOperand(arg) ? this.#memory.resident(op, arg) : arg))
      // Unwanted operands at the end are null.
      const operands = args.filter((arg) => arg === null || isResident(arg)) as (Resident | null)[]
      const outputs = operands.slice(-(OUTPUTS[op] ?? 1)).filter((x) => x !== null)
      const inputs = operands.filter((x) => x !== null && !outputs.some((out) => out.buffer === x.buffer)) as Resident[]
      this.#memory.enqueue(() => {
        this.#checkIndices(op, args)
        const before = inputs.map((x) => this.#memory.arrayOf(x).slice())
        run(...args.map((arg) => this.#operand(arg)))
        for (const [i, x] of inputs.entries()) {
          const after = this.#memory.arrayOf(x)
          assert(
            before[i]!.every((v, j) => Object.is(v, after[j])),
            `${op} writes to more than its last ${outputs.length} operands`,
          )
        }
      })
    }
  }

  #lateUser(run: Run): Run {
    return (kernel, constants, args, out) => {
      const resident = (arg: unknown) => (isOperand(arg) ? this.#memory.resident('kernel', arg) : arg)
      const [inputs, target] = [(args as unknown[]).map(resident), resident(out)]
      this.#memory.enqueue(() =>
        run(
          kernel,
          constants,
          inputs.map((arg) => this.#operand(arg)),
          this.#operand(target),
        ),
      )
    }
  }

  /** An operand of the host's kernels, over the buffer. */
  #operand(arg: unknown): unknown {
    return isResident(arg) ? { ...arg, storage: { host: this.#memory.arrayOf(arg), length: arg.length } } : arg
  }

  /** As a GPU's kernel may: it goes nowhere by an index out of range, and says so. */
  #checkIndices(op: KernelOp, args: readonly unknown[]): void {
    const found = INDICES[op]?.(args)
    if (found === undefined) return
    const [{ offset, numel }, extent] = found
    const indices = this.#memory.arrayOf(found[0])
    for (let i = offset; i < offset + numel; i++) {
      if (indices[i]! < 0 || indices[i]! >= extent)
        throw indexOutOfRange(op, `indices from 0 to ${extent - 1}`, indices[i]!, 'Check how the indices were made.', { extent })
    }
  }
}

let count = 0

/** A new device, with its memory: 'resident:0', 'resident:1', … */
export function residentDevice(): Device & { readonly home: ResidentMemory } {
  const memory = new ResidentMemory(`resident:${count++}`)
  return addDevice(new Device(memory.name, new ResidentBackend(memory), memory)) as Device & { readonly home: ResidentMemory }
}
