/**
 * Looks through a value before it is packed: finds tensors, typed arrays, errors and extensions, replaces what neither cells nor msgpack have
 * (`value-tag.ts`), and refuses what cannot be sent. Values that need no change pass as they are, so plain arguments cost one look.
 * `value-reader.ts` is the reverse.
 */

import { types } from 'node:util'
import type { WorkerHop } from '@postgrad/base'
import { DETACHED, isDetached } from '@postgrad/base/internal'
import { Tensor } from '@postgrad/tensor'
import { isReadable, isSparse, isTensor } from '@postgrad/tensor/internal'
import { BLOCK_WORDS } from './block-transport.js'
import { type ErrorSink, encodeError, isError } from './error-codec.js'
import { DEPTH_RESERVE, type WireLimits } from './limits.js'
import type { Part, TensorPlace } from './message.js'
import { survivesUtf8 } from './strings.js'
import { CODE_OF } from './tensor-codec.js'
import type { DeviceOf, ValueExtension } from './value-tag.js'
import { bytesKindOf, ValueTag } from './value-tag.js'
import { tooDeep, tooLarge, unsupported } from './wire-errors.js'

/** Thrown inside, without a stack; `ValueWriter.write` looks for the path only then, so that the good way need not carry one. */
const REFUSED = Symbol('refused')

/** Objects with more keys are written key by key: msgpackr has two bytes for the number. */
const OBJECT_KEYS_MAX = 0xffff
/** Elements of the envelope and of the body's own array, for which room is kept. */
const FRAME_ITEMS = 16
const INT64_MIN = -(1n << 63n)
const UINT64_MAX = (1n << 64n) - 1n

const UNDEFINED: readonly unknown[] = Object.freeze([null, ValueTag.undefined])
const MINUS_ZERO: readonly unknown[] = Object.freeze([null, ValueTag.minusZero])

export class ValueWriter {
  /** Found by `write` since `begin`, in order of appearance; null when nothing. */
  tensors: Tensor[] | null = null
  requiresGrad: boolean[] | null = null
  places: TensorPlace[] | null = null
  parts: Part[] | null = null
  private items = 0
  private env: unknown = null
  private readonly depthMax: number
  private readonly itemsMax: number
  private readonly extensions: readonly ValueExtension[]
  private readonly deviceOf: DeviceOf | null
  private readonly self: WorkerHop | null
  private readonly errorSink: ErrorSink

  constructor(
    limits: WireLimits,
    extensions: readonly ValueExtension[],
    deviceOf: DeviceOf | null,
    self: WorkerHop | null,
    takesStacks: boolean,
  ) {
    this.depthMax = limits.depthMax - DEPTH_RESERVE
    this.itemsMax = limits.itemsMax
    this.extensions = extensions
    this.deviceOf = deviceOf
    this.self = self
    this.errorSink = { takesStacks, plain: (value) => this.value(value, 0), count: (elements) => this.count(elements) }
  }

  begin(env: unknown): void {
    this.tensors = null
    this.requiresGrad = null
    this.places = null
    this.parts = null
    this.items = FRAME_ITEMS
    this.env = env
  }

  /** The packable form; the value itself where nothing had to change. @throws WIRE_UNSUPPORTED_VALUE, WIRE_TOO_DEEP, WIRE_TOO_LARGE */
  write(value: unknown, name: string): unknown {
    try {
      return this.value(value, 0)
    } catch (error) {
      if (error === REFUSED) throw this.explain(value, name)
      throw error
    }
  }

  /** The packable form of what was thrown, an error or not. */
  writeError(thrown: unknown): unknown {
    return encodeError(thrown, this.self, this.errorSink)
  }

