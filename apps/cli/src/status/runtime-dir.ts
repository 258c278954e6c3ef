/** The folder with the sockets of live runs: this user's alone. `run-status.ts` puts them there, `status-client.ts` finds them. */
import { lstatSync, mkdirSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../surroundings.js'

const OTHERS = 0o077
/** Of `sun_path`, with its end: 108 on Linux, 104 on macOS and BSD. */
const SOCKET_PATH_MAX = 103

const SOCKET = /^run-(\d+)\.sock$/
export const socketName = (pid: number): string => `run-${pid}.sock`
/** Null: it is the name of something else. */
export function pidOf(name: string): number | null {
  const [, digits] = SOCKET.exec(name) ?? []
  return digits === undefined ? null : Number(digits)
}

export function runtimeDir(env: Environment): string {
  const own = env.XDG_RUNTIME_DIR
  return own !== undefined && own !== '' ? join(own, 'postgrad') : join(tmpdir(), `postgrad-${userInfo().uid}`)
}

/**
 * Makes the folder, if it is not there.
 * @returns null, or why it cannot be trusted: in a folder that others may write to they could put sockets of their own
 */
export function prepareDir(folder: string): string | null {
  if (process.platform === 'win32') return 'Windows has no sockets in files'
  if (Buffer.byteLength(join(folder, socketName(4_194_304))) > SOCKET_PATH_MAX) return `${folder} is too long for a socket`
  try {
    mkdirSync(folder, { mode: 0o700, recursive: true })
    return whyNotOurs(folder)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whatever its name: a user's file, say. */
export const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false

/** Anything else stays. */
export function removeSocket(path: string): void {
  if (isSocket(path)) rmSync(path, { force: true })
}

/** Removes the socket of a process that was killed; one on which somebody listens stays. A process of another container may have the same number. */
export function removeDeadSocket(path: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = createConnection(path, () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') removeSocket(path)
      resolve()
    })
  })
}

/** Null: it is ours alone. */
export function whyNotOurs(folder: string): string | null {
  const found = lstatSync(folder)
  if (!found.isDirectory()) return `${folder} is not a folder`
  if (found.uid !== userInfo().uid) return `${folder} belongs to somebody else`
  return (found.mode & OTHERS) === 0 ? null : `others may enter ${folder}; run: chmod 700 '${folder}'`
}
