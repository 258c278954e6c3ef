/**
 * The files of `postgrad keygen`: lines `role = base64` of 32 random bytes. Their reader, in transport, refuses a file that other users may read, so these are
 * for their owner only. It overwrites no file.
 */
import { closeSync, fchmodSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { PostgradError } from 'postgrad'

export interface KeygenOptions {
  readonly role: readonly string[]
  readonly out: string
}

export interface KeyFile {
  readonly path: string
  readonly text: string
  /** Null: the file has the keys of all roles. */
  readonly role: string | null
}

const KEY_BYTES = 32
const ROLES_MAX = 64
const ROLE = /^[A-Za-z0-9_-]{1,64}$/
const FIRST_LINE =
  '# postgrad keys: a process that reads this file can be in these roles. A process that uses it has the role of the first line.'

/**
 * A file with all keys, and one for each further role.
 * @param random bytes that nobody can guess
 * @throws ROLE_INVALID
 */
export function keyFiles({ role: roles, out }: KeygenOptions, random: (bytes: number) => Uint8Array): readonly KeyFile[] {
  const wrong = roles.find((role, at) => !ROLE.test(role) || role === '__proto__' || roles.indexOf(role) !== at)
  if (wrong !== undefined || roles.length > ROLES_MAX) {
    throw new PostgradError('ROLE_INVALID', {
      op: 'keygen',
      expected: `up to ${ROLES_MAX} roles, each once, of letters, digits, '-' and '_'`,
      got: wrong === undefined ? `${roles.length} of them` : `'${wrong}'`,
      remedy: 'Correct --role.',
    })
  }
  const lines = roles.map((role) => `${role} = ${Buffer.from(random(KEY_BYTES)).toString('base64')}`)
  const text = (of: readonly string[]): string => `${[FIRST_LINE, ...of].join('\n')}\n`
  const further = roles.slice(1).map((role, at) => ({ path: pathOf(out, role), text: text([lines[at + 1]!]), role }))
  return [{ path: out, text: text(lines), role: null }, ...further]
}

/** 'cluster.key', 'observer' → 'cluster.observer.key'. */
function pathOf(out: string, role: string): string {
  const [, stem, ending] = /^(.+?)(\.[^./\\]*)?$/s.exec(out)!
  return `${stem}.${role}${ending ?? ''}`
}

/** For its owner alone, from its first byte. @throws KEY_FILE_EXISTS, KEY_FILE_UNWRITABLE */
export function writeKeyFile(path: string, text: string, force: boolean): void {
  let file: number
  try {
    file = openSync(path, force ? 'w' : 'wx', 0o600)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new PostgradError('KEY_FILE_UNWRITABLE', {
        op: 'keygen',
        message: `'${path}' cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
        remedy: 'Make its folder, or choose another --out.',
        values: { path },
      })
    }
    throw new PostgradError('KEY_FILE_EXISTS', {
      op: 'keygen',
      message: `'${path}' exists already`,
      remedy: 'Processes with the old keys could not connect to those with new ones: choose another --out, or pass --force.',
      values: { path },
    })
  }
  try {
    // One that was there has the bits that it had.
    fchmodSync(file, 0o600)
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
