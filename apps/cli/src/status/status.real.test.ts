/** A run's socket, its permissions, and `ps` and `top` on it: over real sockets, and once by the commands themselves. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { block } from '../fixtures/program.js'
import { MAIN, PROGRAM, postgradWith, run } from '../process.fixture.js'
import { surroundings } from '../surroundings.fixture.js'
import { clusterSource } from './cluster-source.js'
import { openStatus, type RunStatus } from './run-status.js'
import { prepareDir, runtimeDir, socketName } from './runtime-dir.js'
import type { Snapshot, StatusSource, WorkerRow } from './snapshot.js'
import { askRun, findRuns, watchRun } from './status-client.js'

let home = ''
let open: RunStatus[] = []
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pg-'))
  open = []
})
afterEach(async () => {
  for (const status of open) await status.close()
  rmSync(home, { recursive: true, force: true })
})

const env = () => ({ XDG_RUNTIME_DIR: home })
const folder = (): string => runtimeDir(env())
const around = () => surroundings({ env: env() })
const ROW: WorkerRow = { name: 'a', id: 0, state: 'running', progress: null, counts: null, isFresh: true, traffic: null }

function source(): StatusSource & { watchers: number } {
  return {
    restarts: 2,
    watchers: 0,
    workers: async () => [ROW],
    async watch() {
      this.watchers++
      return () => {
        this.watchers--
      }
    },
  }
}

async function opened(from: StatusSource | null = source()): Promise<RunStatus> {
  const status = (await openStatus({ program: 'p.ts', args: ['x'] }, around()))!
  open.push(status)
  status.show(from)
  return status
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** What comes back for these bytes, until the other side hangs up. */
function said(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = createConnection(join(folder(), socketName(process.pid)), () => socket.write(bytes))
    socket.on('data', (piece) => (text += piece))
    socket.on('error', () => {})
    socket.on('close', () => resolve(text))
  })
}

describe('the folder', () => {
  test('CLI-50 is the user’s alone', async () => {
    await opened()
    expect(statSync(folder()).mode & 0o777).toBe(0o700)
  })

  test('CLI-50 one that others may enter, a link, and a path that is too long are not used; the run says so and goes on', async () => {
    mkdirSync(folder())
    chmodSync(folder(), 0o755)
    const test = around()
    expect(await openStatus({ program: 'p', args: [] }, test)).toBeNull()
    expect(test.err()).toMatch(/'postgrad ps' does not see this run: others may enter .*chmod 700/)
    expect(() => findRuns(folder())).toThrow(/others may enter/)
    mkdirSync(join(home, 'elsewhere'), { mode: 0o700 })
    symlinkSync(join(home, 'elsewhere'), join(home, 'link'))
    expect(prepareDir(join(home, 'link'))).toMatch(/is not a folder/)
    expect(prepareDir(join(home, 'x'.repeat(100)))).toMatch(/too long/)
  })
})

