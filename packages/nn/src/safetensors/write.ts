/**
 * Writes safetensors, byte for byte as the reference implementation does: tensors by falling alignment, then by name; the header padded with spaces
 * to a multiple of 8. Python: `safetensors.torch.save_file`, `save`.
 */
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { endianness } from 'node:os'
import { dirname } from 'node:path'
import { threadId } from 'node:worker_threads'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { type DType, isTensor, type Tensor } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, byteSize, invalidArgument, numelOf, type Storage } from '@postgrad/tensor/internal'
import type { StateDict } from '../module/module.js'
import { FILE_DTYPES } from './convert.js'
import { HEADER_BYTES_MAX, LONE_SURROGATE, METADATA, PREFIX_BYTES } from './header.js'
import { ioFailure, pathOf } from './read.js'

/** Options of `saveSafetensors` and `safetensorsBytes`. */
export interface SaveSafetensorsOptions {
  /** Texts by name, which the file contains. Some readers of models from PyTorch require `{ format: 'pt' }`. */
  readonly metadata?: Readonly<Record<string, string>>
}

/**
 * Writes tensors to a file, such as those of `model.stateDict()`. float32 becomes F32, float64 F64, int32 I32, and bool BOOL. A view is written as its own
 * elements. The file appears whole or not at all: it is written next to `path`, synced, and then replaces the old one. One tensor is copied at a time, so do
 * not change tensors until the promise resolves. PyTorch: `save_file` of the package safetensors.
 * @throws INVALID_ARGUMENT if an argument is not valid; SAFETENSORS_CHANGED if the program wrote to a tensor meanwhile; SAFETENSORS_IO if the file cannot be
 * written. A file at `path` does not change then
 * @example await saveSafetensors('model.safetensors', new Linear(2, 1).stateDict())
 */
