/** Runs over several processes by the command itself: started by it, and by others; with a failure, a death and a missing peer. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { type Ended, MAIN, PROGRAM, postgrad, postgradWith, run } from '../process.fixture.js'

/** One that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** All ranks, with the same options. */
async function ranks(worldSize: number, options: readonly string[], ...words: readonly string[]): Promise<readonly Ended[]> {
  const master = `127.0.0.1:${await freePort()}`
  const one = (rank: number): Promise<Ended> =>
    postgrad('run', PROGRAM, '--rank', String(rank), '--world-size', String(worldSize), '--master', master, ...options, '--', ...words)
  return Promise.all(Array.from({ length: worldSize }, (_, rank) => one(rank)))
}

/** Both ranks of two, with the same options. */
const pair = (options: readonly string[], ...words: readonly string[]): Promise<readonly [Ended, Ended]> =>
  ranks(2, options, ...words) as Promise<readonly Ended[]> as Promise<readonly [Ended, Ended]>

const TLS_FILES = ['--tls-cert', MAIN, '--tls-key', MAIN, '--tls-ca', 'nowhere']

describe('--processes', () => {
  test('CLI-20 the same program, each line with its worker', async () => {
    const { code, out } = await postgrad('run', PROGRAM, '--workers', '3', '--processes', '2')
    expect(code).toBe(0)
    expect(out.trim().split('\n').sort()).toEqual([
      '[worker0] worker0 0/3 worker0 0 1 none',
      '[worker1] worker1 1/3 worker1 2 2 none',
      '[worker2] worker2 2/3 worker2 4 3 none',
    ])
  })

  test('PG-40 a rank whose main has returned ends the others, which wait for it in a collective', async () => {
    const all = await Promise.all([
      postgrad('run', PROGRAM, '--workers', '3', '--processes', '3', '--', 'uneven'),
      postgrad('run', PROGRAM, '--workers', '3', '--', 'uneven'),
    ])
    for (const { code, err } of all) {
      expect(code).toBe(1)
      expect(err).toContain("process group 'default' is broken: rank 1 (worker1) has returned from its main")
    }
  })

  test('CLI-10 CLI-30 a worker that dies is 4, or started again', async () => {
    const [dead, again] = await Promise.all([
      postgrad('run', PROGRAM, '--workers', '2', '--processes', '2', '--', 'die'),
      postgrad('run', PROGRAM, '--workers', '2', '--processes', '2', '--restart', 'failed', '--', 'again', '1', 'dies'),
    ])
    expect(dead.code).toBe(4)
    expect(dead.err).toContain('TypeError: nobody catches this')
    expect({ code: again.code, err: again.err }).toMatchObject({ code: 0 })
    expect(again.out).toContain('[worker1] worker1 succeeds at 1\n')
  })
})

describe('--rank', () => {
  test('CLI-40 CLI-43 two processes, with a key, and with names', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-pair-'))
    try {
      const key = join(folder, 'cluster.key')
      expect((await postgrad('keygen', '--out', key)).code).toBe(0)
      const ended = await pair(['--key', key, '--workers', 'ps,trainer'], 'calls', 'x')
      expect(ended.map(({ code }) => code)).toEqual([0, 0])
      expect(ended[0].out).toBe('[ps] ps 0/2 ps 0 1 x\n')
      expect(ended[1].out).toBe('[trainer] trainer 1/2 trainer 2 2 x\n')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('CLI-2 CLI-40 by the variables of torchrun; three end together', async () => {
    const port = String(await freePort())
    const one = (rank: string): Promise<Ended> =>
      postgradWith({ RANK: rank, WORLD_SIZE: '3', LOCAL_RANK: rank, MASTER_ADDR: '127.0.0.1', MASTER_PORT: port }, 'run', PROGRAM)
    const ended = await Promise.all([one('0'), one('1'), one('2')])
    expect(ended.map(({ code, err }) => ({ code, err }))).toEqual(
      [0, 1, 2].map((rank) => ({ code: 0, err: expect.stringContaining(`rank ${rank} of 3 by torchrun`) })),
    )
    expect(ended[1]!.out).toBe('[worker1] worker1 1/3 worker1 2 2 none\n')
  })

  test('CLI-44 CLI-45 one fails: 1; the other, which waits for nobody and has something open, ends with it: 4', async () => {
    const [first, second] = await pair([], 'fail')
    expect([first.code, second.code]).toEqual([4, 1])
    expect(first.err).toContain("worker 'worker1' has failed, so all others end: rank 1 is out of luck")
    expect(second.err).toContain('RangeError: rank 1 is out of luck')
  })

  test('CLI-44 rank 0 is killed: those that have no connection with it end as well, though main waits for nobody', async () => {
    const [, ...others] = await ranks(3, [], 'alone', 'master-dies')
    expect(others.map(({ code }) => code)).toEqual([4, 4])
    for (const { err } of others) expect(err).toMatch(/code: (STORE_LOST|WORKER_DIED)/)
    for (const { err } of others) expect(err).not.toContain('trace-warnings')
  })

  test('CLI-44 one fails while rank 0 computes: all hear why', async () => {
    const [first, second, third] = await ranks(3, [], 'alone', 'master-computes')
    expect([first!.code, second!.code, third!.code]).toEqual([4, 4, 1])
    for (const { err } of [first!, second!]) expect(err).toContain("worker 'worker2' has failed, so all others end: bad batch")
  })

  test('CLI-44 one is killed, and the other notices', async () => {
    const master = `127.0.0.1:${await freePort()}`
    const args = (rank: number): string[] => [
      MAIN,
      'run',
      PROGRAM,
      '--rank',
      String(rank),
      '--world-size',
      '2',
      '--master',
      master,
      '--',
      'forever',
    ]
    const victim = spawn(process.execPath, args(1), { env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'ignore'] })
    const gone = new Promise((resolve) => victim.on('close', resolve))
    let [waits, isKilled] = [false, false]
    const kill = (): void => {
      if (!waits || isKilled) return
      isKilled = true
      victim.kill('SIGKILL')
    }
    const survivor = run(process.execPath, args(0), (out) => {
      waits = out.includes('worker0 waits')
      kill()
    })
    const { code, err } = await survivor
    expect(isKilled).toBe(true)
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining('code: WORKER_DIED') })
    await gone
  })

  test('CLI-40 a peer that does not come is named, in time; an address that others reach wants a key', async () => {
    const port = await freePort()
    const [missing, open, tls] = await Promise.all([
      postgrad('run', PROGRAM, '--rank', '0', '--world-size', '2', '--master', `127.0.0.1:${port}`, '--join-timeout', '500'),
      postgrad('run', PROGRAM, '--rank', '0', '--world-size', '2', '--master', `10.1.2.3:${port}`, '--join-timeout', '500'),
      postgrad('run', PROGRAM, '--rank', '1', '--world-size', '2', '--master', `10.1.2.3:${port}`, ...TLS_FILES),
    ])
    expect(missing.code).toBe(3)
    expect(missing.err).toMatch(/rank 1 is missing/)
    expect(open.code).toBe(2)
    expect(open.err).toMatch(/CREDENTIALS_REQUIRED/)
    expect(tls.code).toBe(3)
    expect(tls.err).toMatch(/--tls-ca: 'nowhere' cannot be read: ENOENT.*\n {2}code: TLS_FILE_UNREADABLE/)
    expect(tls.err).not.toContain('stack')
  })
})