describe('a run', () => {
  test('CLI-51 is found and asked, and gone when it has ended', async () => {
    const status = await opened()
    const [found] = findRuns(folder())
    expect(await askRun(found!)).toEqual({
      pid: process.pid,
      snapshot: { version: 1, pid: process.pid, program: 'p.ts', args: ['x'], upMs: 0, restarts: 2, workers: [ROW] },
    })
    status.show(null)
    expect(await askRun(found!)).toMatchObject({ snapshot: { workers: [] } })
    await status.close()
    open = []
    expect(readdirSync(folder())).toEqual([])
    expect(await askRun(found!)).toBeNull()
  })

  test('CLI-51 takes the place of one that had its number; a dead one is removed by whoever asks', async () => {
    mkdirSync(folder(), { mode: 0o700 })
    const path = join(folder(), socketName(process.pid))
    const other = join(folder(), socketName(999_999))
    // Killed, it leaves its sockets.
    const script = `for (const path of ${JSON.stringify([path, other])}) require('net').createServer().listen(path); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 300)`
    await run(process.execPath, ['-e', script])
    expect([existsSync(path), existsSync(other)]).toEqual([true, true])
    await opened()
    const runs = findRuns(folder())
    expect(runs.map(({ pid }) => pid)).toEqual([process.pid, 999_999].sort((a, b) => a - b))
    const answers = await Promise.all(runs.map(askRun))
    expect(answers.filter((answer) => answer !== null)).toHaveLength(1)
    expect([existsSync(path), existsSync(other)]).toEqual([true, false])
  })

  test('CLI-51 the socket of a run that lives, and a file that is not a socket, stay where they are', async () => {
    mkdirSync(folder(), { mode: 0o700 })
    const path = join(folder(), socketName(process.pid))
    writeFileSync(path, 'of a user')
    writeFileSync(join(folder(), socketName(999_999)), 'of a user')
    const first = around()
    expect(await openStatus({ program: 'p', args: [] }, first)).toBeNull()
    expect(first.err()).toContain("'postgrad ps' does not see this run: listen EADDRINUSE")
    expect(findRuns(folder())).toEqual([])
    expect(await askRun({ pid: 999_999, path: join(folder(), socketName(999_999)) })).toBeNull()
    expect(readdirSync(folder())).toHaveLength(2)
    rmSync(path)
    // As a run of another container with the same number.
    await opened()
    const second = around()
    expect(await openStatus({ program: 'p', args: [] }, second)).toBeNull()
    expect(await askRun({ pid: process.pid, path })).toMatchObject({ snapshot: { program: 'p.ts' } })
  })

  test('CLI-53 counts messages only while somebody watches, also over a restart', async () => {
    const [first, second] = [source(), source()]
    const status = await opened(first)
    const seen: Snapshot[] = []
    let ended: string | null | undefined
    const stop = watchRun(findRuns(folder())[0]!, { onSnapshot: (snapshot) => seen.push(snapshot), onEnd: (why) => (ended = why) })
    await until(() => seen.length > 1)
    expect(first.watchers).toBe(1)
    status.show(second)
    await until(() => second.watchers === 1)
    expect(first.watchers).toBe(0)
    stop()
    await until(() => second.watchers === 0 && ended !== undefined)
    expect(ended).toBeNull()
  })

  test.each(['nonsense\n', '{"watch":1}\n', 'null\n'])('CLI-54 whoever says %j hears what to say', async (words) => {
    await opened()
    expect(JSON.parse(await said(words))).toEqual({ error: expect.stringContaining('write {"watch":false}') })
  })

  test('CLI-54 whoever says too much is cut off', async () => {
    await opened()
    expect(await said('x'.repeat(100_000))).toBe('')
  })

  test.each([
    ['{"version":2,"workers":[]}\n', /version 2, this one reads 1/],
    ['no json\n', /something other than JSON/],
  ])('CLI-54 a run that answers %j is named with the reason', async (line, why) => {
    mkdirSync(folder(), { mode: 0o700 })
    const server = createServer((socket) => socket.resume().end(line))
    await new Promise<void>((resolve) => server.listen(join(folder(), socketName(7)), resolve))
    expect(await askRun(findRuns(folder())[0]!)).toEqual({ pid: 7, silent: expect.stringMatching(why) })
    await new Promise((resolve) => server.close(resolve))
  })
})

test('CLI-51 the socket is gone also where nobody reads the output any more', async () => {
  const { code } = await run(
    'bash',
    ['-c', `${process.execPath} ${MAIN} run ${PROGRAM} -- flood | head -n 1; exit \${PIPESTATUS[0]}`],
    undefined,
    env(),
  )
  expect([code, readdirSync(folder())]).toEqual([141, []])
})

