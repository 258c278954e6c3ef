/**
 * The folder of a process's Unix sockets, which only this user can enter. It is removed when the process ends; that of one which was killed stays behind, until the next process of
 * this user comes by here.
 */
import { mkdtempSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const NAME = /^postgrad-(\d+)-/

/** Makes one, and looks for those that nobody needs. */
export function makeSocketFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), `postgrad-${process.pid}-`))
  // What cannot be looked at, or removed, is none of ours or has been removed meanwhile.
  sweepSocketFolders(tmpdir()).catch(() => {})
  return folder
}

/**
 * Removes folders of processes that have ended. That no process here has the number is not enough, since another container may have the same folder and its own
 * numbers: nobody listens on the sockets in it, either.
 */
export async function sweepSocketFolders(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = NAME.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const folder = join(parent, name)
    try {
      const sockets = await readdir(folder)
      // In an empty one a socket may come to lie at any moment.
      if (sockets.length === 0) continue
      const refused = await Promise.all(sockets.map((socket) => isRefused(join(folder, socket))))
      if (refused.every(Boolean)) await rm(folder, { recursive: true, force: true })
    } catch {} // another user's, or gone by now
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

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
