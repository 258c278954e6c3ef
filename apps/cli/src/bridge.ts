/**
 * The command line's one interface to the runtime: a cluster, a process that joins others, a program. Every command gets it as an argument, so that a test can
 * pass its own.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { type Cluster, init, isPostgradError, type LaunchOptions, launch, type Member, PostgradError, readKeyFile } from 'postgrad'
import { importMain } from 'postgrad/plugin'
import type { InitOptions, Main } from 'postgrad/types'

/** What this process proves itself with: files, so that no secret passes through the command line. */
export type CredentialsFiles =
  | { readonly kind: 'key'; readonly file: string; readonly role?: string }
  | { readonly kind: 'tls'; readonly ca: string; readonly cert: string; readonly key: string }

export interface JoinOptions extends Omit<InitOptions, 'credentials'> {
  readonly credentials?: CredentialsFiles
}

/** The part of a member that is used here. */
export type JoinedMember = Pick<
  Member,
  'worker' | 'store' | 'run' | 'shutdown' | 'close' | 'closed' | 'onStoreLost' | 'onWorkerStalled' | 'onWorkerRecovered'
>

export interface Bridge {
  launch(program: string, options: LaunchOptions): Promise<Cluster>
  /** Rejects as `init` does, and with KEY_FILE_OPEN, KEY_FILE_UNREADABLE, TLS_FILE_UNREADABLE and the like. */
  join(options: JoinOptions): Promise<JoinedMember>
  /** Imports a program in this process, as a worker's thread does, and gives its default export. Rejects with MAIN_MISSING, PROGRAM_NOT_FOUND. */
  importMain(program: string): Promise<Main>
}

export const bridge: Bridge = {
  launch,
  join: async ({ credentials, ...options }) =>
    init({ ...options, ...(credentials === undefined ? {} : { credentials: read(credentials) }) }),
  importMain,
}

function read(files: CredentialsFiles): NonNullable<InitOptions['credentials']> {
  if (files.kind === 'key') return readKeyFile(files.file, files.role === undefined ? {} : { role: files.role })
  return { kind: 'tls', ca: readTls('ca', files.ca), cert: readTls('cert', files.cert), key: readTls('key', files.key) }
}

function readTls(part: 'ca' | 'cert' | 'key', path: string): Buffer {
  let file: number | null = null
  try {
    file = openSync(path, 'r')
    // Of the opened file, as `readKeyFile` has it: so it cannot be another one by then.
    if (part === 'key') refuseOpen(path, fstatSync(file).mode & 0o777)
    return readFileSync(file)
  } catch (cause) {
    if (isPostgradError(cause)) throw cause
    throw new PostgradError('TLS_FILE_UNREADABLE', {
      op: `--tls-${part}`,
      message: `'${path}' cannot be read: ${(cause as Error).message}`,
      remedy: 'Name a PEM file by its path.',
      values: { path },
      cause,
    })
  } finally {
    if (file !== null) closeSync(file)
  }
}

/** Windows has no such bits. @throws KEY_FILE_OPEN */
function refuseOpen(path: string, mode: number): void {
  if (process.platform === 'win32' || (mode & 0o077) === 0) return
  throw new PostgradError('KEY_FILE_OPEN', {
    op: '--tls-key',
    expected: 'a file that only its owner may read',
    got: `'${path}' with mode ${mode.toString(8)}`,
    remedy: `Run: chmod 600 '${path}'. If others have read it, make a new key and certificate.`,
    values: { path, mode },
  })
}
