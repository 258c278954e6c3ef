/** `memoryScope` gives back, at its end, the memory of all tensors made inside and not returned. Public. */
import { PostgradError } from '@postgrad/base'
import { isThenable } from '@postgrad/base/internal'
import { collectStorages, passToOuterScope, type Storage } from '../heap/storage.js'
import { checkFunction } from './check-argument.js'
import { isTensor } from './tensor.js'

/**
 * Runs `fn`, returns its result, and closes the other tensors that were made meanwhile. Tensors in the result stay open, also inside arrays, objects, maps and
 * sets. So do tensors that something else may refer to: leaves that require grad, gradients in `.grad`, values that a graph still needs for a backward pass, the state of an optimizer.
 * Closing a tensor closes all views of its storage. A tensor that `fn` stored elsewhere (a field, an outer variable) without returning it is closed, and using
 * it fails with TENSOR_CLOSED. Use it in loops that do not let the event loop run, since no finalizer runs there either. tfjs: `tidy`.
 * @throws INVALID_ARGUMENT if `fn` returns a promise, since tensors that other code makes meanwhile would be closed, too. Nothing is closed then.
 * @example
 * const loss = memoryScope(() => randn([64, 64]).square().mean())
 * loss.shape // []: the other tensors are closed
 */
export function memoryScope<T>(fn: () => T): T {
  checkFunction('memoryScope', 'the code that it is for', fn)
  const { result, storages } = collectStorages(fn, (made) => closeExcept(made, NONE))
  if (isThenable(result)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'memoryScope',
      expected: 'a synchronous function',
      got: 'one that returns a promise',
      remedy: 'Put the synchronous parts into scopes of their own, or close() tensors one by one.',
    })
  }
  closeExcept(storages, storagesIn(result))
  return result
}

function closeExcept(storages: readonly Storage[], results: ReadonlySet<Storage>): void {
  for (const storage of storages) {
    if (storage.isNeeded || results.has(storage)) passToOuterScope(storage)
    else storage.close()
  }
}

const NONE: ReadonlySet<Storage> = new Set()

/** Those of the tensors in a result, also inside arrays, objects, maps and sets. */
export function storagesIn(result: unknown): ReadonlySet<Storage> {
  if (typeof result !== 'object' || result === null) return NONE
  if (isTensor(result)) return new Set([result.storage])
  const found = new Set<Storage>()
  const seen = new Set<object>()
  const left: unknown[] = [result]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    if (isTensor(value)) found.add(value.storage)
    else if (ArrayBuffer.isView(value)) continue
    else if (isIterable(value)) for (const item of value) left.push(item)
    else left.push(...Object.values(value))
  }
  return found
}

/** Arrays, sets, and maps, whose items are [key, value]; by tag, since `instanceof` fails across realms. */
function isIterable(value: object): value is Iterable<unknown> {
  return Array.isArray(value) || /^\[object (Map|Set)\]$/.test(Object.prototype.toString.call(value))
}
