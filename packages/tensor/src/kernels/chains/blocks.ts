/**
 * Runs a chain by blocks of a few thousand elements, which stay in the first-level cache: for each block its units (`units.ts`), one after the other, on scratch. A
 * backend's direct kernels take addresses; other steps go through the cells of its table. The bits are those of the cells. Where helper threads share large kernels,
 * a chain with kernels between its lanes is one block, so that the cells share them.
 */
import { Storage } from '../../heap/storage.js'
import { BYTES_PER_ELEMENT, type DType, type TypedArray } from '../../values/dtype.js'
import type { Backend } from '../table/backend.js'
import type { ChainProgram, ChainSource, DirectKernel, DirectKernels, Lanes, LanesKernel } from '../table/chain.js'
import type { Operand } from '../table/operands.js'
import { BLOCK, blockOf, LONG_BLOCK, Scratch } from './scratch.js'
import { computesWhole, isLongRun, layOut, longBlockOf, readsRuns, singlesOfKernels } from './sources.js'
import { type Unit, unitsOf } from './units.js'

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

/** A source, or the result of a step that is written. */
interface Place {
  readonly dtype: DType
  /** 0: one element for all, or for each run. */
  readonly step: number
  /** The source of this place, where lanes read one element for each run. */
  readonly runs: ChainSource | null
  readonly storage: Storage
  /** The place of element 0 there; of scratch, of the block's first element. */
  readonly offset: number
  /** Whether it moves from block to block. */
  readonly moves: boolean
  /** The address of that element in the memory of the direct kernels; −1: elsewhere. */
  readonly at: number
  /** Bytes of an element. */
  readonly size: number
  /** The same, but 0 where it does not move. */
  readonly bytes: number
}

/** Computes the elements from `start` on. */
type Call = (start: number, count: number) => void

type Cell = (...args: readonly unknown[]) => void

/** `sources` and `outputs` are dense, or one element; `outputs` in the order of the program's. */
export function runBlocks(program: ChainProgram, sources: readonly Operand[], outputs: readonly Operand[], backend: Backend): void {
  if (computesWhole(program)) {
    const { op, dtype, operands, p0, p1, form } = program.steps[0]!
    const args = operands.map((at) =>
      form === 'grad' && sources[at]!.numel < program.n ? { ...sources[at]!, isContiguous: false } : sources[at]!,
    )
    ;(backend.kernels[op][dtype] as unknown as Cell)(...args, outputs[0]!, p0, p1)
    return
  }
  const direct = backend.direct?.() ?? null
  const units = unitsOf(program, direct)
  const run = (elements: number, on: DirectKernels | null, cut: readonly Unit[]) =>
    isRunBy(program, cut, elements, sources, outputs, backend, on)
  // Where the heap has no room for scratch as large as the tensors, blocks do; where it has none for these, the cells compute all.
  if (
    direct !== null &&
    ((isShared(program, units, direct) && run(program.n, direct, units)) || run(blockElements(program, units), direct, units))
  )
    return
  run(BLOCK, null, unitsOf(program, null))
}

/** Whether helper threads share the kernels of a chain, which then compute whole tensors. */
function isShared({ n }: ChainProgram, units: readonly Unit[], { threads }: DirectKernels): boolean {
  return threads > 1 && n >= LONG_BLOCK && units.length > 1 && units.some((unit) => unit.length === 1)
}

/** Lanes alone take longer blocks than kernels, since each of their calls costs more. */
function blockElements(program: ChainProgram, units: readonly Unit[]): number {
  if (units.length === 1) return longBlockOf(program)
  return units.every((unit) => unit.length > 1) ? LONG_BLOCK / 2 : BLOCK
}

