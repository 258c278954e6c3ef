/** Which folders are removed that processes have left behind: CLU-95. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { sweepSocketFolders } from './socket-folder.js'

let parent = ''
let server: Server | null = null
afterEach(async () => {
  await new Promise((resolve) => (server === null ? resolve(null) : server.close(resolve)))
  rmSync(parent, { recursive: true, force: true })
})

/** Of a process that listens on a socket there, and is killed. */
const KILLED = "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))"

test('CLU-95 a folder goes if its process has ended and nobody listens in it', async () => {
  parent = mkdtempSync(join(tmpdir(), 'folders-test-'))
  const folder = (name: string): string => {
    mkdirSync(join(parent, name))
    return join(parent, name, 's')
  }
  const { NODE_OPTIONS: _, ...env } = process.env
  const { pid, signal } = spawnSync(process.execPath, ['-e', KILLED, folder('left')], { env })
  expect(signal).toBe('SIGKILL')
  // As a process of another container has it, whose numbers are its own.
  const listened = folder(`postgrad-${pid}-listened`)
  server = createServer()
  await new Promise<void>((resolve) => server!.listen(listened, resolve))
  for (const name of [`postgrad-${pid}-left`, `postgrad-${process.pid}-lives`]) {
    folder(name)
    spawnSync('cp', ['-a', join(parent, 'left', 's'), join(parent, name)])
  }
  folder(`postgrad-${pid}-empty`)
  folder('postgrad-other')
  const before = readdirSync(parent)
  await sweepSocketFolders(parent)
  expect(before.filter((name) => !readdirSync(parent).includes(name))).toEqual([`postgrad-${pid}-left`])
})
