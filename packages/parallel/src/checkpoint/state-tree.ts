/**
 * Any state as tensors by name and a text: what `stateDict()` gives, or plain values of a program. Numbers come back to the last bit, NaN, the infinities
 * and −0 included, which JSON alone would lose.
 */
import { PostgradError } from '@postgrad/base'
import type { StateDict } from '@postgrad/nn'
import { isTensor } from '@postgrad/tensor'

/** A marker is an object with this one key; a key of a user's that begins with it gets another one in front. */
const MARK = '@'

/**
 * The text that stands for `value`; its tensors are put into `tensors`, under `prefix` and their paths.
 * @throws CHECKPOINT_UNSUPPORTED for what is no tensor and no plain data, with its path
 */
export function flatten(value: unknown, prefix: string, tensors: StateDict): string {
  return JSON.stringify(pack(value, prefix, tensors, new Set()))
}

/** The value again; `tensorOf` gives the tensors. @throws SyntaxError, TypeError for a text that `flatten` did not make */
export function unflatten(text: string, tensorOf: (name: string) => unknown): unknown {
  return unpack(JSON.parse(text), tensorOf)
}

/** The names of the tensors in a text. */
export function tensorNames(text: string): string[] {
  const names: string[] = []
  unflatten(text, (name) => names.push(name))
  return names
}

function pack(value: unknown, path: string, tensors: StateDict, above: Set<object>): unknown {
  if (isTensor(value)) {
    if (value.isSparse) throw unsupported(path, 'a sparse tensor', 'Convert it with toDense().')
    tensors[path] = value.detach()
    return { [MARK]: 'tensor', name: path }
  }
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { [MARK]: 'number', value: Object.is(value, -0) ? '-0' : String(value) }
    case 'bigint':
      return { [MARK]: 'bigint', value: String(value) }
    case 'undefined':
      return { [MARK]: 'undefined' }
    case 'object':
      if (value === null) return null
      break
    default:
      throw unsupported(path, `a ${typeof value}`)
  }
  if (above.has(value)) throw unsupported(path, 'a value that contains itself')
  above.add(value)
  const packed = packEntries(value, path, tensors, above)
  above.delete(value)
  return packed
}

function packEntries(value: object, path: string, tensors: StateDict, above: Set<object>): unknown {
  if (Array.isArray(value)) return Array.from(value, (each, i) => pack(each, `${path}.${i}`, tensors, above))
  const prototype = Object.getPrototypeOf(value) as object | null
  // An object of another realm has another Object.prototype, which has none itself.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw unsupported(
      path,
      `an instance of ${value.constructor?.name}`,
      'Give it stateDict() and loadStateDict(), or save what it consists of.',
    )
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key.startsWith(MARK) ? MARK + key : key, pack(each, `${path}.${key}`, tensors, above)]),
  )
}

function unpack(value: unknown, tensorOf: (name: string) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => unpack(each, tensorOf))
  const { [MARK]: mark, ...rest } = value as Record<string, unknown>
  if (mark === undefined) {
    return Object.fromEntries(
      Object.entries(rest).map(([key, each]) => [key.startsWith(MARK) ? key.slice(1) : key, unpack(each, tensorOf)]),
    )
  }
  if (mark === 'tensor') return tensorOf(String(rest.name))
  if (mark === 'number') return Number(rest.value)
  if (mark === 'bigint') return BigInt(String(rest.value))
  if (mark === 'undefined') return undefined
  throw new TypeError(`no such mark: ${String(mark)}`)
}

function unsupported(path: string, got: string, remedy = 'Save tensors, numbers, texts, lists and plain objects.'): PostgradError {
  return new PostgradError('CHECKPOINT_UNSUPPORTED', {
    op: 'checkpoint',
    expected: `tensors and plain data as '${path}'`,
    got,
    remedy,
    values: { path },
  })
}
