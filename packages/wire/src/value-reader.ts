/**
 * Makes values of what was read from cells or unpacked: the reverse of `value-writer.ts`. Arrays and objects are fresh, so they are
 * changed in place. Nothing here trusts its input: it may come from another machine.
 */
import { isPostgradError } from '@postgrad/base'
import { isTensor, SparseTensor } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, CPU, numelOf, putOn, Tensor, writeElements } from '@postgrad/tensor/internal'
import { BLOCK_WORDS, type BlockName, type BlockTransport } from './block-transport.js'
import { decodeError } from './error-codec.js'
import { bufferOf, DTYPE_CODES, fromSegment, INLINE_BYTES_MAX, ROUND, Views } from './tensor-codec.js'
import {
  BLOCK_TAG_MAX,
  BYTES_KINDS,
  EXTENSION_TAG_MAX,
  TENSOR_REQUIRES_GRAD,
  TENSOR_TAG_MAX,
  type ValueExtension,
  ValueTag,
} from './value-tag.js'
import { corrupt, unknownValue } from './wire-errors.js'

const DTYPE_MASK = 0x03
const NO_BYTES = new Uint8Array(0)
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

export class ValueReader {
  /** In order of appearance; null when there are none. */
  tensors: Tensor[] | null = null
  requiresGrad: boolean[] | null = null
  private header: Uint8Array = NO_BYTES
  private segments: readonly Uint8Array[] = NO_SEGMENTS
  /** In the header, after the packed values and the parts that were read. */
  private at = 0
  private segmentAt = 0
  private env: unknown = null
  private blocks: BlockTransport | null = null
  /** Views of the buffer that was last read from: consecutive headers often share one. */
  private views: Views | null = null
  private readonly extensions: readonly (ValueExtension | undefined)[]

  constructor(extensions: readonly ValueExtension[]) {
    const byTag: (ValueExtension | undefined)[] = []
    for (const extension of extensions) byTag[extension.tag] = extension
    this.extensions = byTag
  }

  /** `header` starts at a multiple of 8 in its buffer, its parts at `partsAt`. */
  begin(header: Uint8Array, partsAt: number, segments: readonly Uint8Array[], env: unknown, blocks: BlockTransport | null): void {
    this.tensors = null
    this.requiresGrad = null
    this.header = header
    this.at = partsAt
    this.segments = segments
    this.segmentAt = 0
    this.env = env
    this.blocks = blocks
  }

  /** Every part must belong to a value. @throws WIRE_CORRUPT */
  end(): void {
    const isWhole = this.at === this.header.length && this.segmentAt === this.segments.length
    if (!isWhole) throw corrupt('bytes or segments that belong to nothing')
  }

  /** Lets go of the frame and of what was read. */
  release(): void {
    this.header = NO_BYTES
    this.segments = NO_SEGMENTS
    this.tensors = null
    this.requiresGrad = null
    this.env = null
    this.blocks = null
  }

  /** @throws WIRE_CORRUPT, WIRE_UNKNOWN_VALUE, and the PostgradErrors of extensions */
  read(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.length > 0 && value[0] === null ? this.special(value) : this.elements(value, 0)
    const object = value as Record<string, unknown>
    for (const key of Object.keys(object)) {
      const element = object[key]
      if (typeof element === 'object' && element !== null) object[key] = this.read(element)
    }
    return object
  }

  private elements(array: unknown[], from: number): unknown[] {
    for (let i = from; i < array.length; i++) {
      const element = array[i]
      if (typeof element === 'object' && element !== null) array[i] = this.read(element)
    }
    return array
  }

