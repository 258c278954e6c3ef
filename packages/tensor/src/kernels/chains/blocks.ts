/**
 * Runs a chain by blocks of a few thousand elements, which stay in the first-level cache: for each block, the kernels of the steps one after the other, on
 * scratch. So the bits are those of the kernels. A backend's direct kernels take addresses; other steps go through the cells of its table.
 */
import { Storage } from '../../heap/storage.js'
import { allocate, BYTES_PER_ELEMENT, type DType, type TypedArray, viewOn } from '../../values/dtype.js'
import type { Backend } from '../table/backend.js'
import type { ChainProgram, ChainSource, ChainStep, DirectKernel, DirectKernels } from '../table/chain.js'
import type { Operand } from '../table/operands.js'

/** Elements of a block: one chunk of the kernels of WebAssembly, which compute it in one call. */
export const BLOCK = 2048

/** An operand of a cell, which moves with the blocks. */
interface BlockOperand {
  readonly storage: Storage
  offset: number
  shape: readonly number[]
  readonly strides: readonly number[]
  readonly dtype: DType
  numel: number
  readonly isContiguous: boolean
}

/** A source, or the result of a step. */
interface Place {
  readonly dtype: DType
  /** 0: one element for all. */
  readonly step: number
  /** Where it lies: the array, and the place of the chain's element 0 there. Of scratch: of the block's first element. */
  readonly storage: Storage
  readonly array: TypedArray
  readonly offset: number
  /** Whether it moves from block to block. */
  readonly moves: boolean
  /** The address of element 0 in the memory of the direct kernels; −1: elsewhere. */
  readonly at: number
  /** Bytes from an element to the next, where it moves. */
  readonly bytes: number
  /** For the cells that use it. */
  operand: BlockOperand | null
}

interface Call {
  readonly step: ChainStep
  readonly direct: DirectKernel | null
  readonly cell: (...args: readonly unknown[]) => void
  readonly a: Place
  readonly b: Place
  readonly c: Place
  readonly out: Place
  readonly operands: readonly Operand[]
}

/** `sources` and `outputs` are dense, or one element; `outputs` in the order of the program's. */
export function runBlocks(program: ChainProgram, sources: readonly Operand[], outputs: readonly Operand[], backend: Backend): void {
  const direct = backend.direct?.() ?? null
  const scratch = new Scratch(program, direct)
  try {
    new Blocks(program, sources, outputs, backend, direct, scratch).run()
  } finally {
    scratch.close()
  }
}

/** Buffers of a block each, in the memory of the direct kernels where that has room. */
class Scratch {
  readonly #storage: Storage | null
  readonly #buffer: ArrayBufferLike
  readonly #begin: number
  readonly #slotBytes: number
  readonly #free: number[] = []
  #used = 0

