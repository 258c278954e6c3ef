/**
 * Reads safetensors: first the header, which is checked whole; then each tensor when it is asked for, straight into its storage.
 * Python: `safetensors.torch.load_file`, `safetensors.safe_open`.
 */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { endianness } from 'node:os'
import { fileURLToPath } from 'node:url'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { DETACHED, isDetached, tooManyOpenFiles } from '@postgrad/base/internal'
import type { Device, DeviceSpec } from '@postgrad/tensor'
import { CPU, invalidArgument, Tensor, writeElements } from '@postgrad/tensor/internal'
import type { StateDict } from '../module/module.js'
import { CONVERSIONS } from './convert.js'
import {
  ELEMENT_BYTES,
  headerLength,
  invalid,
  isReadable,
  PREFIX_BYTES,
  parseHeader,
  type SafetensorsHeader,
  type SafetensorsInfo,
  unsupportedDType,
} from './header.js'

/** Options of `SafetensorsFile.tensor`. */
export interface SafetensorsOptions {
  /**
   * Whether to convert dtypes that postgrad does not have; default true. F16 and BF16 become float32, and U8, I8, U16, I16 int32, all exactly. U32, I64 and U64
   * become int32 if every value fits. If false, such a tensor fails with SAFETENSORS_UNSUPPORTED.
   */
  readonly convert?: boolean
  /** The device of the tensors; default the memory of this process. PyTorch: `load_file(…, device)`, `map_location`. @throws DEVICE_UNKNOWN if the device is unknown */
  readonly device?: Device | DeviceSpec
}

/** Options of `loadSafetensors`. */
export interface LoadSafetensorsOptions extends SafetensorsOptions {
  /** The names of the tensors to load; default all. */
  readonly names?: readonly string[]
}

/** Where bytes come from. */
interface ByteSource {
  /** The file's; null: bytes in memory. */
  readonly path: string | null
  readonly size: number
  /** Fills `into` from byte `position` on. */
  read(into: Uint8Array, position: number): Promise<void>
  close(): Promise<void>
}

/** How much is read at once, in bytes; a multiple of every element's size. It is still in the cache when it is converted. */
const CHUNK_BYTES = 1 << 18

/**
 * An open safetensors file. No program may write to the file while you read it. Close it at the end, or declare it with `await using`.
 * @example
 * await using file = await openSafetensors('model.safetensors')
 * const weight = await file.tensor('encoder.weight')
 */
export class SafetensorsFile {
  /** The metadata of the file: texts by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** The description of each tensor in the file, by name, in the order of their bytes. */
  readonly tensors: ReadonlyMap<string, SafetensorsInfo>
  private readonly source: ByteSource
  private readonly dataStart: number
  private closed = false

  /** @internal */
  constructor(source: ByteSource, header: SafetensorsHeader, dataStart: number) {
    this.metadata = header.metadata
    this.tensors = header.tensors
    this.source = source
    this.dataStart = dataStart
  }

  /**
   * Reads one tensor. The result does not require grad.
   * @throws SAFETENSORS_NOT_FOUND if the file does not have the tensor; SAFETENSORS_CLOSED if the file was closed; SAFETENSORS_UNSUPPORTED if postgrad does not
   * read the dtype, or it needs `convert: true`; SAFETENSORS_RANGE if an integer does not fit into int32; SAFETENSORS_INVALID if the file has become shorter,
   * or a BOOL is neither 0 nor 1; SAFETENSORS_IO if the file cannot be read
   */
  async tensor(name: string, options: SafetensorsOptions = {}): Promise<Tensor> {
    return await this.read(name, options).catch((error: unknown) => Promise.reject(ofFile(error, this.source.path)))
  }

  private async read(name: string, { convert = true, device = 'cpu' }: SafetensorsOptions): Promise<Tensor> {
    if (this.closed) throw failure('SAFETENSORS_CLOSED', 'an open file', 'one that was closed', 'Read before close().')
    const info = this.tensors.get(name)
    if (info === undefined) {
      throw failure(
        'SAFETENSORS_NOT_FOUND',
        `one of the file's ${this.tensors.size} tensors`,
        `'${name}'`,
        'See the names in file.tensors.',
      )
    }
    if (!isReadable(info.dtype)) throw unsupportedDType(name, info.dtype)
    const conversion = CONVERSIONS[info.dtype]
    if (!convert && !conversion.native) {
      const expected = `a dtype that exists here for '${name}' (F32, F64, I32, BOOL)`
      throw failure('SAFETENSORS_UNSUPPORTED', expected, info.dtype, 'Leave convert: false out, or convert before saving.')
    }
    const out = Tensor.uninitialized(conversion.dtype, info.shape, CPU)
    const size = ELEMENT_BYTES[info.dtype]
    const bytes = new ArrayBuffer(Math.min(CHUNK_BYTES, info.dataOffsets[1] - info.dataOffsets[0]))
    const perChunk = bytes.byteLength / size
    for (let done = 0; done < out.numel; done += perChunk) {
      const count = Math.min(perChunk, out.numel - done)
      await this.source.read(new Uint8Array(bytes, 0, count * size), this.dataStart + info.dataOffsets[0] + done * size)
      writeElements(out, conversion.decode(bytes, count, name), 0, count, done)
    }
    return out.to(device)
  }