  private special(array: unknown[]): unknown {
    const tag = array[1]
    if (typeof tag !== 'number') throw corrupt('a special value without a tag')
    if (tag >= ValueTag.tensor && tag <= TENSOR_TAG_MAX) return this.tensor(tag, array)
    if (tag >= ValueTag.block && tag <= BLOCK_TAG_MAX) return this.block(tag, array)
    if (tag >= ValueTag.extension && tag <= EXTENSION_TAG_MAX) return this.extension(tag, array)
    const { length } = array
    switch (tag) {
      case ValueTag.undefined:
        return undefined
      case ValueTag.minusZero:
        return -0
      case ValueTag.array:
        return this.elements(array, 2).slice(2)
      case ValueTag.object: {
        const object: Record<string, unknown> = {}
        for (const [key, value] of this.pairs(array)) {
          if (typeof key !== 'string') throw corrupt('a key that is not a string')
          // Not an assignment: `__proto__` is a key like any other here.
          Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
        }
        return object
      }
      case ValueTag.bigint:
        return bigintOf(array[2])
      case ValueTag.string:
        return stringOf(array)
      case ValueTag.date: {
        const ms = this.read(array[2])
        if (typeof ms !== 'number') throw corrupt('a date')
        return new Date(ms)
      }
      case ValueTag.regexp:
        return regexpOf(this.read(array[2]), array[3])
      case ValueTag.map:
        return new Map(this.pairs(array))
      case ValueTag.set:
        return new Set(this.elements(array, 2).slice(2))
      case ValueTag.error: {
        if (length !== 13) throw corrupt('an error')
        // Element by element: arrays of the error codec (cause, errors, workers) are not special, even if they begin with null.
        const fields = array.slice(2)
        for (const i of [4, 5, 6]) {
          const list = fields[i]
          if (Array.isArray(list)) fields[i] = this.elements(list, 0)
        }
        for (const i of [1, 2, 3, 7, 8, 9, 10]) fields[i] = this.read(fields[i])
        return decodeError(fields)
      }
      case ValueTag.sparse:
        return this.sparse(array)
      case ValueTag.onDevice:
        return this.onDevice(array)
      case ValueTag.bytes:
        return this.bytes(array[2], array[3])
      default:
        throw unknownValue(tag)
    }
  }

  private pairs(array: unknown[]): [unknown, unknown][] {
    if (array.length % 2 !== 0) throw corrupt('a key without a value')
    this.elements(array, 2)
    const pairs: [unknown, unknown][] = []
    for (let i = 2; i < array.length; i += 2) pairs.push([array[i], array[i + 1]])
    return pairs
  }

  private tensor(tag: number, array: unknown[]): Tensor {
    const dtype = DTYPE_CODES[(tag & DTYPE_MASK) as 0 | 1 | 2 | 3]
    const shape = shapeOf(array, 2)
    const numel = numelOf(shape)
    const length = numel * BYTES_PER_ELEMENT[dtype]
    if (!Number.isSafeInteger(length)) throw corrupt("a tensor's shape")
    let tensor: Tensor
    if (length > INLINE_BYTES_MAX) {
      const segment = this.segment(length)
      tensor = this.blocks?.over?.(segment, dtype, shape, numel) ?? fromSegment(dtype, shape, segment)
    } else {
      const at = this.header.byteOffset + this.inline(length)
      tensor = Tensor.uninitialized(dtype, shape, CPU)
      writeElements(tensor, this.viewsOf(this.header).of[dtype], at / BYTES_PER_ELEMENT[dtype], numel)
    }
    return this.noted(tensor, tag)
  }

  /** @throws DEVICE_UNKNOWN */
  private onDevice(array: unknown[]): Tensor {
    const [, , spec, place] = array
    const tag = Array.isArray(place) && place[0] === null ? (place[1] as unknown) : null
    const isPlain = typeof tag === 'number' && tag >= ValueTag.tensor && tag <= BLOCK_TAG_MAX
    if (array.length !== 4 || typeof spec !== 'string' || !isPlain) throw corrupt('a tensor on a device')
    const moved = putOn(this.special(place as unknown[]) as Tensor, spec)
    // In the place of the tensor of the cpu.
    this.tensors![this.tensors!.length - 1] = moved
    return moved
  }

  /** A tensor whose elements lie in the heap that this worker shares with the sender. */
  private block(tag: number, array: unknown[]): Tensor {
    if (this.blocks === null) throw corrupt('a block of a heap that is not shared with the sender')
    const dtype = DTYPE_CODES[(tag & DTYPE_MASK) as 0 | 1 | 2 | 3]
    const shape = shapeOf(array, 2 + BLOCK_WORDS)
    const numel = numelOf(shape)
    if (!Number.isSafeInteger(numel * BYTES_PER_ELEMENT[dtype])) throw corrupt("a tensor's shape")
    const name = array.slice(2, 2 + BLOCK_WORDS)
    // A generation, the second, is a 32-bit word and may be negative.
    if (name.length < BLOCK_WORDS || !name.every((word, i) => Number.isSafeInteger(word) && (i === 1 || (word as number) >= 0))) {
      throw corrupt('the name of a block')
    }
    return this.noted(this.blocks.take(name as unknown as BlockName, dtype, shape, numel), tag)
  }