/** False, having computed nothing: the direct kernels reach no scratch. */
function isRunBy(
  program: ChainProgram,
  units: readonly Unit[],
  elements: number,
  sources: readonly Operand[],
  outputs: readonly Operand[],
  backend: Backend,
  direct: DirectKernels | null,
): boolean {
  const scratch = new Scratch(elements, direct !== null)
  try {
    const block = elements === program.n ? elements : blockOf(program, elements)
    const blocks = new Blocks(program, units, block, sources, outputs, backend, direct, scratch)
    if (scratch.lacksRoom) return false
    blocks.run()
    return true
  } finally {
    scratch.close()
  }
}

class Blocks {
  readonly #program: ChainProgram
  readonly #sources: readonly Operand[]
  readonly #backend: Backend
  readonly #direct: DirectKernels | null
  readonly #block: number
  readonly #places: Place[]
  /** Which units are computed in registers. */
  readonly #isLanes: readonly boolean[]
  readonly #calls: Call[]
  /** Sources that are copied into scratch, for each block or once for all, and results that are copied out of it. */
  readonly #fills: { readonly source: number; readonly target: TypedArray; readonly isOnce: boolean }[] = []
  readonly #results: { readonly from: TypedArray; readonly output: Operand }[] = []
  readonly #operands: { readonly operand: BlockOperand; readonly offset: number; readonly moves: boolean }[] = []

  constructor(
    program: ChainProgram,
    units: readonly Unit[],
    block: number,
    sources: readonly Operand[],
    outputs: readonly Operand[],
    backend: Backend,
    direct: DirectKernels | null,
    scratch: Scratch,
  ) {
    this.#program = program
    this.#sources = sources
    this.#backend = backend
    this.#direct = direct
    this.#block = block
    const laidOut = singlesOfKernels(program, units)
    this.#isLanes = units.map((unit) => unit.length > 1 || (direct !== null && readsRuns(program, unit[0]!, direct)))
    const ofKernels = new Set(units.flatMap((unit, u) => (this.#isLanes[u] ? [] : program.steps[unit[0]!]!.operands)))
    this.#places = program.sources.map((source, i) => {
      if (direct !== null && isLongRun(source) && !ofKernels.has(i)) {
        const place = this.#runsPlace(source, i, scratch)
        if (place !== null) return place
      }
      return this.#sourcePlace(source, i, laidOut.has(i), scratch)
    })
    const last = lastUses(program, units)
    const first = sources.length
    const slots: (number | undefined)[] = []
    this.#calls = units.map((unit, u) => {
      const over = unique(unit.flatMap((i) => program.steps[i]!.operands)).filter((at) => last[at] === u && slots[at] !== undefined)
      // A kernel may write where an operand lies, as the very same view. Helper threads share only a kernel that does not.
      const reused = unit.length === 1 && block <= LONG_BLOCK ? over.filter((at) => this.#isAsWide(unit[0]!, at)) : []
      for (const at of reused) scratch.giveBack(slots[at]!)
      for (const i of unit) {
        const wanted = program.outputs.indexOf(i)
        if (wanted < 0 && last[first + i] === u) continue
        this.#places[first + i] = this.#stepPlace(i, wanted < 0 ? null : outputs[wanted]!, slots, scratch)
      }
      for (const at of over) if (!reused.includes(at)) scratch.giveBack(slots[at]!)
      return this.#call(unit, this.#isLanes[u]!)
    })
  }

