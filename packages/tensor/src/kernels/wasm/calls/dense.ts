/**
 * Dense calls of kernels.wasm: operands that lie in the kernels' memory are used there; others pass through scratch in chunks that stay in the first-level
 * cache. Neighbour: `strided.ts`. For the element-wise kernels of this folder.
 */
import type { Operand } from '../../table/operands.js'
import type { WasmInstance } from './instance.js'
import { workedElements } from './pause.js'
import { type BlockKernel, SLICE, stage, unstage } from './strided.js'

/** Elements of a chunk: three buffers of 8 KiB (float64: 16) stay in the first-level cache. */
export const CHUNK = 2048
/**
 * The work of an element in multiplications, for the question whether threads share the kernel: what moves at the speed of memory takes 0.1 ns, polynomials 1 ns and
 * more. `pause.ts` counts the slowest of all.
 */
const CHEAP = 2
export const COSTLY = 16
/** Bytes of room for a chunk of any dtype. */
export const ROOM = CHUNK * 8

/**
 * Where a kernel finds the `n` elements of x, of one call without chunks: at their own address, else at `scratch`, to which they are copied. An x that
 * repeats one element (`step` 0) is always copied. For calls of at most a chunk, which have no lists and no closures.
 */
export function placed(instance: WasmInstance, n: number, x: Operand, step: number, scratch: number): number {
  const direct = step === 0 ? -1 : instance.direct(x.storage.host!, x.offset)
  if (direct >= 0) return direct
  stage(instance, step === 0 ? 1 : n, x, scratch)
  return scratch
}

/**
 * Runs `kernel` on all elements, as blocks of one row; the last operand is the output. An input that is not dense over it is one element repeated, and
 * always staged: its array may be tiny.
 */
export function runDense(
  instance: WasmInstance,
  operands: readonly Operand[],
  kernel: BlockKernel,
  readsOutput = false,
  work = CHEAP,
): void {
  const last = operands.length - 1
  const n = operands[last]!.numel
  const staged = instance.begin((last + 1) * ROOM)
  const pointers = [0, 0, 0, 0]
  const steps = [1, 1, 1, 1]
  /** Bytes from an element to the next; 0 for what is staged. */
  const advance = [0, 0, 0, 0]
  let chunk = SLICE
  for (let k = 0; k <= last; k++) {
    const x = operands[k]!
    const host = x.storage.host!
    const isDense = k === last || (x.isContiguous && x.numel === n)
    const direct = isDense ? instance.direct(host, x.offset) : -1
    pointers[k] = direct < 0 ? staged + k * ROOM : direct
    if (direct >= 0) advance[k] = host.BYTES_PER_ELEMENT
    else if (isDense) chunk = CHUNK
    else {
      steps[k] = 0
      stage(instance, 1, x, pointers[k]!)
    }
  }
  if (chunk === SLICE && !readsOutput && instance.shares(n * work) && isApart(n, pointers, advance, last)) {
    share(instance, n, pointers, advance, steps, last, kernel, work)
    return
  }
  for (let i = 0; i < n; i += chunk) {
    const count = Math.min(chunk, n - i)
    for (let k = 0; k <= last; k++) {
      if (advance[k] === 0 && steps[k] === 1 && (k < last || readsOutput)) stage(instance, count, operands[k]!, pointers[k]!, i)
    }
    kernel(1, count, pointers, NO_ROWS, steps)
    if (advance[last] === 0) unstage(instance, count, pointers[last]!, operands[last]!, i)
    for (let k = 0; k <= last; k++) pointers[k]! += count * advance[k]!
    workedElements(count)
  }
}

/** Of a single row, the step to the next does not count. */
const NO_ROWS: readonly number[] = [0, 0, 0, 0]

/** Elements of a unit: a multiple of what a cache line holds. */
const UNIT = 32_768

/** Whether the output shares no byte with an input. In place, a unit would read what it writes. */
function isApart(n: number, pointers: readonly number[], advance: readonly number[], last: number): boolean {
  const [from, to] = [pointers[last]!, pointers[last]! + n * advance[last]!]
  for (let k = 0; k < last; k++) if (advance[k]! > 0 && pointers[k]! < to && pointers[k]! + n * advance[k]! > from) return false
  return true
}

/** By all threads. Every operand lies in the memory, or is one staged element. */
function share(
  instance: WasmInstance,
  n: number,
  pointers: readonly number[],
  advance: readonly number[],
  steps: readonly number[],
  last: number,
  kernel: BlockKernel,
  work: number,
): void {
  const at = [0, 0, 0, 0]
  const unit = (i: number): void => {
    const count = Math.min(UNIT, n - i * UNIT)
    for (let k = 0; k <= last; k++) at[k] = pointers[k]! + i * UNIT * advance[k]!
    kernel(1, count, at, NO_ROWS, steps)
    workedElements(count)
  }
  instance.share(Math.ceil(n / UNIT), UNIT * work, unit)
}