  private value(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return survivesUtf8(value) ? value : this.special(codeUnits(value))
      case 'number':
        return value === 0 && 1 / value < 0 ? this.special(MINUS_ZERO) : value
      case 'boolean':
        return value
      case 'object':
        return value === null ? null : this.object(value, depth)
      case 'undefined':
        return this.special(UNDEFINED)
      case 'bigint':
        return value >= INT64_MIN && value <= UINT64_MAX ? value : this.special([null, ValueTag.bigint, value.toString(16)])
      default:
        throw REFUSED
    }
  }

  private object(value: object, depth: number): unknown {
    if (depth > this.depthMax) throw REFUSED
    if (Array.isArray(value)) return this.array(value, depth)
    if (value instanceof Tensor) return this.tensor(value)
    const prototype = Object.getPrototypeOf(value)
    // No prototype, or one at the root of its realm: a plain object.
    if (prototype === Object.prototype || prototype === null) return this.plainObject(value as Record<string, unknown>, depth)
    if (isTensor(value)) return this.tensor(value)
    for (const extension of this.extensions) {
      if (extension.matches(value)) return this.special([null, extension.tag, this.value(extension.encode(value, this.env), depth + 1)])
    }
    if (isError(value)) return this.writeError(value)
    if (Object.getPrototypeOf(prototype) === null && !Object.hasOwn(prototype, Symbol.toStringTag)) {
      return this.plainObject(value as Record<string, unknown>, depth)
    }
    return this.builtIn(value, depth)
  }

  private array(array: readonly unknown[], depth: number): unknown {
    const { length } = array
    this.count(length)
    let changed: unknown[] | null = null
    for (let i = 0; i < length; i++) {
      const before = array[i]
      if (before === undefined && !(i in array)) throw REFUSED
      // Most elements of long lists.
      const isPlain = typeof before === 'number' ? before !== 0 : typeof before === 'boolean'
      const after = isPlain ? before : this.value(before, depth + 1)
      if (changed !== null) changed.push(after)
      else if (after !== before) {
        changed = array.slice(0, i)
        changed.push(after)
      }
    }
    const result = changed ?? array
    return length > 0 && array[0] === null ? [null, ValueTag.array, ...result] : result
  }

  private plainObject(object: Readonly<Record<string, unknown>>, depth: number): unknown {
    const keys = Object.keys(object)
    const { length } = keys
    this.count(2 * length)
    // Before any value is looked at, since looking notes what it finds.
    for (let i = 0; i < length; i++) if (!isPlainKey(keys[i] as string)) return this.keyByKey(object, keys, depth)
    if (length > OBJECT_KEYS_MAX) return this.keyByKey(object, keys, depth)
    let changed: Record<string, unknown> | null = null
    for (let i = 0; i < length; i++) {
      const key = keys[i] as string
      const before = object[key]
      const after = this.value(before, depth + 1)
      if (after !== before && changed === null) changed = { ...object }
      if (changed !== null) changed[key] = after
    }
    return changed ?? object
  }

  private keyByKey(object: Readonly<Record<string, unknown>>, keys: readonly string[], depth: number): unknown {
    const out: unknown[] = [null, ValueTag.object]
    for (const key of keys) out.push(this.value(key, depth + 1), this.value(object[key], depth + 1))
    return out
  }

  private tensor(tensor: Tensor): unknown {
    if (isSparse(tensor)) {
      const parts = [this.tensor(tensor.indices()), this.tensor(tensor.values())]
      return this.special([null, ValueTag.sparse, tensor.isCoalesced, ...parts, ...tensor.shape])
    }
    const place: TensorPlace = [null, ValueTag.tensor + CODE_OF[tensor.dtype], ...tensor.shape]
    this.count(place.length + BLOCK_WORDS)
    if (this.tensors === null) {
      this.tensors = [tensor]
      this.requiresGrad = [tensor.requiresGrad]
      this.places = [place]
    } else {
      this.tensors.push(tensor)
      this.requiresGrad?.push(tensor.requiresGrad)
      this.places?.push(place)
    }
    this.part(tensor)
    // Without `deviceOf` the codec refuses a tensor that the host cannot read.
    return this.deviceOf === null || isReadable(tensor)
      ? place
      : this.special([null, ValueTag.onDevice, this.deviceOf(tensor.device.spec, this.env), place])
  }

  private builtIn(value: object, depth: number): unknown {
    const tag = tagOf(value)
    switch (tag) {
      case 'Date':
        return this.special([null, ValueTag.date, this.value(Number(value), depth + 1)])
      case 'RegExp': {
        const { source, flags } = value as RegExp
        return this.special([null, ValueTag.regexp, this.value(source, depth + 1), flags])
      }
      case 'Map': {
        const out: unknown[] = [null, ValueTag.map]
        this.count(2 * (value as Map<unknown, unknown>).size)
        for (const [key, element] of value as Map<unknown, unknown>) out.push(this.value(key, depth + 1), this.value(element, depth + 1))
        return out
      }
      case 'Set': {
        const out: unknown[] = [null, ValueTag.set]
        this.count((value as Set<unknown>).size)
        for (const element of value as Set<unknown>) out.push(this.value(element, depth + 1))
        return out
      }
    }
    const kind = bytesKindOf(tag)
    if (kind < 0) throw REFUSED
    if (isDetached(value as ArrayBuffer)) throw REFUSED
    // Copied when the message is encoded; until then a view.
    const bytes = ArrayBuffer.isView(value)
      ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
      : new Uint8Array(value as ArrayBuffer)
    this.part(bytes)
    return this.special([null, ValueTag.bytes, kind, bytes.length])
  }

  private part(part: Part): void {
    if (this.parts === null) this.parts = [part]
    else this.parts.push(part)
  }

  private special(form: readonly unknown[]): readonly unknown[] {
    this.count(form.length)
    return form
  }

  /** Never less than the receiver will count, so that the sender gets the error and not the worker at the other end. */
  private count(items: number): void {
    // Two more for the null and the tag, should they come in front.
    this.items += items + 2
    if (this.items > this.itemsMax) throw tooLarge('encode', 'elements in one message', this.itemsMax, this.items)
  }

  /** The error for the first value that `value` refused, found again with its path. */
  private explain(value: unknown, name: string): Error {
    return this.problem(value, name, []) ?? unsupported(name, 'a value that changes while it is read', 'Send a copy of it.')
  }

  private problem(value: unknown, path: string, above: readonly object[]): Error | null {
    if (typeof value === 'function') {
      const what = `a function (${value.name || 'without a name'})`
      return unsupported(
        path,
        what,
        'Code does not travel: send a name that the other worker looks up, or call the function here and send its result.',
      )
    }
    if (typeof value === 'symbol') return unsupported(path, 'a symbol', 'Send a string.')
    if (typeof value !== 'object' || value === null || isTensor(value) || isError(value)) return null
    if (above.includes(value))
      return unsupported(path, 'a reference to something that it is inside of (a cycle)', 'Send a tree, or a list of nodes with indices.')
    if (above.length > this.depthMax) return tooDeep('encode', this.depthMax, path.length > 200 ? `${path.slice(0, 200)}…` : path)
    const inside = [...above, value]
    if (Array.isArray(value)) {
      return first(value, (element, i) =>
        element === undefined && !(i in value)
          ? unsupported(
              `${path}[${i}]`,
              'a hole in an array',
              'Fill it: a hole would arrive as undefined. Array.from(array) makes undefined of each.',
            )
          : this.problem(element, `${path}[${i}]`, inside),
      )
    }
    const prototype = Object.getPrototypeOf(value)
    const isPlain = prototype === null || (Object.getPrototypeOf(prototype) === null && !Object.hasOwn(prototype, Symbol.toStringTag))
    if (isPlain) {
      return first(Object.entries(value), ([key, element]) => this.problem(element, `${path}${property(key)}`, inside))
    }
    const extension = this.extensions.find(({ matches }) => matches(value))
    if (extension !== undefined) return null
    const tag = tagOf(value)
    if (tag === 'Map') {
      return first([...(value as Map<unknown, unknown>)], ([key, element], i) => {
        return this.problem(key, `${path}.keys()[${i}]`, inside) ?? this.problem(element, `${path}.values()[${i}]`, inside)
      })
    }
    if (tag === 'Set') return first([...(value as Set<unknown>)], (element, i) => this.problem(element, `${path}.values()[${i}]`, inside))
    if (bytesKindOf(tag) >= 0) return isDetached(value as ArrayBuffer) ? unsupported(path, DETACHED.got, DETACHED.remedy) : null
    if (tag === 'Date' || tag === 'RegExp') return null
    if (tag === 'SharedArrayBuffer') return unsupported(path, 'shared memory', 'Send a typed array; its bytes are copied.')
    if (tag === 'Promise') return unsupported(path, 'a promise', 'Await it and send its value.')
    if (typeof (value as { next?: unknown }).next === 'function') {
      return unsupported(path, 'an iterator', 'Take its items one by one with stream(to, fn, args), or send an array of them.')
    }
    const className = (prototype?.constructor as { name?: unknown } | undefined)?.name
    const what = `an instance of ${typeof className === 'string' && className !== '' ? className : 'a class'}`
    return unsupported(path, what, 'Send its data as a plain object, or keep it where it is and send an RRef to it.')
  }
}

