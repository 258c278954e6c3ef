/**
 * Reduces the ranks' tensors. Rule ORDER: each element is ((r0 ∘ r1) ∘ r2) ∘ …, in the order of the ranks, whatever the algorithm, the size and the places of
 * the workers; AVG divides once at the end. So the bits are always the same.
 */
import assert from 'node:assert'
import { Tensor } from '@postgrad/tensor'
import { binaryInto, binaryScalarInto, copyInto, giveBack, isFloating, raw } from '@postgrad/tensor/internal'
import { KERNELS, type ReduceName } from './reduce-op.js'

/** The sum so far stays in the cache: so many elements at a time. */
const CHUNK = 16 * 1024

/**
 * `parts` by rank, and `out`, which may be one of them: dense, of one dtype and number of elements. `size`: AVG divides by it; more than there are parts where
 * the first of them is what earlier ranks have added up. Nothing is said of what `out` holds on a throw.
 */
export function combine(name: ReduceName, parts: readonly Tensor[], out: Tensor, size = parts.length): void {
  const { numel } = out
  assert(parts.length > 0)
  if (parts.length === 1) {
    assert(size === 1 || name !== 'avg')
    if (parts[0] !== out) copyInto(parts[0]!, out)
    return
  }
  const kernel = KERNELS[name]
  const between = parts.length === 2 ? null : Tensor.uninitialized(out.dtype, [Math.min(numel, CHUNK)], out.storage.memory)
  // Of two nothing is between, and one call does it.
  const step = between === null ? Math.max(numel, 1) : CHUNK
  for (let start = 0; start < numel; start += step) {
    const length = Math.min(step, numel - start)
    const into = run(out, start, length)
    let sum = run(parts[0]!, start, length)
    for (let rank = 1; rank < parts.length; rank++) {
      const to = rank === parts.length - 1 ? into : run(between!, 0, length)
      binaryInto(kernel, sum, run(parts[rank]!, start, length), to)
      sum = to
    }
    if (name === 'avg') divide(into, size)
  }
  if (between !== null) giveBack(between.storage)
}

/** PyTorch's integers are divided towards 0. */
function divide(x: Tensor, by: number): void {
  if (isFloating(x.dtype)) {
    binaryScalarInto('div', x, by, x)
    return
  }
  copyInto(raw.div(x, by, { roundingMode: 'trunc' }), x)
}

/** `length` elements of a dense tensor from `start` on, as a dense tensor of one dimension. */
export function run({ storage, offset }: Tensor, start: number, length: number): Tensor {
  return new Tensor(storage, [length], ONE, offset + start, length, true)
}

const ONE = Object.freeze([1])
