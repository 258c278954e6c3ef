/**
 * Reads and writes IDX, the format of MNIST, plain or gzipped. http://yann.lecun.com/exdb/mnist (at the end of the page).
 *
 *     ┌───┬───┬──────┬──────┬──────────────────────────┬──────────────────────────┐
 *     │ 0 │ 0 │ type │ ndim │ extents, uint32 each     │ elements, row by row     │   all of it big-endian
 *     └───┴───┴──────┴──────┴──────────────────────────┴──────────────────────────┘
 *
 * The header is checked before anything is allocated: the size that it gives must be the file's, to the byte, or one that gzip can reach.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin, whatOf } from '@postgrad/base/internal'
import { type DType, Tensor } from '@postgrad/tensor'
import { allocate, dtypeMismatch, invalidArgument, isDType, shapeText } from '@postgrad/tensor/internal'
import { checkPath, ioFailure, isOfFileSystem } from './file-errors.js'

/** The type of the elements in an IDX file: 8, 8, 16 and 32 bit integers ('ubyte' is unsigned), 32 and 64 bit floats. */
export type IdxType = 'ubyte' | 'byte' | 'short' | 'int' | 'float' | 'double'

interface TypeRow {
  readonly code: number
  readonly bytes: number
  /** The dtype that holds every value. */
  readonly dtype: DType
  readonly min: number
  readonly max: number
  get(view: DataView, at: number): number
  set(view: DataView, at: number, value: number): void
}

const integer = (bits: number, isSigned: boolean): { readonly dtype: 'int32'; readonly min: number; readonly max: number } => ({
  dtype: 'int32',
  min: isSigned ? -(2 ** (bits - 1)) : 0,
  max: 2 ** (isSigned ? bits - 1 : bits) - 1,
})
const real = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY } as const

const TYPES: Readonly<Record<IdxType, TypeRow>> = {
  ubyte: { code: 0x08, bytes: 1, ...integer(8, false), get: (v, at) => v.getUint8(at), set: (v, at, x) => v.setUint8(at, x) },
  byte: { code: 0x09, bytes: 1, ...integer(8, true), get: (v, at) => v.getInt8(at), set: (v, at, x) => v.setInt8(at, x) },
  short: { code: 0x0b, bytes: 2, ...integer(16, true), get: (v, at) => v.getInt16(at), set: (v, at, x) => v.setInt16(at, x) },
  int: { code: 0x0c, bytes: 4, ...integer(32, true), get: (v, at) => v.getInt32(at), set: (v, at, x) => v.setInt32(at, x) },
  float: { code: 0x0d, bytes: 4, dtype: 'float32', ...real, get: (v, at) => v.getFloat32(at), set: (v, at, x) => v.setFloat32(at, x) },
  double: { code: 0x0e, bytes: 8, dtype: 'float64', ...real, get: (v, at) => v.getFloat64(at), set: (v, at, x) => v.setFloat64(at, x) },
}

const TYPE_OF_DTYPE: Readonly<Record<DType, IdxType>> = { float32: 'float', float64: 'double', int32: 'int', bool: 'ubyte' }

const MAGIC_BYTES = 4
const EXTENT_BYTES = 4
const NDIM_MAX = 255
/** Of a gzipped file, enough for the longest header and gzip's own with a file name in it. */
const GZIP_BEGIN_BYTES = 8192
/** Deflate makes no more than 1032 bytes of one (258 bytes of two bits). */
const DEFLATE_RATIO_MAX = 1032

/** Options of `readIdx` and `decodeIdx`. */
export interface IdxReadOptions {
  /** The dtype of the tensor. Default: int32 for a file of ubyte, byte, short or int, float32 for float, float64 for double. */
  readonly dtype?: DType
}

/**
 * Reads an IDX file (the format of MNIST), and resolves with its tensor. Gzipped files are recognized by their first bytes.
 * @throws IDX_INVALID if the file is not an IDX file, with the path in `values`; IDX_IO if the file cannot be read; INVALID_ARGUMENT
 * @example
 * const images = await readIdx('train-images-idx3-ubyte.gz') // MNIST: [60000, 28, 28], pixels from 0 to 255
 * const inputs = images.to('float32').div(255)
 */
