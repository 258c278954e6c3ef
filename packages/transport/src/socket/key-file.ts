/**
 * Keys in a file of text, one line to a role; its user has the role of the first:
 *
 *     # postgrad keys: a process that reads this file can be in these roles. …
 *     member = 3q2+7wAAAA…
 *     observer = yv66vgAAA…
 *
 * An observer's file has its own line alone. `credentials.ts` says what keys must be.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import { checkCredentials, isRole, KEY_BYTES_MIN, type KeyCredentials } from './credentials.js'

const FILE_BYTES_MAX = 65_536
const OTHERS = 0o077
const LINE = /^([A-Za-z0-9_-]+)\s*=\s*([A-Za-z0-9+/]+={0,2})$/
const FIRST_LINE =
  '# postgrad keys: a process that reads this file can be in these roles. A process that uses it has the role of the first line.'

/** A new key of 32 bytes. `random` gives bytes that nobody can guess: `crypto.randomBytes`. */
export function generateKey(random: (bytes: number) => Uint8Array): Uint8Array {
  return Uint8Array.from(random(KEY_BYTES_MIN))
}

/** The text of a key file. Its first line is this end's own role. @throws CREDENTIALS_INVALID */
export function formatKeyFile(credentials: KeyCredentials): string {
  checkCredentials(credentials)
  const { role, keys } = credentials
  const roles = [role, ...Object.keys(keys).filter((one) => one !== role)]
  return `${[FIRST_LINE, ...roles.map((one) => `${one} = ${Buffer.from(keys[one] as Uint8Array).toString('base64')}`)].join('\n')}\n`
}

/**
 * The keys in a key file. `role` takes the place of the first line's. No error shows a part of the text, only the line's number.
 * @throws KEY_FILE_INVALID, CREDENTIALS_INVALID
 */
export function parseKeyFile(text: string, options: { readonly role?: string; readonly path?: string } = {}): KeyCredentials {
  const keys: Record<string, Uint8Array> = {}
  const inFile = options.path === undefined ? '' : ` of '${options.path}'`
  let first: string | null = null
  for (const [i, line] of text.split('\n').entries()) {
    const content = line.trim()
    if (content === '' || content.startsWith('#')) continue
    const [, role, base64] = LINE.exec(content) ?? []
    const key = base64 === undefined ? null : fromBase64(base64)
    if (role === undefined || !isRole(role) || key === null) {
      const expected = `'role = base64' in line ${i + 1}${inFile}`
      throw fileInvalid(expected, 'something else', 'Make the file by `postgrad keygen`.', options.path)
    }
    if (Object.hasOwn(keys, role))
      throw fileInvalid('one line for each role', `a second one for '${role}', line ${i + 1}${inFile}`, 'Remove one of them.', options.path)
    keys[role] = key
    first ??= role
  }
  if (first === null) {
    const got = options.path === undefined ? 'none' : `none in '${options.path}'`
    throw fileInvalid("a line 'role = base64'", got, 'Make the file by `postgrad keygen`.', options.path)
  }
  return checkCredentials({ kind: 'key', role: options.role ?? first, keys }) as KeyCredentials
}

/**
 * Reads a key file of `postgrad keygen`, synchronously, and returns credentials for `init`. The role of this process is `role`, by default that of the file's first
 * line. On Linux and macOS, only the file's owner may be allowed to read or write it. On Windows, protect the folder.
 * @throws KEY_FILE_OPEN if other users may access the file; KEY_FILE_UNREADABLE; KEY_FILE_INVALID if a line is not `role = key`; CREDENTIALS_INVALID if a key or
 * role is not valid
 * @example const member = await init({ credentials: readKeyFile('cluster.key'), cluster: 'training' })
 */
export function readKeyFile(path: string, options: { readonly role?: string } = {}): KeyCredentials {
  return parseKeyFile(readPrivate(path), { ...options, path })
}

/** Permissions are those of the opened file, so that it cannot be another one by then. */
function readPrivate(path: string): string {
  const fs = builtin<typeof import('node:fs')>('node:fs')
  let file: number
  try {
    file = fs.openSync(path, 'r')
  } catch (cause) {
    throw unreadable(path, cause)
  }
  try {
    const { mode, size } = fs.fstatSync(file)
    if (process.platform !== 'win32' && (mode & OTHERS) !== 0) {
      throw new PostgradError('KEY_FILE_OPEN', {
        op: 'key file',
        expected: 'a file that only its owner may read',
        got: `'${path}' with mode ${(mode & 0o777).toString(8)}`,
        remedy: `Run: chmod 600 '${path}'. If others have read it, make new keys.`,
        values: { path, mode: mode & 0o777 },
      })
    }
    if (size > FILE_BYTES_MAX) throw fileInvalid(`at most ${FILE_BYTES_MAX} bytes`, `${size} in '${path}'`, 'Name the key file.', path)
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw isPostgradError(error) ? error : unreadable(path, error)
  } finally {
    fs.closeSync(file)
  }
}

/** Null unless it is the one way in which these bytes are written. */
function fromBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? Uint8Array.from(bytes) : null
}

function unreadable(path: string, cause: unknown): PostgradError {
  return new PostgradError('KEY_FILE_UNREADABLE', {
    op: 'key file',
    message: `'${path}' cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: 'Make it by `postgrad keygen`, and name it by its path.',
    values: { path },
    cause,
  })
}

function fileInvalid(expected: string, got: string, remedy: string, path: string | undefined): PostgradError {
  return new PostgradError('KEY_FILE_INVALID', {
    op: 'key file',
    expected,
    got,
    remedy,
    ...(path === undefined ? {} : { values: { path } }),
  })
}
