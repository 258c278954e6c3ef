/**
 * Random calls of every kernel of kernels.wasm, with drawn sizes, strides, offsets and parameters. A call counts as one program: the oracle must agree, and each
 * bit must be that of two other calls, one with every operand where it did not lie, and one with dense copies of strided operands.
 */
import { allocate, DTYPES, type DType, type TypedArray } from '../../values/dtype.js'
import { checkKernel } from '../kernel.suite.js'
import { dense, operandOf } from '../suite/layouts.suite.js'
import type { Backend } from '../table/backend.js'
import { ELEMENT_WISE, type Operand } from '../table/operands.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from '../table/table.js'
import { type Entry, isOperand, placed, type TestHeap } from './placed.fixture.js'

/** Operands of these may have strides. */
const STRIDED: ReadonlySet<KernelOp> = new Set<KernelOp>([...ELEMENT_WISE, 'matmul', 'attention', 'attentionBackward'])
/** The seeds of a round's cells lie below (`Cell` adds the numbers of op and dtype). */
const ROUND = 4096

export interface Fuzz {
  readonly programs: number
  /** The first round's. An error names the seed of its own round, with which the round is the first. */
  readonly seed: number
  readonly exact: (op: KernelOp, dtype: DType) => boolean
  /** Part of the names of the ops. Default: all. */
  readonly only?: string
}

/** @returns how many programs ran, of how many cells of the table. @throws an Error at the first difference */
export function fuzz(backend: Backend, heap: TestHeap, { programs, seed, exact, only = '' }: Fuzz): { programs: number; cells: number } {
  const cells = KERNEL_OPS.filter((op) => op.includes(only))
    .flatMap((op) => DTYPES.map((dtype) => ({ op, dtype, kernel: backend.kernels[op][dtype] })))
    .filter(({ op, dtype, kernel }) => !isUnsupported(kernel) && backend.variantOf(op, dtype, [300, 300]) !== 'loop')
  let ran = 0
  for (let first = seed; ran < programs; first += ROUND) {
    for (const { op, dtype, kernel } of cells) {
      let state = first + KERNEL_OPS.indexOf(op)
      const below = (end: number): number => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
        return Math.floor(((state >>> 8) / 2 ** 24) * end)
      }
      try {
        ran += checkKernel(op, dtype, everywhere(op, kernel, heap, below), { seed: first, exact, drawn: 1 }).checked
      } catch (error) {
        throw new Error(`seed ${first}, after ${ran} programs: ${(error as Error).message}`, { cause: error })
      }
    }
  }
  return { programs: ran, cells: cells.length }
}

/** `kernel`, which is called twice more, on copies. @throws an Error if the bits differ */
function everywhere(op: KernelOp, kernel: object, heap: TestHeap, below: (end: number) => number): Entry {
  return (...args) => {
    const arrays = [...new Set(args.filter(isOperand).map(({ storage }) => storage.host!))]
    const copies = new Map(arrays.map((array) => [array, array.slice()]))
    const words = args.map((arg) => (arg instanceof Int32Array ? arg.slice() : arg))
    const out = args.findLast(isOperand)!
    const isAlone = !args.some((arg) => isOperand(arg) && arg !== out && arg.storage.host === out.storage.host)
    const denser = STRIDED.has(op) && isAlone ? words.map((arg) => (isOperand(arg) ? denseCopy(arg, below(4)) : arg)) : null
    const mask = below(1 << arrays.length)
    const skips = () => below(4)

    ;(placed(kernel, heap, mask, () => {}, skips) as Entry)(...args)

    const there = words.map((arg) => (isOperand(arg) ? { ...arg, storage: { host: copies.get(arg.storage.host!)! } } : arg))
    ;(placed(kernel, heap, ~mask, () => {}, skips) as Entry)(...there)
    for (const [k, array] of arrays.entries()) expectSame(array, copies.get(array)!, `array ${k}, placed by ${mask.toString(2)}`)
    if (denser === null) return
    ;(kernel as Entry)(...denser)
    const written = denseCopy(out, 0)
    const alike = denseCopy(denser.findLast(isOperand)!, 0)
    expectSame(written.storage.host!, alike.storage.host!, `dense copies of operands with strides`)
  }
}

function expectSame(got: TypedArray, other: TypedArray, what: string): void {
  for (let i = 0; i < got.length; i++) {
    const [a, b] = [got[i]!, other[i]!]
    if (!Object.is(a, b)) throw new Error(`other bits, ${what}: element ${i} is ${a} and ${b}`)
  }
}

/** The same elements in row-major order, after some others. */
function denseCopy(x: Operand, offset: number): Operand {
  const from = x.storage.host!
  const host = allocate(x.dtype, offset + x.numel)
  for (let i = 0; i < x.numel; i++) {
    let place = x.offset
    for (let d = x.shape.length - 1, rest = i; d >= 0; rest = Math.floor(rest / x.shape[d]!), d--)
      place += (rest % x.shape[d]!) * x.strides[d]!
    host[offset + i] = from[place]!
  }
  return operandOf(host, offset, x.shape, dense(x.shape))
}