export async function readIdx(path: string | URL, options: IdxReadOptions = {}): Promise<Tensor> {
  checkPath('readIdx', path)
  try {
    return await decodeIdx(await readFile(path), options)
  } catch (error) {
    if (isOfFileSystem(error)) throw ioFailure('IDX_IO', 'readIdx', 'read', path, error)
    if (!isPostgradError(error, 'IDX_INVALID')) throw error
    const message = `${String(path)}: ${whatOf(error)}`
    throw new PostgradError('IDX_INVALID', { op: 'readIdx', message, remedy: REMEDY, values: { path: String(path) }, cause: error.cause })
  }
}

/**
 * Decodes the bytes of an IDX file, plain or gzipped, and resolves with the tensor.
 * @throws IDX_INVALID if the bytes are not an IDX file; INVALID_ARGUMENT
 * @example await decodeIdx(encodeIdx(tensor([[1, 2], [3, 255]], { dtype: 'int32' }), { type: 'ubyte' })) // [[1, 2], [3, 255]]
 */
export async function decodeIdx(bytes: Uint8Array, options: IdxReadOptions = {}): Promise<Tensor> {
  const isGzip = bytes.length >= 2 && bytes[0] === 0x1f && bytes[1] === 0x8b
  return parse(isGzip ? await gunzipped(bytes) : bytes, options)
}

interface IdxHeader {
  readonly type: TypeRow
  readonly shape: readonly number[]
  readonly bytes: number
  readonly numel: number
  /** Of header and elements. */
  readonly total: number
}

/** @throws IDX_INVALID */
function headerOf(bytes: Uint8Array): IdxHeader {
  if (bytes.length < MAGIC_BYTES) throw invalid(`a header of ${MAGIC_BYTES} bytes`, `${bytes.length} bytes`)
  const view = viewOf(bytes)
  const [zero, code, ndim] = [view.getUint16(0), view.getUint8(2), view.getUint8(3)]
  if (zero !== 0) throw invalid('two bytes of 0 at the beginning', `0x${zero.toString(16).padStart(4, '0')}`)
  const type = Object.values(TYPES).find((one) => one.code === code)
  if (type === undefined) throw invalid('a type of elements (0x08, 0x09, 0x0b … 0x0e)', `0x${code.toString(16)}`)
  const length = MAGIC_BYTES + ndim * EXTENT_BYTES
  if (bytes.length < length) throw invalid(`${ndim} extents, ${length} bytes`, `${bytes.length} bytes`)
  const shape = Array.from({ length: ndim }, (_, d) => view.getUint32(MAGIC_BYTES + d * EXTENT_BYTES))
  const numel = shape.reduce((product, extent) => product * extent, 1)
  const total = length + numel * type.bytes
  // Also where an extent is 0: the others must not be such that a shape cannot be counted.
  if (!Number.isSafeInteger(shape.reduce((product, extent) => product * Math.max(extent, 1), type.bytes))) {
    throw invalid('a shape that can be counted', shapeText(shape))
  }
  return { type, shape, bytes: length, numel, total }
}

function parse(bytes: Uint8Array, { dtype }: IdxReadOptions): Tensor {
  const header = headerOf(bytes)
  const { type, shape, numel, total } = header
  if (bytes.length !== total) throw invalid(`${total} bytes for shape ${shapeText(shape)}`, `${bytes.length}`)
  const into = dtype ?? type.dtype
  if (!isDType(into)) throw invalidArgument('decodeIdx', 'a dtype', into)
  const array = allocate(into, numel)
  const view = viewOf(bytes)
  const isBool = into === 'bool'
  for (let i = 0, at = header.bytes; i < numel; i++, at += type.bytes) {
    const value = type.get(view, at)
    array[i] = isBool ? Number(value !== 0) : value
  }
  return Tensor.over(into, [...shape], array)
}

const zlib = () => builtin<typeof import('node:zlib')>('node:zlib')