  /** Closes the file. A second call does nothing. */
  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    await this.source.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/**
 * Opens a file, or bytes in memory, and checks the header. Bytes are not copied, so do not write to them. A tensor whose dtype postgrad does not read (F8_E4M3,
 * F4, C64, …) fails only when it is read.
 * @throws INVALID_ARGUMENT if `source` is not valid; SAFETENSORS_INVALID if the header is not valid; SAFETENSORS_UNSUPPORTED on a big-endian machine;
 * SAFETENSORS_IO if the file cannot be read (its cause says why)
 * @example
 * await using file = await openSafetensors('model.safetensors')
 * for (const [name, { shape }] of file.tensors) console.log(name, shape)
 */
export async function openSafetensors(source: string | URL | Uint8Array): Promise<SafetensorsFile> {
  // Typed arrays have the machine's order of bytes, files the little one.
  if (endianness() !== 'LE') throw failure('SAFETENSORS_UNSUPPORTED', 'a little-endian machine', endianness(), 'Use another machine.')
  const opened = ArrayBuffer.isView(source) ? bytesSource(source) : await fileSource(source)
  try {
    const prefix = new Uint8Array(Math.min(PREFIX_BYTES, opened.size))
    await opened.read(prefix, 0)
    const length = headerLength(prefix, opened.size)
    const header = new Uint8Array(length)
    await opened.read(header, PREFIX_BYTES)
    const dataStart = PREFIX_BYTES + length
    return new SafetensorsFile(opened, parseHeader(header, opened.size - dataStart), dataStart)
  } catch (error) {
    await opened.close()
    throw ofFile(error, opened.path)
  }
}

/**
 * Reads all tensors of a file, or of bytes in memory, by name, for `module.loadStateDict`. The bytes are read directly into the storage of the tensors.
 * PyTorch: `load_file` of the package safetensors.
 * @throws the errors of `openSafetensors` and of `SafetensorsFile.tensor`
 * @example
 * const model = new Linear(2, 1)
 * model.loadStateDict(await loadSafetensors('model.safetensors'))
 */
export async function loadSafetensors(source: string | URL | Uint8Array, options: LoadSafetensorsOptions = {}): Promise<StateDict> {
  const file = await openSafetensors(source)
  try {
    const found: [string, Tensor][] = []
    for (const name of options.names ?? file.tensors.keys()) found.push([name, await file.tensor(name, options)])
    return Object.fromEntries(found)
  } finally {
    await file.close()
  }
}

/** @throws INVALID_ARGUMENT */
function bytesSource(bytes: Uint8Array): ByteSource {
  if (isDetached(bytes)) throw invalidArgument('safetensors', 'the bytes of a file', DETACHED.got, DETACHED.remedy)
  return {
    path: null,
    size: bytes.byteLength,
    async read(into, position) {
      into.set(bytes.subarray(position, position + into.length))
    },
    async close() {},
  }
}

async function fileSource(path: string | URL): Promise<ByteSource> {
  const name = pathOf('loadSafetensors', path)
  let handle: FileHandle | undefined
  try {
    // The opening of a pipe would wait for a writer. A folder says itself what it is.
    const found = await stat(name)
    if (!found.isFile() && !found.isDirectory()) throw new Error('it is a pipe or a device, and no file')
    handle = await open(name, 'r')
    const { size } = await handle.stat()
    return { path: name, size, read: (into, position) => readWhole(handle!, name, into, position), close: () => handle!.close() }
  } catch (error) {
    await handle?.close()
    throw ioFailure('read', name, error)
  }
}

/** @throws INVALID_ARGUMENT */
export function pathOf(op: string, path: string | URL): string {
  if (typeof path === 'string') return path
  if (path instanceof URL && path.protocol === 'file:') return fileURLToPath(path)
  throw invalidArgument(op, 'a path, or a file: URL', path instanceof URL ? path.href : typeof path)
}

async function readWhole(handle: FileHandle, name: string, into: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < into.length) {
    const { bytesRead } = await handle.read(into, done, into.length - done, position + done).catch((error: unknown) => {
      throw ioFailure('read', name, error)
    })
    // `ofFile` adds the path.
    if (bytesRead === 0) throw invalid(`byte ${position + done}`, 'the end of the file: it has become shorter since it was opened')
    done += bytesRead
  }
}

/** Adds the file's path to an error of it. */
function ofFile(error: unknown, path: string | null): unknown {
  if (path === null || !isPostgradError(error) || !error.code.startsWith('SAFETENSORS_') || 'path' in error.values) return error
  const { code, op, message, remedy = '', values, cause } = error
  const what = message.slice(`${op}: `.length, message.length - remedy.length).trimEnd()
  return new PostgradError(code, { op, message: `'${path}': ${what}`, remedy, values: { ...values, path }, cause })
}

function failure(code: string, expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError(code, { op: 'safetensors', expected, got, remedy })
}

export function ioFailure(what: 'read' | 'write', path: string, cause: unknown): PostgradError {
  return new PostgradError('SAFETENSORS_IO', {
    op: 'safetensors',
    message: `cannot ${what} '${path}': ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: tooManyOpenFiles('safetensors', cause)?.remedy ?? 'See the cause.',
    cause,
    values: { path },
  })
}