  private noted(tensor: Tensor, tag: number): Tensor {
    const required = (tag & TENSOR_REQUIRES_GRAD) !== 0
    if (this.tensors === null) {
      this.tensors = [tensor]
      this.requiresGrad = [required]
    } else {
      this.tensors.push(tensor)
      this.requiresGrad?.push(required)
    }
    return tensor
  }

  private sparse(array: unknown[]): Tensor {
    const [, , isCoalesced, ...parts] = array
    const indices = this.read(parts[0])
    const values = this.read(parts[1])
    if (typeof isCoalesced !== 'boolean' || !isTensor(indices) || !isTensor(values)) throw corrupt('a sparse tensor')
    try {
      const sparse = new SparseTensor(indices, values, shapeOf(parts, 2), isCoalesced)
      if (isCoalesced && !ascends(indices)) throw new RangeError('indices that do not ascend')
      return sparse
    } catch (error) {
      throw corrupt('a sparse tensor', error)
    }
  }

  private bytes(kindNumber: unknown, length: unknown): unknown {
    const kind = typeof kindNumber === 'number' ? BYTES_KINDS[kindNumber] : undefined
    if (
      kind === undefined ||
      typeof length !== 'number' ||
      !Number.isSafeInteger(length) ||
      length < 0 ||
      length % kind.elementBytes !== 0
    ) {
      throw corrupt('a typed array')
    }
    if (length <= INLINE_BYTES_MAX) {
      const at = this.inline(length)
      return kind.make(bufferOf(this.header.subarray(at, at + length)))
    }
    const segment = this.segment(length)
    const isOwn = segment.byteOffset === 0 && segment.length === segment.buffer.byteLength
    return kind.make(isOwn ? (segment.buffer as ArrayBuffer) : bufferOf(segment))
  }

  /** Where the next part lies in the header. */
  private inline(length: number): number {
    const at = (this.at + ROUND) & ~ROUND
    if (at + length > this.header.length) throw corrupt('a tensor or typed array ends too late')
    this.at = (at + length + ROUND) & ~ROUND
    return at
  }

  private segment(length: number): Uint8Array {
    const segment = this.segments[this.segmentAt++]
    if (segment === undefined || segment.length !== length) throw corrupt('a segment is missing or has another length')
    return segment
  }

  private viewsOf(bytes: Uint8Array): Views {
    if (this.views === null || this.views.buffer !== bytes.buffer) this.views = new Views(bytes.buffer as ArrayBuffer)
    return this.views
  }

  private extension(tag: number, array: unknown[]): unknown {
    const extension = this.extensions[tag]
    if (extension === undefined) throw unknownValue(tag)
    if (array.length !== 3) throw corrupt('an extension')
    const plain = this.read(array[2])
    try {
      return extension.decode(plain, this.env)
    } catch (error) {
      // The extension did not write this value, and failed.
      throw isPostgradError(error) ? error : corrupt('a value of an extension', error)
    }
  }
}

function ascends(indices: Tensor): boolean {
  const all = indices.dataSync()
  for (let i = 1; i < all.length; i++) if (all[i - 1]! >= all[i]!) return false
  return true
}

function shapeOf(array: readonly unknown[], from: number): number[] {
  const shape: number[] = []
  for (let i = from; i < array.length; i++) {
    const extent = array[i]
    if (typeof extent !== 'number' || !Number.isSafeInteger(extent) || extent < 0) throw corrupt("a tensor's shape")
    shape.push(extent)
  }
  return shape
}

function bigintOf(digits: unknown): bigint {
  if (typeof digits !== 'string' || !/^-?[0-9a-f]+$/.test(digits)) throw corrupt('a bigint')
  return digits.startsWith('-') ? -BigInt(`0x${digits.slice(1)}`) : BigInt(`0x${digits}`)
}

function stringOf(array: readonly unknown[]): string {
  let text = ''
  for (let i = 2; i < array.length; i++) {
    const unit = array[i]
    if (typeof unit !== 'number' || !Number.isInteger(unit) || unit < 0 || unit > 0xffff) throw corrupt('a string')
    text += String.fromCharCode(unit)
  }
  return text
}

function regexpOf(source: unknown, flags: unknown): RegExp {
  if (typeof source !== 'string' || typeof flags !== 'string') throw corrupt('a regular expression')
  try {
    return new RegExp(source, flags)
  } catch (error) {
    throw corrupt('a regular expression', error)
  }
}
