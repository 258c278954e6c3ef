/**
 * The manifest of a checkpoint names every file with its length and hash. It is written last, so a checkpoint with a manifest is complete. Names in the
 * directory:
 *
 *     checkpoints/step-000000000120/worker0.k3v9….safetensors     the tensors of a worker; k3v9…: of this attempt alone, over all runs
 *                                   worker0.k3v9….state           everything else that it has (`state-lines.ts`)
 *                                   worker1.k3v9….safetensors
 *                                   worker1.k3v9….state
 *                                   manifest.json                 last
 *
 * Version 1, which is only read, had `worker0.1-0.safetensors` alone (`version-1.ts`).
 */
import { join } from 'node:path'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import type { CheckpointDisk } from './disk.js'
import { corrupt } from './errors.js'

export interface FileInfo {
  readonly file: string
  readonly bytes: number
  /** Of the file's bytes, in hexadecimal digits. */
  readonly sha256: string
}

export interface WorkerFiles {
  readonly tensors: FileInfo
  /** None in version 1. */
  readonly state: FileInfo | null
  /** Keys of the values that a load returns; null in version 1. */
  readonly values: readonly string[] | null
}

export interface Manifest {
  readonly format: 'postgrad checkpoint'
  readonly version: 1 | 2
  readonly step: number
  /** Names of what was saved. */
  readonly parts: readonly string[]
  /** By worker. */
  readonly workers: Readonly<Record<string, WorkerFiles>>
}

export const MANIFEST = 'manifest.json'
/** No manifest is so large, in bytes: it has some 400 a worker. */
const MANIFEST_BYTES_MAX = 1 << 28
const VERSION = 2
const STEP_DIGITS = 12
const STEP_NAME = /^step-(\d{12,15})$/

export function stepDirectory(directory: string, step: number): string {
  return join(directory, `step-${String(step).padStart(STEP_DIGITS, '0')}`)
}

export function stepOf(name: string): number | null {
  const digits = STEP_NAME.exec(name)?.[1]
  return digits === undefined ? null : Number(digits)
}

/** Text that no other attempt of any run has. */
export function newAttempt(): string {
  return builtin<typeof import('node:crypto')>('node:crypto').randomBytes(10).toString('hex')
}

/** The files of a worker, named for an attempt. */
export function fileNames(worker: string, attempt: string): { readonly tensors: string; readonly state: string } {
  const name = `${encodeURIComponent(worker)}.${attempt}`
  return { tensors: `${name}.safetensors`, state: `${name}.state` }
}

/** Whether a save has given a file this name, also in version 1, and also one that is not finished: nothing else is ever removed. */
export function isOurs(name: string): boolean {
  return /^(?:[^/]+\.(?:[0-9a-f]{20}\.(?:safetensors|state)|\d{1,9}(?:-[0-9a-z]+)?\.safetensors)|manifest\.json)(?:\.[0-9a-f]+)?(?:\.tmp)?$/.test(
    name,
  )
}

export function filesOf({ workers }: Manifest): FileInfo[] {
  return Object.values(workers).flatMap(({ tensors, state }) => (state === null ? [tensors] : [tensors, state]))
}

export async function writeManifest(
  disk: CheckpointDisk,
  directory: string,
  manifest: Omit<Manifest, 'format' | 'version'>,
): Promise<Manifest> {
  const whole: Manifest = { format: 'postgrad checkpoint', version: VERSION, ...manifest }
  const file = await disk.create(join(directory, MANIFEST))
  try {
    await file.write(Buffer.from(`${JSON.stringify({ ...whole, sha256: hashOf(whole) }, null, 1)}\n`))
  } catch (error) {
    await file.abort().catch(() => {})
    throw error
  }
  await file.commit()
  return whole
}

/** @throws CHECKPOINT_NOT_FOUND when there is none, CHECKPOINT_CORRUPT, CHECKPOINT_UNSUPPORTED (a later version wrote it) */
export async function readManifest(disk: CheckpointDisk, directory: string, step: number): Promise<Manifest> {
  const path = join(directory, MANIFEST)
  const found = await readJson(disk, path)
  if (found === null) throw notFound(directory)
  const { sha256, ...manifest } = (found.value ?? {}) as Manifest & { sha256?: unknown }
  if (manifest.format !== 'postgrad checkpoint') throw corrupt(path, 'a manifest', 'something else')
  if (manifest.version > VERSION) throw later(path, manifest.version)
  if (sha256 !== hashOf(manifest)) throw corrupt(path, 'a manifest as it was written', 'one that was changed')
  if (manifest.step !== step)
    throw corrupt(path, `the manifest of step ${step}`, `that of step ${manifest.step}: the folder was copied or renamed`)
  return manifest.version === 1 ? { ...manifest, workers: ofVersion1(manifest.workers as never) } : manifest
}

function ofVersion1(workers: Readonly<Record<string, FileInfo>>): Manifest['workers'] {
  return Object.fromEntries(Object.entries(workers).map(([name, tensors]) => [name, { tensors, state: null, values: null }]))
}

/** The same, null for what is none. @throws CHECKPOINT_UNSUPPORTED unless that is none, too */
export async function manifestIfAny(disk: CheckpointDisk, directory: string, step: number, alsoLater = false): Promise<Manifest | null> {
  try {
    return await readManifest(disk, directory, step)
  } catch (error) {
    if (isPostgradError(error, 'CHECKPOINT_NOT_FOUND') || isPostgradError(error, 'CHECKPOINT_CORRUPT')) return null
    if (alsoLater && isPostgradError(error, 'CHECKPOINT_UNSUPPORTED')) return null
    throw error
  }
}

/** Null if the file is missing. @throws CHECKPOINT_CORRUPT */
async function readJson(disk: CheckpointDisk, path: string): Promise<{ readonly value: unknown } | null> {
  const parts: Uint8Array[] = []
  const bytes = await disk.size(path)
  if (bytes === null) return null
  if (bytes > MANIFEST_BYTES_MAX) throw corrupt(path, `a manifest of at most ${MANIFEST_BYTES_MAX} bytes`, `${bytes}`)
  try {
    for await (const piece of disk.read(path, bytes)) parts.push(piece)
    return { value: JSON.parse(Buffer.concat(parts).toString('utf8')) }
  } catch (error) {
    // Another process may remove it meanwhile.
    if (isAbsent(error)) return null
    if (error instanceof SyntaxError) throw corrupt(path, 'a manifest in JSON', 'something else', error)
    throw error
  }
}

/** Whether the error says that a file is missing. */
export function isAbsent(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return code === 'ENOENT' || code === 'ENOTDIR'
}

export function notFound(directory: string): PostgradError {
  return new PostgradError('CHECKPOINT_NOT_FOUND', {
    op: 'checkpoint',
    expected: `a complete checkpoint in '${directory}'`,
    got: 'none, or only a save that was not finished',
    remedy: 'See list() for those that are there.',
    values: { directory },
  })
}

function later(path: string, version: number): PostgradError {
  return new PostgradError('CHECKPOINT_UNSUPPORTED', {
    op: 'checkpoint',
    expected: `a checkpoint of version ${VERSION} or earlier in '${path}'`,
    got: `version ${version}`,
    remedy: 'Load it with the postgrad that wrote it, or a later one.',
    values: { path, version },
  })
}

function hashOf(manifest: object): string {
  return sha256().update(JSON.stringify(manifest)).digest('hex')
}

/** A hash to which bytes can be added. */
export function sha256(): ReturnType<typeof import('node:crypto').createHash> {
  return builtin<typeof import('node:crypto')>('node:crypto').createHash('sha256')
}
