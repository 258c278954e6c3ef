/** `compile` makes chains of a function's element-wise operations. Public. */
import { checkFunction } from '../tensor/check-argument.js'
import { storagesIn } from '../tensor/memory-scope.js'
import { isTensor } from '../tensor/tensor.js'
import { isRecording, recording, stepOf } from './record.js'
import { settleAll } from './step.js'

/**
 * Returns a function that does what `fn` does, with the same bits. Its element-wise operations on large tensors of the cpu are not computed one by one: where one
 * follows another they become a chain, which is computed in one pass over memory when other code needs a result. The backward pass does the same with the
 * derivatives, and computes cheap intermediate values again instead of keeping them. `fn` runs at each call, so it may branch, and use anything. Only
 * what it does before its first `await` becomes chains. Operations on fewer than 131,072
 * elements are computed as always, and those whose operand is a large tensor of `fromTypedArray`: its array may be written to at any time. PyTorch: `torch.compile`.
 * @throws INVALID_ARGUMENT if `fn` is not a function; the returned function throws what `fn` throws
 * @example
 * const scaled = compile((x: Tensor) => x.mul(2).add(1).relu())
 * scaled(tensor([-1, 3])) // [0, 7]
 */
export function compile<F extends (...args: never[]) => unknown>(fn: F): F {
  checkFunction('compile', 'the code that it is for', fn)
  const compiled = function (this: unknown, ...args: never[]): unknown {
    const result = recording(() => fn.apply(this, args))
    if (isRecording()) return result
    if (isTensor(result)) result.storage.pending?.settle()
    else settleAll([...storagesIn(result)].flatMap((storage) => stepOf(storage) ?? []))
    return result
  }
  Object.defineProperties(compiled, { name: { value: fn.name }, length: { value: fn.length } })
  return Object.assign(compiled, fn) as unknown as F
}
