/**
 * The folder of a process's Unix sockets, which only this user can enter. A lock in it, the marker, names the process. The process removes the folder when it ends. If it is killed, the
 * next process of this user that needs sockets does. Only the folder's sockets and its marker are removed: a user's folder may have such a name, too.
 */
import { lstatSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgradError } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'
import { FileLock, isLockLeft } from '@postgrad/transport/internal'

const NAME = /^postgrad-\d+-/
const MARKER = 'process.lock'
const PERMISSIONS = 0o777
const OWNER_ALONE = 0o700
/** A file system without links. */
const NO_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EROFS', 'EPROTO']
/** It is gone by now, since another process was faster, or something of a user's lies in it. */
const GONE_OR_USED: readonly unknown[] = ['ENOENT', 'ENOTEMPTY', 'EEXIST']
/** In a folder that cannot be listed, no folder is known to be ours. */
const NOT_LISTED: readonly unknown[] = ['ENOENT', 'EACCES', 'EPERM']

/** Makes one, and looks for those that nobody needs. @throws SOCKET_FOLDER_UNAVAILABLE */
export function makeSocketFolder(): string {
  const folder = made()
  markSocketFolder(folder)
  const parent = tmpdir()
  sweepSocketFolders(parent).catch((error: unknown) => warnUnless(NOT_LISTED, error, `look for folders that are left in ${parent}`))
  return folder
}

/** @throws SOCKET_FOLDER_UNAVAILABLE, TOO_MANY_OPEN_FILES */
function made(): string {
  const parent = tmpdir()
  try {
    return mkdtempSync(join(parent, `postgrad-${process.pid}-`))
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const files = tooManyOpenFiles('processes', cause)
    if (files !== null) throw files
    throw new PostgradError('SOCKET_FOLDER_UNAVAILABLE', {
      op: 'processes',
      expected: 'a temporary folder in which this user can make one for the sockets of the processes',
      got: `${parent}, where that fails: ${code ?? message}`,
      remedy:
        "Set TMPDIR to a folder that you can write to. Or leave out processes: threads of one process need no sockets. With init, pass { transports: ['tcp'] }.",
      values: { folder: parent, ...(code === undefined ? {} : { code }) },
      cause,
    })
  }
}

/** Where that fails, the folder of a process that is killed stays. */
export function markSocketFolder(folder: string): void {
  try {
    new FileLock(join(folder, MARKER)).tryAcquire()
  } catch (error) {
    warnUnless(NO_LINKS, error, `mark ${folder}`)
  }
}

/** Removes the folder, unless it has files that no process put there. */
export function removeSocketFolder(folder: string): void {
  try {
    for (const { name, path } of entriesOf(folder)) if (name === MARKER || isSocket(path)) rmSync(path, { force: true })
    rmdirSync(folder)
  } catch (error) {
    warnUnless(GONE_OR_USED, error, `remove ${folder}`)
  }
}

/** Removes this user's folders of processes that have ended. */
export async function sweepSocketFolders(parent: string): Promise<void> {
  const user = process.geteuid?.()
  // Windows has pipes in place of sockets, which go with their process.
  if (user === undefined) return
  for (const name of await readdir(parent)) {
    if (!NAME.test(name)) continue
    const folder = join(parent, name)
    try {
      if (await isLeft(folder, user)) removeSocketFolder(folder)
    } catch (error) {
      warnUnless(GONE_OR_USED, error, `look into ${folder}`)
    }
  }
}

/** Nothing fails for a folder that is left, and a process that ends must end. */
function warnUnless(expected: readonly unknown[], cause: unknown, what: string): void {
  const { code, message } = cause as NodeJS.ErrnoException
  if (expected.includes(code)) return
  const error = new PostgradError('SOCKET_FOLDER_LEFT', {
    op: 'processes',
    expected: `to ${what}`,
    got: code ?? message,
    remedy:
      'Remove folders postgrad-<number>-… there by hand when their processes have ended, and look at the rights of the folder that holds them.',
    values: code === undefined ? {} : { code },
    cause,
  })
  process.emitWarning(error.message, { type: error.code })
}

/** That its process has ended is not enough: workers that it has started may live a moment longer. */
async function isLeft(folder: string, user: number): Promise<boolean> {
  const found = await lstat(folder)
  if (!found.isDirectory() || found.uid !== user || (found.mode & PERMISSIONS) !== OWNER_ALONE) return false
  if (!isLockLeft(join(folder, MARKER))) return false
  const others = entriesOf(folder).filter(({ name }) => name !== MARKER)
  // To connect to a file that is not a socket is refused, too.
  if (!others.every(({ path }) => isSocket(path))) return false
  return (await Promise.all(others.map(({ path }) => isRefused(path)))).every(Boolean)
}

const entriesOf = (folder: string): { readonly name: string; readonly path: string }[] =>
  readdirSync(folder).map((name) => ({ name, path: join(folder, name) }))

const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false

function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.unref()
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
  })
}