  constructor(program: ChainProgram, direct: DirectKernels | null) {
    const isWide = program.sources.some(({ dtype }) => dtype === 'float64') || program.steps.some(({ made }) => made === 'float64')
    // Buffers that lie a power of two apart would meet in the same lines of the cache.
    this.#slotBytes = BLOCK * (isWide ? 8 : 4) + 192
    const length = ((program.sources.length + program.steps.length) * this.#slotBytes) / 8
    this.#storage = direct === null ? null : Storage.inHeap('float64', length)
    const array = this.#storage?.host ?? allocate('float64', length)
    this.#buffer = array.buffer
    this.#begin = array.byteOffset
  }

  close(): void {
    this.#storage?.close()
  }

  /** Whether direct kernels reach it. */
  isIn(direct: DirectKernels | null): boolean {
    return direct !== null && this.#buffer === direct.buffer
  }

  take(): number {
    return this.#free.pop() ?? this.#used++
  }

  giveBack(slot: number): void {
    this.#free.push(slot)
  }

  viewOf(slot: number, dtype: DType): TypedArray {
    return viewOn(dtype, this.#buffer, this.#begin + slot * this.#slotBytes, BLOCK)
  }
}

class Blocks {
  readonly #program: ChainProgram
  readonly #sources: readonly Operand[]
  readonly #direct: DirectKernels | null
  readonly #block: number
  readonly #calls: Call[] = []
  /** What is copied into scratch for each block, or for all, and out of it. */
  readonly #fills: { readonly source: number; readonly to: TypedArray; readonly isStaged: boolean }[] = []
  readonly #results: { readonly from: TypedArray; readonly output: Operand }[] = []
  readonly #operands: { readonly operand: BlockOperand; readonly offset: number; readonly moves: boolean }[] = []

  constructor(
    program: ChainProgram,
    sources: readonly Operand[],
    outputs: readonly Operand[],
    backend: Backend,
    direct: DirectKernels | null,
    scratch: Scratch,
  ) {
    this.#program = program
    this.#sources = sources
    this.#direct = scratch.isIn(direct) ? direct : null
    this.#block = blockOf(program)
    const places = program.sources.map((source, i) => this.#sourcePlace(source, i, scratch))
    const first = places.length
    const lastUses = usesOf(program)
    const slots: number[] = []
    for (const [i, step] of program.steps.entries()) {
      const wanted = program.outputs.indexOf(i)
      const output = wanted < 0 ? null : outputs[wanted]!
      // A step may write where an operand lies that is not read again: kernels permit the same view.
      for (const [k, from] of step.operands.entries()) {
        const slot = slots[from]
        if (slot === undefined || lastUses[from] !== i || step.operands.indexOf(from) !== k) continue
        if (step.form !== 'copy' && BYTES_PER_ELEMENT[places[from]!.dtype] === BYTES_PER_ELEMENT[step.made]) scratch.giveBack(slot)
      }
      places.push(this.#stepPlace(step, output, first + i, slots, scratch))
      this.#calls.push(this.#call(step, places, places[first + i]!, backend))
    }
  }

  run(): void {
    const { n } = this.#program
    for (const { source, to, isStaged } of this.#fills) if (!isStaged && this.#isFilledOnce(source)) this.#fill(source, to, 0, this.#block)
    let count = this.#block
    for (let start = 0; start < n; start += this.#block) {
      count = Math.min(this.#block, n - start)
      for (const { source, to, isStaged } of this.#fills) if (isStaged || !this.#isFilledOnce(source)) this.#fill(source, to, start, count)
      this.#move(start, count)
      for (const call of this.#calls) this.#compute(call, start, count)
      for (const { from, output } of this.#results) {
        output.storage.host!.set(count === from.length ? from : from.subarray(0, count), output.offset + start)
      }
    }
  }

  #compute({ step, direct, cell, a, b, c, out, operands }: Call, start: number, count: number): void {
    if (direct !== null) {
      const [x, y, z] = [a.at + start * a.bytes, b.at + start * b.bytes, c.at + start * c.bytes]
      direct(count, x, a.step, y, b.step, z, c.step, out.at + start * out.bytes, step.p0, step.p1)
      this.#direct!.worked(count)
    } else cell(...operands, step.p0, step.p1)
  }

  #isFilledOnce(source: number): boolean {
    const { period, repeat } = this.#program.sources[source]!
    return this.#block % (period * repeat) === 0
  }

  #fill(source: number, to: TypedArray, start: number, count: number): void {
    const { period, repeat } = this.#program.sources[source]!
    const { storage, offset } = this.#sources[source]!
    const from = storage.host!
    if (period === this.#program.n) {
      to.set(from.subarray(offset + start, offset + start + count))
      return
    }
    for (let i = 0; i < count; ) {
      const within = (start + i) % repeat
      const place = Math.floor((start + i) / repeat) % period
      const run = Math.min(count - i, repeat === 1 ? period - place : repeat - within)
      if (repeat > 1) to.fill(from[offset + place]!, i, i + run)
      else if (run < FEW) for (let k = 0; k < run; k++) to[i + k] = from[offset + place + k]!
      else to.set(from.subarray(offset + place, offset + place + run), i)
      i += run
    }
  }

  /** Cells find their operands at the next block. */
  #move(start: number, count: number): void {
    for (const { operand, offset, moves } of this.#operands) {
      if (moves) operand.offset = offset + start
      if (operand.numel !== count && operand.shape.length > 0) {
        operand.numel = count
        operand.shape = [count]
      }
    }
  }

  #sourcePlace(source: ChainSource, i: number, scratch: Scratch): Place {
    const { storage, offset } = this.#sources[i]!
    const { dtype, period, repeat } = source
    const { n } = this.#program
    const isSingle = period === 1
    const isDense = period === n && repeat === 1
    const array = storage.host!
    const isHere = this.#direct !== null && array.buffer === this.#direct.buffer && (isDense || isSingle)
    if (isHere || (this.#direct === null && (isDense || isSingle))) return this.#place(storage, array, offset, dtype, isSingle ? 0 : 1, isDense)
    const view = scratch.viewOf(scratch.take(), dtype)
    if (isSingle) view[0] = array[offset]!
    else this.#fills.push({ source: i, to: view, isStaged: isDense })
    return this.#place(new Storage(dtype, view), view, 0, dtype, isSingle ? 0 : 1, false)
  }

  #stepPlace({ made }: ChainStep, output: Operand | null, number: number, slots: number[], scratch: Scratch): Place {
    if (output !== null) {
      const { storage, offset } = output
      const array = storage.host!
      if (this.#direct === null || array.buffer === this.#direct.buffer) return this.#place(storage, array, offset, made, 1, true)
    }
    const slot = scratch.take()
    const view = scratch.viewOf(slot, made)
    // What is copied out after the last step stays.
    if (output === null) slots[number] = slot
    else this.#results.push({ from: view, output })
    return this.#place(new Storage(made, view), view, 0, made, 1, false)
  }

  #place(storage: Storage, array: TypedArray, offset: number, dtype: DType, step: number, moves: boolean): Place {
    const size = BYTES_PER_ELEMENT[dtype]
    const at = this.#direct !== null && array.buffer === this.#direct.buffer ? array.byteOffset + offset * size : -1
    return { dtype, step, storage, array, offset, moves, at, bytes: moves ? size : 0, operand: null }
  }

  #call(step: ChainStep, places: readonly Place[], out: Place, backend: Backend): Call {
    const direct = this.#direct?.of(step) ?? null
    const cell = backend.kernels[step.op][step.dtype] as unknown as Call['cell']
    const used = step.operands.map((from) => places[from]!)
    const operands = direct !== null ? [] : [...used, out].map((place, k) => this.#operand(place, step.form === 'grad' && k === 0))
    const [a, b = a, c = a] = used as [Place, ...Place[]]
    return { step, direct, cell, a, b, c, out, operands }
  }

  /** Kernels of gradients know one element for all by its not being dense. */
  #operand(place: Place, isGradient: boolean): Operand {
    if (place.operand !== null && place.step === 1) return place.operand
    const { storage, offset, dtype, step, moves } = place
    const count = step === 0 ? 1 : this.#block
    const [shape, strides] = step === 0 ? [SCALAR, SCALAR] : [[count], DENSE]
    const operand: BlockOperand = { storage, offset, shape, strides, dtype, numel: count, isContiguous: step === 1 || !isGradient }
    this.#operands.push({ operand, offset, moves })
    place.operand = operand
    return operand
  }
}

const SCALAR: readonly number[] = []
const DENSE: readonly number[] = [1]
/** A view costs as much as copying so many elements. */
const FEW = 64

/** The elements of a block: as many whole periods of a short source as fit, so that it is laid out once. */
function blockOf({ sources, n }: ChainProgram): number {
  const short = sources.find(({ period, repeat }) => period > 1 && period * repeat <= BLOCK && period < n)
  if (short === undefined) return BLOCK
  const extent = short.period * short.repeat
  return Math.floor(BLOCK / extent) * extent
}

/** For each source and step, the last step that reads it. */
function usesOf({ sources, steps }: ChainProgram): number[] {
  const uses = new Array<number>(sources.length + steps.length).fill(-1)
  for (const [i, { operands }] of steps.entries()) for (const from of operands) uses[from] = i
  return uses
}
