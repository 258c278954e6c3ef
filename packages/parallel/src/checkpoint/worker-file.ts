/** A worker's side of a save: writes the capture of `capture.ts` into two files, one for the tensors and one for everything else. `checkpoints.ts` calls it on each worker. */
import { join } from 'node:path'
import { safetensorsChunks } from '@postgrad/nn/internal'
import { expose } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { captureOf } from './capture.js'
import { checkpointDiskOf } from './disk.js'
import { type FileInfo, type fileNames, sha256, type WorkerFiles } from './manifest.js'

/** How far the writing is. */
export interface Written {
  readonly bytes: number
  /** Of `bytes`. */
  readonly written: number
  /** Of the last item. */
  readonly files: WorkerFiles | null
}

/** So many bytes are written between two items of the stream. */
const PROGRESS_BYTES = 1 << 24

/** Writes this worker's files, and says how far it is. @throws SAFETENSORS_CHANGED when a tensor was written to since the call of the save */
async function* write(token: bigint, directory: string, names: ReturnType<typeof fileNames>): AsyncGenerator<Written> {
  const { lines, tensors, versions, values } = captureOf(token)
  const { size, chunks } = safetensorsChunks(Object.fromEntries(tensors), {}, versions)
  const bytes = lines.reduce((sum, line) => sum + line.length, size)
  const infos: FileInfo[] = []
  let before = 0
  for (const [name, all] of [
    [names.state, lines],
    [names.tensors, chunks],
  ] as const) {
    for await (const step of writeFile(directory, name, all)) {
      if (typeof step === 'number') yield { bytes, written: before + step, files: null }
      else {
        infos.push(step)
        before += step.bytes
      }
    }
  }
  const [state, file] = infos as [FileInfo, FileInfo]
  yield { bytes, written: bytes, files: { tensors: file, state, values } }
}

/** Writes one file; gives now and then how many bytes of it are written, and what it is at its end. */
async function* writeFile(
  directory: string,
  name: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<number | FileInfo> {
  const file = await checkpointDiskOf(currentRuntime()).create(join(directory, name))
  const hash = sha256()
  let [written, told] = [0, 0]
  let isWhole = false
  try {
    for await (const bytes of chunks) {
      for (let at = 0; at < bytes.length; at += PROGRESS_BYTES) {
        const piece = bytes.subarray(at, at + PROGRESS_BYTES)
        hash.update(piece)
        await file.write(piece)
        written += piece.length
        if (written - told < PROGRESS_BYTES) continue
        told = written
        yield written
      }
    }
    isWhole = true
  } finally {
    // Also where nobody takes the next item any more: the save was cancelled, or its caller died.
    if (!isWhole) await file.abort()
  }
  await file.commit()
  yield { file: name, bytes: written, sha256: hash.digest('hex') }
}

export const workerFile = { write } as const
expose({ 'postgrad.checkpoint.write': write })
