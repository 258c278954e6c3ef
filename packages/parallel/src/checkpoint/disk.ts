/**
 * Where checkpoints lie: the little of a file system that they need, so that a worker of a simulation, where nothing real can be waited for, has one too.
 * Each worker has its own, the machine's unless `useCheckpointDisk` says otherwise.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
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
  /** What was at `path` stays there until the commit. */
  create(path: string): Promise<DiskFile>
  /** From the beginning to the end. */
  read(path: string): AsyncIterable<Uint8Array>
  /** What `openSafetensors` takes. */
  source(path: string): Promise<string | Uint8Array>
  /** The names in a directory, in any order; none when it is not there. */
  list(path: string): Promise<string[]>
  /** A file or a directory with all in it. */
  remove(path: string): Promise<void>
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
    const temporary = path + TEMPORARY
    const handle = await open(temporary, 'w')
    return {
      async write(bytes) {
        for (let done = 0; done < bytes.length; ) done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten
      },
      async commit() {
        await handle.sync()
        await handle.close()
        await rename(temporary, path)
        await syncDirectory(dirname(path))
      },
      async abort() {
        await handle.close()
        await rm(temporary, { force: true })
      },
    }
  },
  async *read(path) {
    const handle = await open(path, 'r')
    try {
      for (;;) {
        const { bytesRead, buffer } = await handle.read(new Uint8Array(READ_BYTES), 0, READ_BYTES, null)
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
      }
    } finally {
      await handle.close()
    }
  },
  source: async (path) => path,
  list: async (path) => await readdir(path).catch(noneIfAbsent),
  remove: (path) => rm(path, { recursive: true, force: true }),
}

/** The same files, each call done when it returns: for simulations, whose order of events must not hang on the machine's. */
export const syncDisk: CheckpointDisk = {
  async makeDirectory(path) {
    mkdirSync(path, { recursive: true })
  },
  async create(path) {
    const temporary = path + TEMPORARY
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
        rmSync(temporary, { force: true })
      },
    }
  },
  async *read(path) {
    yield readFileSync(path)
  },
  source: async (path) => readFileSync(path),
  async list(path) {
    try {
      return readdirSync(path)
    } catch (error) {
      return noneIfAbsent(error)
    }
  },
  async remove(path) {
    rmSync(path, { recursive: true, force: true })
  },
}

function noneIfAbsent(error: unknown): string[] {
  if ((error as { code?: unknown }).code === 'ENOENT') return []
  throw error
}

/** Makes new names last; some systems cannot, and there the files themselves are safe all the same. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r').catch(() => null)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