  run(): void {
    const { n } = this.#program
    for (const { source, target, isOnce } of this.#fills) if (isOnce) this.#layOut(source, target, 0, this.#block)
    for (let start = 0; start < n; start += this.#block) {
      const count = Math.min(this.#block, n - start)
      for (const { source, target, isOnce } of this.#fills) if (!isOnce) this.#layOut(source, target, start, count)
      this.#move(start, count)
      for (const call of this.#calls) call(start, count)
      for (const { from, output } of this.#results) output.storage.host!.set(from.subarray(0, count), output.offset + start)
    }
  }

  #layOut(source: number, target: TypedArray, start: number, count: number): void {
    layOut(this.#program.sources[source]!, this.#sources[source]!, target, start, count, this.#direct)
  }

  /** Cells find their operands at this block. */
  #move(start: number, count: number): void {
    for (const { operand, offset, moves } of this.#operands) {
      if (moves) operand.offset = offset + start
      if (operand.numel !== count && operand.shape.length > 0) {
        operand.numel = count
        operand.shape = [count]
      }
    }
  }

  /** With `isLaidOut`, one element for all is repeated in scratch: its kernel reads as many elements as there are. */
  #sourcePlace({ dtype, period, run }: ChainSource, i: number, isLaidOut: boolean, scratch: Scratch): Place {
    const { storage, offset } = this.#sources[i]!
    const isSingle = period === 1 && !isLaidOut
    const isDense = period === this.#program.n
    const step = isSingle ? 0 : 1
    if (this.#isReached(storage) && (isSingle || isDense)) return this.#place(storage, offset, step, isDense)
    const view = isSingle ? scratch.numberOf(dtype) : scratch.viewOf(scratch.acquire(dtype), dtype)
    if (isSingle) view[0] = storage.host![offset]!
    else this.#fills.push({ source: i, target: view, isOnce: !isDense && this.#block % (period * run) === 0 })
    return this.#place(new Storage(dtype, view), 0, step, false)
  }

  /** Null: its elements lie out of reach, and are too many for scratch. */
  #runsPlace(source: ChainSource, i: number, scratch: Scratch): Place | null {
    const { storage, offset } = this.#sources[i]!
    if (this.#isReached(storage)) return this.#place(storage, offset, 0, false, source)
    if (source.period > this.#block) return null
    const view = scratch.viewOf(scratch.acquire(source.dtype), source.dtype)
    view.set(storage.host!.subarray(offset, offset + source.period))
    return this.#place(new Storage(source.dtype, view), 0, 0, false, source)
  }

  #isReached(storage: Storage): boolean {
    return this.#direct === null || (storage.host!.buffer === this.#direct.buffer && storage.length > IN_OBJECT_MAX)
  }

  #stepPlace(i: number, output: Operand | null, slots: (number | undefined)[], scratch: Scratch): Place {
    if (output !== null && (this.#direct === null || output.storage.host!.buffer === this.#direct.buffer)) {
      return this.#place(output.storage, output.offset, 1, true)
    }
    const { made } = this.#program.steps[i]!
    const slot = scratch.acquire(made)
    const view = scratch.viewOf(slot, made)
    // A result that is copied out after the last step stays.
    if (output === null) slots[this.#program.sources.length + i] = slot
    else this.#results.push({ from: view, output })
    return this.#place(new Storage(made, view), 0, 1, false)
  }

  #place(storage: Storage, offset: number, step: number, moves: boolean, runs: ChainSource | null = null): Place {
    const { dtype } = storage
    const array = storage.host!
    const size = BYTES_PER_ELEMENT[dtype]
    const at = this.#direct !== null && array.buffer === this.#direct.buffer ? array.byteOffset + offset * size : -1
    return { dtype, step, runs, storage, offset, moves, at, size, bytes: moves ? size : 0 }
  }

  #isAsWide(i: number, at: number): boolean {
    const { form, made } = this.#program.steps[i]!
    return form !== 'conversion' && BYTES_PER_ELEMENT[this.#places[at]!.dtype] === BYTES_PER_ELEMENT[made]
  }

  #call(unit: Unit, isLanes: boolean): Call {
    if (isLanes) return this.#lanes(unit)
    const i = unit[0]!
    const step = this.#program.steps[i]!
    const out = this.#places[this.#sources.length + i]!
    const operands = step.operands.map((at) => this.#places[at]!)
    // A whole tensor is for the cell, which pauses, and shares it with helper threads.
    const kernel = this.#block > LONG_BLOCK ? null : (this.#direct?.of(step) ?? null)
    if (kernel !== null) return this.#kernel(kernel, operands, out, step.p0, step.p1)
    const cell = this.#backend.kernels[step.op][step.dtype] as unknown as Cell
    const args = [...operands, out].map((place, k) => this.#operand(place, step.form === 'grad' && k === 0))
    return () => cell(...args, step.p0, step.p1)
  }

  #kernel(kernel: DirectKernel, operands: readonly Place[], out: Place, p0: number, p1: number): Call {
    const [a, b = a, c = a] = operands as readonly [Place, ...Place[]]
    const { worked } = this.#direct!
    return (start, count) => {
      const [x, y, z] = [a.at + start * a.bytes, b.at + start * b.bytes, c.at + start * c.bytes]
      kernel(count, x, a.step, y, b.step, z, c.step, out.at + start * out.bytes, p0, p1)
      worked(count)
    }
  }

  #lanes(unit: Unit): Call {
    const { steps } = this.#program
    const first = this.#sources.length
    const own = new Map(unit.map((i, k) => [first + i, k]))
    const read = unique(unit.flatMap((i) => steps[i]!.operands)).filter((at) => !own.has(at))
    const outputs = unit.filter((i) => this.#places[first + i] !== undefined)
    const inputs = read.map((at) => this.#places[at]!)
    const numberOf = (at: number) => (own.has(at) ? read.length + own.get(at)! : read.indexOf(at))
    const lanes: Lanes = {
      inputs: inputs.map(({ dtype, step }) => ({ dtype, isSingle: step === 0 })),
      steps: unit.map((i) => ({ ...steps[i]!, operands: steps[i]!.operands.map(numberOf) })),
      outputs: outputs.map((i) => own.get(first + i)!),
    }
    const kernel: LanesKernel = this.#direct!.lanes(lanes)
    const places = [...inputs, ...outputs.map((i) => this.#places[first + i]!)]
    const at = places.map((place) => place.at)
    const { worked } = this.#direct!
    return (start, count) => {
      for (let done = 0; done < count; ) {
        let some = Math.min(LONG_BLOCK, count - done)
        for (let k = 0; k < places.length; k++) {
          const { at: begin, bytes, size, step, runs } = places[k]!
          at[k] = begin + start * bytes + done * size * step
          if (runs === null) continue
          // Up to where its next run begins.
          const number = Math.floor((start + done) / runs.run)
          at[k] = begin + (number % runs.period) * size
          some = Math.min(some, (number + 1) * runs.run - start - done)
        }
        kernel(some, at)
        worked(some)
        done += some
      }
    }
  }

  /** To kernels of gradients, an operand that is not dense is one element for all. */
  #operand({ storage, offset, dtype, step, moves }: Place, isGradient: boolean): Operand {
    const count = step === 0 ? 1 : this.#block
    const [shape, strides] = step === 0 ? [SCALAR, SCALAR] : [[count], DENSE]
    const operand: BlockOperand = { storage, offset, shape, strides, dtype, numel: count, isContiguous: step === 1 || !isGradient }
    this.#operands.push({ operand, offset, moves })
    return operand
  }
}

const SCALAR: readonly number[] = []
const DENSE: readonly number[] = [1]
/** V8 keeps the elements of smaller arrays in the object, and makes a buffer, for good, when asked. */
const IN_OBJECT_MAX = 64

/** For each source and step, the last unit that reads it; a step that no unit reads: its own. */
function lastUses({ sources, steps }: ChainProgram, units: readonly Unit[]): number[] {
  const last = new Array<number>(sources.length + steps.length).fill(-1)
  for (const [u, unit] of units.entries()) {
    for (const i of unit) {
      last[sources.length + i] = Math.max(u, last[sources.length + i]!)
      for (const at of steps[i]!.operands) last[at] = u
    }
  }
  return last
}

function unique(numbers: readonly number[]): number[] {
  return [...new Set(numbers)]
}
