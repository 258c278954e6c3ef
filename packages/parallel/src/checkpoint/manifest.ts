/**
 * The manifest of a checkpoint: written last, so that a checkpoint is there when its manifest is, and names every file with its length and hash. Names in the
 * directory:
 *
 *     checkpoints/step-000000000120/worker0.1-0.safetensors     one per worker; 1: the attempt, so that a second one of a step overwrites nothing; 0: an id, so that
 *                                   worker1.1-0.safetensors     two of one number share nothing
 *                                   manifest.json               last
 */
import { join } from 'node:path'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import type { CheckpointDisk } from './disk.js'

export interface WorkerFile {
  readonly file: string
  readonly bytes: number
  /** Of the file's bytes, in hexadecimal digits. */
  readonly sha256: string
}

export interface Manifest {
  readonly format: 'postgrad checkpoint'
  readonly version: 1
  readonly step: number
  /** Names of what was saved. */
  readonly parts: readonly string[]
  /** By worker. */
  readonly workers: Readonly<Record<string, WorkerFile>>
}

export const MANIFEST = 'manifest.json'
const STEP_DIGITS = 12
const STEP_NAME = /^step-(\d{12,15})$/

export function stepDirectory(directory: string, step: number): string {
  return join(directory, `step-${String(step).padStart(STEP_DIGITS, '0')}`)
}

export function stepOf(name: string): number | null {
  const digits = STEP_NAME.exec(name)?.[1]
  return digits === undefined ? null : Number(digits)
}

/** How often a step was tried to be saved, as far as its files tell. */
export function attemptsIn(names: readonly string[]): number {
  return Math.max(0, ...names.map((name) => Number(/\.(\d{1,9})(?:-[0-9a-z]+)?\.safetensors/.exec(name)?.[1] ?? 0)))
}

export async function writeManifest(disk: CheckpointDisk, directory: string, manifest: Manifest): Promise<void> {
  const file = await disk.create(join(directory, MANIFEST))
  await file.write(Buffer.from(`${JSON.stringify({ ...manifest, sha256: hashOf(manifest) }, null, 1)}\n`))
  await file.commit()
}

/** @throws CHECKPOINT_NOT_FOUND when there is none, CHECKPOINT_CORRUPT */
export async function readManifest(disk: CheckpointDisk, directory: string): Promise<Manifest> {
  const path = join(directory, MANIFEST)
  if (!(await disk.list(directory)).includes(MANIFEST)) {
    throw new PostgradError('CHECKPOINT_NOT_FOUND', {
      op: 'checkpoint',
      expected: `a complete checkpoint in '${directory}'`,
      got: 'none, or one whose saving did not come to its end',
      remedy: 'See list() for those that are there.',
      values: { directory },
    })
  }
  const parts: Uint8Array[] = []
  for await (const bytes of disk.read(path)) parts.push(bytes)
  let found: unknown
  try {
    found = JSON.parse(Buffer.concat(parts).toString('utf8'))
  } catch (cause) {
    throw corrupt(path, 'a manifest in JSON', 'something else', cause)
  }
  const { sha256, ...manifest } = (found ?? {}) as Manifest & { sha256?: unknown }
  if (manifest.format !== 'postgrad checkpoint' || manifest.version !== 1) throw corrupt(path, 'a manifest of version 1', 'something else')
  if (sha256 !== hashOf(manifest)) throw corrupt(path, 'a manifest as it was written', 'one that was changed')
  return manifest
}

/** The same, null for what is none. */
export async function manifestIfAny(disk: CheckpointDisk, directory: string): Promise<Manifest | null> {
  try {
    return await readManifest(disk, directory)
  } catch (error) {
    if (isPostgradError(error, 'CHECKPOINT_NOT_FOUND') || isPostgradError(error, 'CHECKPOINT_CORRUPT')) return null
    throw error
  }
}

export function corrupt(path: string, expected: string, got: string, cause?: unknown): PostgradError {
  return new PostgradError('CHECKPOINT_CORRUPT', {
    op: 'checkpoint',
    expected: `${expected} in '${path}'`,
    got,
    remedy: 'Load an earlier checkpoint, and look at the disk.',
    values: { path },
    ...(cause === undefined ? {} : { cause }),
  })
}

function hashOf(manifest: object): string {
  return sha256().update(JSON.stringify(manifest)).digest('hex')
}

/** A hash to which bytes can be added. */
export function sha256(): ReturnType<typeof import('node:crypto').createHash> {
  return builtin<typeof import('node:crypto')>('node:crypto').createHash('sha256')
}