/** Looks at the header first: it bounds how much is unpacked. */
async function gunzipped(bytes: Uint8Array): Promise<Uint8Array> {
  try {
    // Unpacked as far as the first bytes reach.
    const begin = zlib().gunzipSync(bytes.subarray(0, GZIP_BEGIN_BYTES), { finishFlush: zlib().constants.Z_SYNC_FLUSH })
    const { total, shape } = headerOf(begin)
    if (total > bytes.length * DEFLATE_RATIO_MAX)
      throw invalid(`${total} bytes for shape ${shapeText(shape)}`, `${bytes.length} gzipped, which cannot hold them`)
    return await promisify(zlib().gunzip)(bytes, { maxOutputLength: total })
  } catch (error) {
    if (isPostgradError(error)) throw error
    const tooLong = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    throw invalid(
      tooLong ? 'no more bytes than its shape needs' : 'whole gzip data',
      tooLong ? 'more' : String((error as Error).message),
      error,
    )
  }
}

/** Options of `writeIdx`. */
export interface IdxWriteOptions {
  /** The type of the elements in the file. Default: float for a float32 tensor, double for float64, int for int32, ubyte for bool. */
  readonly type?: IdxType
  /** Whether to gzip the file. Default: true if the path ends in '.gz'. */
  readonly gzip?: boolean
}

/**
 * Writes a tensor as an IDX file (the format of MNIST), gzipped if the path ends in '.gz'.
 * @throws IDX_OUT_OF_RANGE if the type cannot hold a value; DTYPE_MISMATCH if a tensor of floats is to be written as integers; IDX_IO if the file cannot
 * be written; INVALID_ARGUMENT
 * @example
 * await writeIdx('labels.idx.gz', tensor([3, 1, 4], { dtype: 'int32' }), { type: 'ubyte' })
 * await readIdx('labels.idx.gz') // an int32 tensor: [3, 1, 4]
 */
export async function writeIdx(path: string | URL, x: Tensor, options: IdxWriteOptions = {}): Promise<void> {
  checkPath('writeIdx', path)
  const bytes = encodeIdx(x, options)
  const packed = (options.gzip ?? /\.gz$/.test(String(path))) ? await promisify(zlib().gzip)(bytes) : bytes
  try {
    await writeFile(path, packed)
  } catch (error) {
    throw ioFailure('IDX_IO', 'writeIdx', 'write', path, error)
  }
}

/**
 * Returns the bytes of the IDX file of a tensor, not gzipped.
 * @throws IDX_OUT_OF_RANGE if the type cannot hold a value; DTYPE_MISMATCH if a tensor of floats is to be written as integers; INVALID_ARGUMENT
 * @example encodeIdx(zeros([28, 28], { dtype: 'int32' }), { type: 'ubyte' }).byteLength // 796
 */
export function encodeIdx(x: Tensor, options: Pick<IdxWriteOptions, 'type'> = {}): Uint8Array {
  const name = options.type ?? TYPE_OF_DTYPE[x.dtype]
  const type = TYPES[name]
  if (type === undefined) throw invalidArgument('encodeIdx', `a type of ${Object.keys(TYPES).join(', ')}`, name)
  if (x.ndim > NDIM_MAX) throw invalidArgument('encodeIdx', `at most ${NDIM_MAX} dimensions`, x.ndim)
  if (type.dtype === 'int32' && (x.dtype === 'float32' || x.dtype === 'float64')) {
    throw dtypeMismatch('encodeIdx', `an int32 or bool tensor for type ${name}`, x.dtype, "Round and convert it: x.to('int32').")
  }
  const out = new Uint8Array(MAGIC_BYTES + x.ndim * EXTENT_BYTES + x.numel * type.bytes)
  const view = viewOf(out)
  view.setUint8(2, type.code)
  view.setUint8(3, x.ndim)
  let at = MAGIC_BYTES
  for (const extent of x.shape) {
    view.setUint32(at, extent)
    at += EXTENT_BYTES
  }
  for (const value of x.dataSync()) {
    if (value < type.min || value > type.max) {
      throw new PostgradError('IDX_OUT_OF_RANGE', {
        op: 'encodeIdx',
        expected: `values in ${type.min} … ${type.max} for type ${name}`,
        got: String(value),
        remedy: 'Pass a type that holds them.',
        values: { value, type: name },
      })
    }
    type.set(view, at, value)
    at += type.bytes
  }
  return out
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const REMEDY = 'The file is damaged, incomplete, or not an IDX file.'

function invalid(expected: string, got: string, cause?: unknown): PostgradError {
  return new PostgradError('IDX_INVALID', { op: 'decodeIdx', expected, got, remedy: REMEDY, cause })
}