export async function saveSafetensors(
  path: string | URL,
  tensors: Readonly<StateDict>,
  options: SaveSafetensorsOptions = {},
): Promise<void> {
  const name = pathOf('saveSafetensors', path)
  const plan = planOf(tensors, options)
  const [handle, temporary] = await openBeside(name)
  try {
    try {
      for await (const bytes of chunksOf(plan)) await writeWhole(handle, bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, name)
  } catch (error) {
    await unlink(temporary).catch(() => {}) // The first error is the one to report.
    throw isPostgradError(error) ? error : ioFailure('write', name, error)
  }
  await syncDirectory(dirname(name))
}

/**
 * Returns the bytes that `saveSafetensors` would write. @throws INVALID_ARGUMENT if an argument is not valid; SAFETENSORS_CHANGED if the program wrote to a
 * tensor meanwhile
 * @example
 * const bytes = await safetensorsBytes({ w: tensor([1, 2]) })
 * const { w } = await loadSafetensors(bytes)
 * w! // [1, 2]
 */
export async function safetensorsBytes(tensors: Readonly<StateDict>, options: SaveSafetensorsOptions = {}): Promise<Uint8Array> {
  const plan = planOf(tensors, options)
  const out = new Uint8Array(plan.order.reduce((sum, tensor) => sum + byteSize(tensor), plan.head.length))
  let at = 0
  for await (const bytes of chunksOf(plan)) {
    out.set(bytes, at)
    at += bytes.length
  }
  return out
}

/**
 * The same bytes one after the other, for a caller that writes them elsewhere, and how many they are.
 * @param versions of the storages at an earlier moment, whose state is wanted
 * @throws INVALID_ARGUMENT; SAFETENSORS_CHANGED when a tensor was written to since that moment (the iterator at its end, too)
 */
export function safetensorsChunks(
  tensors: Readonly<StateDict>,
  options: SaveSafetensorsOptions = {},
  versions?: ReadonlyMap<Storage, number>,
): { readonly size: number; readonly chunks: AsyncIterable<Uint8Array> } {
  const plan = planOf(tensors, options)
  const wanted =
    versions === undefined ? plan : { ...plan, versions: plan.order.map(({ storage }) => versions.get(storage) ?? storage.version) }
  checkUnchanged(wanted)
  return { size: plan.order.reduce((sum, tensor) => sum + byteSize(tensor), plan.head.length), chunks: chunksOf(wanted) }
}

async function* chunksOf(plan: Plan): AsyncGenerator<Uint8Array> {
  yield plan.head
  for (const tensor of plan.order) yield bytesOf(await tensor.data())
  checkUnchanged(plan)
}

/** The content: the header with its length, then the tensors in order. */
interface Plan {
  readonly head: Uint8Array
  readonly order: readonly Tensor[]
  /** The storages' versions at the beginning. */
  readonly versions: readonly number[]
}

const STATE_DICT = 'Pass model.stateDict(), or tensors by name.'
const ALIGNMENT = Object.keys(FILE_DTYPES)

function planOf(tensors: Readonly<StateDict>, options: SaveSafetensorsOptions): Plan {
  const op = 'saveSafetensors'
  if (typeof tensors !== 'object' || tensors === null) {
    throw invalidArgument(op, 'tensors by name', tensors === null ? 'null' : typeof tensors, STATE_DICT)
  }
  const entries = Object.entries(tensors)
  for (const [name, tensor] of entries) {
    if (!isTensor(tensor)) throw invalidArgument(op, `a tensor as '${name}'`, typeof tensor, STATE_DICT)
  }
  const { head, order } = safetensorsHead(
    op,
    entries.map(([name, { dtype, shape }]) => ({ name, dtype, shape })),
    options,
  )
  const inOrder = order.map((name) => tensors[name]!)
  return { head, order: inOrder, versions: inOrder.map(({ storage }) => storage.version) }
}

/** A tensor of a file, without its elements. */
export interface TensorInfo {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
}

/**
 * The first bytes of a file with these tensors, and the order in which the elements of the tensors follow them, for a caller that does not have all tensors at once.
 * @throws INVALID_ARGUMENT
 */
export function safetensorsHead(
  op: string,
  infos: readonly TensorInfo[],
  { metadata }: SaveSafetensorsOptions,
): { readonly head: Uint8Array; readonly order: readonly string[] } {
  if (endianness() !== 'LE') throw invalidArgument(op, 'a little-endian machine', endianness())
  for (const { name } of infos) {
    if (name === METADATA || LONE_SURROGATE.test(name)) {
      throw invalidArgument(op, `names of whole characters other than ${METADATA}`, JSON.stringify(name), 'Rename the tensor.')
    }
  }
  for (const [name, value] of Object.entries(metadata ?? {})) {
    if (typeof value === 'string' && !LONE_SURROGATE.test(name + value)) continue
    throw invalidArgument(op, `text as metadata '${name}'`, typeof value, 'Turn it into text, for example by JSON.stringify().')
  }
  // Names by their UTF-8 bytes, which is another order than that of UTF-16.
  const sorted = [...infos].sort(
    (a, b) => ALIGNMENT.indexOf(a.dtype) - ALIGNMENT.indexOf(b.dtype) || Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  )
  const parts = metadata === undefined ? [] : [`${JSON.stringify(METADATA)}:${JSON.stringify(metadata)}`]
  let end = 0
  for (const { name, dtype, shape } of sorted) {
    const begin = end
    end += numelOf(shape) * BYTES_PER_ELEMENT[dtype]
    const info = { dtype: FILE_DTYPES[dtype], shape, data_offsets: [begin, end] }
    parts.push(`${JSON.stringify(name)}:${JSON.stringify(info)}`)
  }
  const header = Buffer.from(`{${parts.join(',')}}`)
  const length = Math.ceil(header.length / PREFIX_BYTES) * PREFIX_BYTES
  if (length > HEADER_BYTES_MAX) throw invalidArgument(op, `a header of at most ${HEADER_BYTES_MAX} bytes`, length, 'Save several files.')
  const head = new Uint8Array(PREFIX_BYTES + length).fill(0x20)
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true)
  head.set(header, PREFIX_BYTES)
  return { head, order: sorted.map(({ name }) => name) }
}

/** Between two awaits a step of the training may have come: half of its weights would be worse than none. */
function checkUnchanged({ order, versions }: Plan): void {
  if (order.some(({ storage }, i) => storage.version !== versions[i])) throw safetensorsChanged()
}

export function safetensorsChanged(): PostgradError {
  return new PostgradError('SAFETENSORS_CHANGED', {
    op: 'saveSafetensors',
    expected: 'tensors that stay unchanged during the save',
    got: 'one that was written to',
    remedy: 'Await the save before the next step, or save clones.',
  })
}

function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

async function writeWhole(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten
}

/** A new file in the same folder, so that it can be renamed; several savers do not meet in it. */
async function openBeside(path: string): Promise<[FileHandle, temporary: string]> {
  for (let attempt = 0; ; attempt++) {
    const temporary = `${path}.${process.pid}-${threadId}-${attempt}.tmp`
    try {
      return [await open(temporary, 'wx'), temporary]
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EEXIST' || attempt >= 99) throw ioFailure('write', path, error)
    }
  }
}

/** Makes the new name last; some systems cannot, and there the file itself is safe all the same. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r').catch(() => null)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
