/**
 * The disk of checkpoints: the few file operations that they need, so that a worker of a simulation, which cannot wait for real files, has one too.
 * Each worker has its own: the machine's, unless `useCheckpointDisk` sets another.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { mkdir, open, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { builtin } from '@postgrad/base/internal'
import type { WorkerRuntime } from '@postgrad/rpc/internal'

/** A file that is being written, under another name. */
export interface DiskFile {
  write(bytes: Uint8Array): Promise<void>
  /** Lasts when it resolves: the file is whole, synced, and has its name. */
  commit(): Promise<void>
  /** It never was. */
  abort(): Promise<void>
}

export interface CheckpointDisk {
  makeDirectory(path: string): Promise<void>
  /** A file at `path` stays there until the commit. */
  create(path: string): Promise<DiskFile>
  /** From the beginning to the end, or so many bytes. */
  read(path: string, bytesMax: number): AsyncIterable<Uint8Array>
  /** Of a file, in bytes; null when there is none, or something else of that name, such as a device. */
  size(path: string): Promise<number | null>
  /** For `openSafetensors`. */
  source(path: string): Promise<string | Uint8Array>
  /** The names in a directory, in any order; none when it is not there. */
  list(path: string): Promise<string[]>
  /** A file. */
  remove(path: string): Promise<void>
  /** A directory, unless something is in it. */
  removeEmpty(path: string): Promise<void>
}

/** Names that are not whole files yet end so; a crash may leave them. */
export const TEMPORARY = '.tmp'
const READ_BYTES = 1 << 20

const SLOT = Symbol('postgrad.checkpointDisk')

export function checkpointDiskOf(worker: WorkerRuntime): CheckpointDisk {
  return worker.slot(SLOT, () => fileDisk)
}

/** Before the worker's first checkpoint. */
export function useCheckpointDisk(worker: WorkerRuntime, disk: CheckpointDisk): void {
  worker.slot(SLOT, () => disk)
}

/** The machine's files. */
export const fileDisk: CheckpointDisk = {
  async makeDirectory(path) {
    await mkdir(path, { recursive: true })
    await syncDirectory(dirname(path))
  },
  async create(path) {
    const temporary = temporaryOf(path)
    const handle = await open(temporary, 'w')
    return {
      async write(bytes) {
        for (let done = 0; done < bytes.length; ) done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten
      },
      async commit() {
        try {
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(temporary, path)
        await syncDirectory(dirname(path))
      },
      async abort() {
        await handle.close()
        await unlink(temporary).catch(unlessGone)
      },
    }
  },
  async *read(path, bytesMax) {
    const handle = await open(path, 'r')
    try {
      for (let left = bytesMax; left > 0; ) {
        const length = Math.min(left, READ_BYTES)
        const { bytesRead, buffer } = await handle.read(new Uint8Array(length), 0, length, null)
        if (bytesRead === 0) return
        left -= bytesRead
        yield buffer.subarray(0, bytesRead)
      }
    } finally {
      await handle.close()
    }
  },
  size: async (path) => await stat(path).then(sizeOf, unlessGone),
  source: async (path) => path,
  list: async (path) => (await readdir(path).catch(unlessGone)) ?? [],
  async remove(path) {
    await unlink(path).catch(unlessGone)
  },
  async removeEmpty(path) {
    await rmdir(path).catch(unlessInUse)
  },
}

/** The same files, each call done when it returns: for simulations, whose order of events must not hang on the machine's. */
export const syncDisk: CheckpointDisk = {
  async makeDirectory(path) {
    mkdirSync(path, { recursive: true })
  },
  async create(path) {
    const temporary = temporaryOf(path)
    const file = openSync(temporary, 'w')
    return {
      async write(bytes) {
        for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done)
      },
      async commit() {
        fsyncSync(file)
        closeSync(file)
        renameSync(temporary, path)
      },
      async abort() {
        closeSync(file)
        unlinkSync(temporary)
      },
    }
  },
  async *read(path, bytesMax) {
    const bytes = new Uint8Array(bytesMax)
    const file = openSync(path, 'r')
    let done = 0
    try {
      for (let read = 1; read > 0 && done < bytesMax; done += read) read = readSync(file, bytes, done, bytesMax - done, null)
    } finally {
      closeSync(file)
    }
    yield bytes.subarray(0, done)
  },
  async size(path) {
    try {
      return sizeOf(statSync(path))
    } catch (error) {
      return unlessGone(error)
    }
  },
  source: async (path) => readFileSync(path),
  async list(path) {
    try {
      return readdirSync(path)
    } catch (error) {
      return unlessGone(error) ?? []
    }
  },
  async remove(path) {
    try {
      unlinkSync(path)
    } catch (error) {
      unlessGone(error)
    }
  },
  async removeEmpty(path) {
    try {
      rmdirSync(path)
    } catch (error) {
      unlessInUse(error)
    }
  },
}

const sizeOf = (found: Stats): number | null => (found.isFile() ? found.size : null)

/** Another process may have removed it, and only a directory has entries. */
function unlessGone(error: unknown): null {
  if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return null
  throw error
}

/** ENOTDIR: also for a link to a directory. */
function unlessInUse(error: unknown): void {
  if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error
}

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code)

/** Two processes may write one manifest at a time. */
function temporaryOf(path: string): string {
  return `${path}.${builtin<typeof import('node:crypto')>('node:crypto').randomBytes(6).toString('hex')}${TEMPORARY}`
}

/** Makes new names last; some systems cannot, and there the files themselves are safe all the same. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r').catch(() => null)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