describe('clusterSource', () => {
  const board = { standingOf: () => ({ state: 'running', progress: null }) as const }
  const info = { id: 0, name: 'a' }

  test('CLI-52 whoever does not answer is busy, with the counts that it had', async () => {
    const cluster = await launch(pathToFileURL(PROGRAM), { workers: ['a', 'b'] })
    try {
      const watched = clusterSource(cluster, board, 0)
      expect(await watched.workers()).toMatchObject([
        { name: 'a', isFresh: true },
        { name: 'b', isFresh: true },
      ])
      const blocks = cluster.on('a').run(block, 3000)
      blocks.catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(await watched.workers()).toMatchObject([
        { name: 'a', isFresh: false, counts: { pending: 0 } },
        { name: 'b', isFresh: true },
      ])
      await cluster.close({ timeoutMs: 0 })
      expect(await watched.workers()).toMatchObject([{ isFresh: false }, { isFresh: false }])
    } finally {
      await cluster.close({ timeoutMs: 0 })
    }
  })

  test('CLI-53 one listener for any number of watchers', async () => {
    const listeners = new Set<(event: { on: string; kind: string }) => void>()
    const cluster = {
      workers: [info],
      debugInfo: async () => ({ a: {} }),
      metrics: async () => ({}),
      inspect: async (listener: (event: { on: string; kind: string }) => void) => {
        listeners.add(listener)
        return async () => {
          listeners.delete(listener)
        }
      },
    }
    const watched = clusterSource(cluster as never, board, 0)
    const traffic = async () => (await watched.workers())[0]?.traffic
    expect([await traffic(), listeners.size]).toEqual([null, 0])
    const stops = [await watched.watch(), await watched.watch()]
    expect(listeners.size).toBe(1)
    for (const kind of ['sent', 'received', 'received', 'begun']) for (const listener of listeners) listener({ on: 'a', kind })
    expect(await traffic()).toEqual({ sent: 1, received: 2 })
    stops[0]!()
    expect(listeners.size).toBe(1)
    stops[1]!()
    expect([await traffic(), listeners.size]).toEqual([null, 0])
  })
})

test('CLI-50 CLI-51 ps and top show a run and its workers; --no-status hides it; nothing is left', async () => {
  const args = ['run', PROGRAM, '--workers', 'ps,trainer']
  const start = (...more: string[]) =>
    spawn(process.execPath, [MAIN, ...args, ...more, '--', 'forever'], { env: { ...process.env, ...env(), NODE_OPTIONS: '' } })
  const [shown, hidden] = [start(), start('--no-status')]
  const waits = [shown, hidden].map(
    (child) => new Promise<void>((resolve) => child.stdout.on('data', (text) => String(text).includes('waits') && resolve())),
  )
  await Promise.all(waits)
  const { out, code } = await postgradWith(env(), 'ps')
  expect(code).toBe(0)
  expect(out).toMatch(
    new RegExp(`^${shown.pid}  .*program.js forever  up \\d+ s, 2 workers\\n.*WORKER.*\\n  ps +running.*\\n  trainer +running.*\\n$`),
  )
  const json = JSON.parse((await postgradWith(env(), 'ps', '--json')).out)
  expect(json).toHaveLength(1)
  expect(json[0].workers.map(({ name, counts }: WorkerRow) => [name, counts?.pending])).toEqual([
    ['ps', 1],
    ['trainer', 1],
  ])
  const top = await postgradWith(env(), 'top', String(shown.pid), '-n', '2')
  expect(top.code).toBe(0)
  expect(top.out).toMatch(/SENT\/s/)
  const ended = [shown, hidden].map((child) => new Promise((resolve) => child.on('close', resolve)))
  for (const child of [shown, hidden]) child.kill('SIGINT')
  expect(await Promise.all(ended)).toEqual([130, 130])
  expect(readdirSync(folder())).toEqual([])
  const [none, gone] = await Promise.all([postgradWith(env(), 'ps'), postgradWith(env(), 'top', '1')])
  expect([none.code, none.out, none.err]).toEqual([0, '', 'postgrad: nothing runs here\n'])
  expect([gone.code, gone.err]).toEqual([1, 'postgrad: no run 1 is here\n'])
})