/** `Date`, `Map`, `Float32Array`, …: right in every realm. A user's own toStringTag is not believed for what has an inner slot. */
function tagOf(value: object): string {
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  if (ArrayBuffer.isView(value)) return tag
  return hasSlot(value, tag) ? tag : 'Object'
}

/** Whether the value is what its tag says; a tag can be made up. */
function hasSlot(value: object, tag: string): boolean {
  switch (tag) {
    case 'Date':
      return types.isDate(value)
    case 'RegExp':
      return types.isRegExp(value)
    case 'Map':
      return types.isMap(value)
    case 'Set':
      return types.isSet(value)
    case 'ArrayBuffer':
      return types.isArrayBuffer(value)
    default:
      return bytesKindOf(tag) < 0
  }
}

/** msgpackr renames `__proto__`. */
function isPlainKey(key: string): boolean {
  return key !== '__proto__' && survivesUtf8(key)
}

function codeUnits(text: string): unknown[] {
  const out: unknown[] = [null, ValueTag.string]
  for (let i = 0; i < text.length; i++) out.push(text.charCodeAt(i))
  return out
}

function property(key: string): string {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}

function first<T>(list: readonly T[], find: (element: T, i: number) => Error | null): Error | null {
  for (let i = 0; i < list.length; i++) {
    const found = find(list[i] as T, i)
    if (found !== null) return found
  }
  return null
}
