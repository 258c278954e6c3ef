/** Which left-over folders of processes are removed: CLU-95. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { FileLock } from '@postgrad/transport/internal'
import { makeSocketFolder, markSocketFolder, removeSocketFolder, sweepSocketFolders } from './socket-folder.js'

let parent = ''
let server: Server | null = null
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'folders-test-'))
})
afterEach(async () => {
  await new Promise((resolve) => (server === null ? resolve(null) : server.close(resolve)))
  server = null
  rmSync(parent, { recursive: true, force: true })
})

/** Of a process that listens on a socket there, and is killed. */
const KILLED = "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))"

/** The socket of a process that was killed, and that process. */
function killed(): { readonly socket: string; readonly pid: number } {
  const socket = join(parent, 'socket')
  const { NODE_OPTIONS: _, ...env } = process.env
  const { pid, signal } = spawnSync(process.execPath, ['-e', KILLED, socket], { env })
  expect(signal).toBe('SIGKILL')
  return { socket, pid }
}

/** As this process marks its own. */
function ownMarker(): string {
  const lock = new FileLock(join(parent, 'own.lock'))
  lock.tryAcquire()
  return readlinkSync(lock.path)
}

/** The path of a new folder under a name that the sweep looks at. */
function folder(name: string): string {
  const path = join(parent, `postgrad-${name}`)
  mkdirSync(path, { mode: 0o700 })
  return path
}

const copy = (from: string, to: string): void => {
  expect(spawnSync('cp', ['-a', from, to]).status).toBe(0)
}

test('CLU-95 the folder of a process that was killed goes, with its marker and the sockets on which nobody listens, and no other folder', async () => {
  const { socket, pid } = killed()
  const own = ownMarker()
  const [host, machine, , thread, started] = own.split('/')
  const gone = [host, machine, pid, pid, '1', '1', '1'].join('/')
  /** With a marker, and the dead socket. */
  const left = (name: string, marker = gone): string => {
    const path = folder(`${pid}-${name}`)
    symlinkSync(marker, join(path, 'process.lock'))
    copy(socket, join(path, '1'))
    return path
  }
  left('left')
  symlinkSync(gone, join(folder(`${pid}-without-sockets`), 'process.lock'))
  left('number-of-another-process-now', [host, machine, process.pid, thread, '1', '1', '1'].join('/'))
  const removed = [`postgrad-${pid}-left`, `postgrad-${pid}-number-of-another-process-now`, `postgrad-${pid}-without-sockets`]

  writeFileSync(join(folder('20261127-results'), 'weights.bin'), 'a week of work')
  writeFileSync(join(left('file-of-a-user'), 'weights.bin'), 'a week of work')
  mkdirSync(join(left('folder-of-a-user'), 'run1'))
  copy(socket, join(folder(`${pid}-no-marker`), '1'))
  writeFileSync(join(folder(`${pid}-file-as-marker`), 'process.lock'), gone)
  folder(`${pid}-empty`)
  left('lives', [host, machine, process.pid, thread, started, '1', '1'].join('/'))
  left('of-another-container', [host, 'boot+pid:[1]', pid, pid, '1', '1', '1'].join('/'))
  chmodSync(left('others-may-enter'), 0o755)
  const listened = left('listened')
  rmSync(join(listened, '1'))
  server = createServer()
  await new Promise<void>((resolve) => server!.listen(join(listened, '1'), resolve))
  // A link to what would be removed under its own name.
  const elsewhere = left('elsewhere')
  renameSync(elsewhere, join(parent, 'elsewhere'))
  symlinkSync(join(parent, 'elsewhere'), elsewhere)
  if (process.getuid?.() === 0) chownSync(left('of-another-user'), 65_534, 65_534)

  const before = readdirSync(parent)
  await sweepSocketFolders(parent)
  expect(before.filter((name) => !readdirSync(parent).includes(name))).toEqual(removed.sort())
  expect(readdirSync(join(parent, `postgrad-${pid}-file-of-a-user`)).sort()).toEqual(['1', 'process.lock', 'weights.bin'])
})

test('CLU-95 at its end a process removes its sockets and its marker, and the folder only if nothing else is in it', () => {
  const { socket } = killed()
  const marker = ownMarker()
  const made = (name: string): string => {
    const path = folder(name)
    symlinkSync(marker, join(path, 'process.lock'))
    copy(socket, join(path, '1'))
    return path
  }
  const [plain, used] = [made('1-plain'), made('1-used')]
  writeFileSync(join(used, 'notes.txt'), 'of a user')
  removeSocketFolder(plain)
  removeSocketFolder(used)
  expect([existsSync(plain), readdirSync(used)]).toEqual([false, ['notes.txt']])
})

test('CLU-95 a folder that cannot be removed or marked is warned of; one that is gone, or in which a file of a user is, is not', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  try {
    const used = folder('1-used')
    writeFileSync(join(used, 'notes.txt'), 'of a user')
    removeSocketFolder(used)
    removeSocketFolder(join(parent, 'is-not-there'))
    markSocketFolder(used)
    expect(warn.mock.calls).toEqual([])
    // Root may do anything, but not list a file, nor write into a folder that is gone.
    removeSocketFolder(join(used, 'notes.txt'))
    markSocketFolder(join(parent, 'is-not-there'))
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^processes: expected to remove .*notes.txt, got ENOTDIR\. Remove/), { type: 'SOCKET_FOLDER_LEFT' }],
      [expect.stringMatching(/^processes: expected to mark .*is-not-there, got ENOENT\. Remove/), { type: 'SOCKET_FOLDER_LEFT' }],
    ])
  } finally {
    warn.mockRestore()
  }
})

test('CLU-114 a temporary folder in which none can be made is said, with what to do', () => {
  const { TMPDIR } = process.env
  // For root, too.
  process.env.TMPDIR = join(parent, 'is-not-there')
  try {
    expect(makeSocketFolder).toThrow(
      expect.objectContaining({
        code: 'SOCKET_FOLDER_UNAVAILABLE',
        message: expect.stringContaining('Set TMPDIR to a folder'),
        values: { folder: process.env.TMPDIR, code: 'ENOENT' },
      }),
    )
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
})
