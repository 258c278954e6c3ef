/** Processes that `init` does not let join, and the one-line error of each. Rules INI-4 and INI-8. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { currentWorker } from '@postgrad/rpc'
import { PrefixStore } from '@postgrad/transport'
import { Exchange, RELEASE, RealClock } from '@postgrad/transport/internal'
import { script } from '../script.fixture.js'
import { GroupLog } from './group-log.js'
import { freePort, group, MEMBER, read } from './init.fixture.js'
import { init } from './init.js'

/** Rank 0, which ends without a word when a process has claimed another rank. */
const serveAndDie = (initMethod: string): string => `
  import { init } from '${new URL('./init.js', import.meta.url)}'
  void init({ initMethod: '${initMethod}', rank: 0, worldSize: 3, timeoutMs: 20_000 })
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 3000)
`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'init-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('INI-4 who cannot meet', () => {
  test('learns which ranks are missing, and where it waited', async () => {
    const port = await freePort()
    const { lines } = read(await script(MEMBER, 'together', `tcp://127.0.0.1:${port}`, '0', '3', '{"timeoutMs":300}'))
    expect(lines[0]!.failed).toMatchObject({ code: 'RENDEZVOUS_TIMEOUT', values: { missing: [1, 2] } })
    expect((lines[0]!.failed as { message: string }).message).toContain(
      `1 of 3 processes had joined at 127.0.0.1:${port}; ranks 1, 2 are missing`,
    )
  })

  test('learns that rank 0 has ended the store, with one remedy', async () => {
    const at = `127.0.0.1:${await freePort()}`
    const come = (rank: string, timeoutMs: number) => script(MEMBER, 'together', `tcp://${at}`, rank, '3', JSON.stringify({ timeoutMs }))
    const [, other] = (await Promise.all([come('0', 4000), come('1', 30_000)])).map(read)
    expect(other!.lines[0]!.failed).toMatchObject({
      code: 'RENDEZVOUS_LOST',
      message: `init: the store at ${at}, where the processes meet, ended before all had joined: the server has closed the store. Look at the process of rank 0, which keeps it.`,
    })
  })

  test('learns that nobody listens there, within its time', async () => {
    const port = await freePort()
    const { lines } = read(await script(MEMBER, 'together', `tcp://127.0.0.1:${port}`, '1', '2', '{"timeoutMs":500}'))
    expect(lines[0]!.failed).toMatchObject({
      code: 'CONNECT_FAILED',
      message: `init: rank 1 did not reach rank 0 at tcp://127.0.0.1:${port} within 0.5 s: nobody listens there (ECONNREFUSED). Start rank 0, or compare the address (initMethod, or MASTER_ADDR and MASTER_PORT) on both.`,
    })
  })

  test('learns that rank 0 was there and has died', async () => {
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    const keeper = spawn(process.execPath, ['--input-type=module', '-e', serveAndDie(initMethod)], { stdio: 'ignore' })
    const connection = { deadMs: 600, suspectMs: 300, graceMs: 1000, connectMs: 500 }
    const error = await init({ initMethod, rank: 1, worldSize: 3, timeoutMs: 20_000, connection }).catch((thrown: Error) => thrown)
    keeper.kill()
    expect(error).toMatchObject({ code: 'CONNECT_FAILED', op: 'init' })
    expect((error as Error).message).toContain(
      `rank 1 lost its connection to rank 0 at ${initMethod}, and did not reach it again within 1 s: nobody listens there`,
    )
  })

  test('learns it with a stack that has the line of the program', async () => {
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    const error = await init({ initMethod, rank: 1, worldSize: 2, timeoutMs: 300 }).catch((thrown: Error) => thrown)
    expect((error as Error).stack).toContain('init-refused.real.test')
  })

  test('learns that what listens there does not answer', async () => {
    const silent = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as { port: number }
    const { lines } = read(await script(MEMBER, 'together', `tcp://127.0.0.1:${port}`, '1', '2', '{"timeoutMs":1500}'))
    silent.close()
    expect(lines[0]!.failed).toMatchObject({ code: 'CONNECT_FAILED' })
    expect((lines[0]!.failed as { message: string }).message).toMatch(
      new RegExp(`rank 0 at tcp://127.0.0.1:${port} within 1.5 s: CONNECT_TIMEOUT, no answer within \\d+ ms`),
    )
  })

  test('HSK-8 with another release of the library is told so', async () => {
    const port = await freePort()
    const served = script(MEMBER, 'together', `tcp://127.0.0.1:${port}`, '0', '2', '{"timeoutMs":3000}')
    const dial = async (release: string): Promise<unknown> => {
      const self = { cluster: 'postgrad', name: 'worker1', id: 40_000 }
      const exchange = new Exchange({ self, credentials: null, clock: new RealClock(), release })
      try {
        // It may not listen yet.
        for (;;) {
          const error = await exchange
            .dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 2000 })
            .catch((thrown) => thrown)
          if (!isPostgradError(error, 'CONNECT_FAILED')) return error
        }
      } finally {
        await exchange.close()
      }
    }
    expect(await dial('0.0.9')).toMatchObject({
      code: 'VERSION_MISMATCH',
      message: expect.stringMatching(/it is of another version. Install the same version of postgrad at both ends./),
    })
    expect(await dial(RELEASE)).toHaveProperty('link')
    await served
  })

  test.each([
    ['another world size', ['0', '2'], ['1', '3']],
    ['the name of another', ['0', '2', '{"name":"one"}'], ['1', '2', '{"name":"one"}']],
  ])('with %s is told so', async (_what, a, b) => {
    const method = `tcp://127.0.0.1:${await freePort()}`
    const json = (args: string[]): string => JSON.stringify({ timeoutMs: 4000, ...JSON.parse(args[2] ?? '{}') })
    const ends = await Promise.all([a, b].map((args) => script(MEMBER, 'together', method, args[0]!, args[1]!, json(args))))
    expect(ends.map(read).map(({ lines }) => (lines[0]!.failed as { code: string }).code)).toContain('RENDEZVOUS_CONFLICT')
  })

  test.each<unknown>([null, 0, 'false'])('with %p as remoteStacks is told so, for that is neither yes nor no', async (remoteStacks) => {
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    await expect(init({ initMethod, rank: 0, worldSize: 2, timeoutMs: 300, remoteStacks: remoteStacks as boolean })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('true or false as remoteStacks'),
    })
  })

  test.each([0, 1.5, 10_000])('with %p as computeThreads learns it', async (computeThreads) => {
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    await expect(init({ initMethod, rank: 0, worldSize: 2, timeoutMs: 300, computeThreads })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      op: 'computeThreads',
    })
  })

  test('in a group of no fixed size: whoever has the name of another is told so and leaves, and the other goes on', async () => {
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    const first = await init({ initMethod, rank: 0, name: 'one' })
    await expect(init({ initMethod, name: 'two' })).rejects.toMatchObject({ code: 'ALREADY_A_WORKER' })
    const come = async (name: string) =>
      read(await script(MEMBER, 'together', initMethod, '', '', JSON.stringify({ rank: null, worldSize: null, name })))
    expect((await come('one')).lines).toMatchObject([{ failed: { code: 'RENDEZVOUS_CONFLICT' } }])
    const log = new GroupLog(new PrefixStore('postgrad/0', first.store))
    const said = []
    for (let i = 0; i < 3; i++) said.push(await log.read({ timeoutMs: 1000 }))
    expect(said.map(({ what, id }) => [what, id])).toEqual([
      ['joined', 0],
      ['joined', 1],
      ['left', 1],
    ])
    await first.close()
    // A thread that is a worker no more may be one again.
    const again = await init({ initMethod, rank: 0, worldSize: 1 })
    expect(await again.run(() => currentWorker().workers().length)).toBe(1)
    await again.close()
  })

  test('with a rank that lives is told so', async () => {
    const method = `tcp://127.0.0.1:${await freePort()}`
    // A third process for two ranks: the last to claim rank 1 waits for the other's end, and less long.
    const come = async (rank: string, timeoutMs: number) =>
      read(await script(MEMBER, 'together', method, rank, '3', JSON.stringify({ timeoutMs })))
    const ends = [come('0', 6000), come('1', 6000), new Promise((resolve) => setTimeout(resolve, 1500)).then(() => come('1', 1000))]
    const failed = (await Promise.all(ends)).map(({ lines }) => lines[0]!.failed as { code: string; message: string })
    const codes = failed.map(({ code }) => code).toSorted()
    expect(codes[0]).toBe('RENDEZVOUS_CONFLICT')
  })
})

describe('INI-8 with keys', () => {
  const keyFile = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name)
    writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
    return path
  }
  const MEMBERS = `member = ${Buffer.alloc(32, 1).toString('base64')}`
  const OBSERVERS = `observer = ${Buffer.alloc(32, 2).toString('base64')}`

  test('whoever has the right one is let in, and whoever has another is told', async () => {
    const right = keyFile('right', [MEMBERS])
    const method = `tcp://127.0.0.1:${await freePort()}`
    expect((await group('together', method, 2, { keyFile: right })).map(({ code }) => code)).toEqual([0, 0])
    const wrong = keyFile('wrong', [`member = ${Buffer.alloc(32, 3).toString('base64')}`])
    const other = `tcp://127.0.0.1:${await freePort()}`
    const [waiting, refused] = await Promise.all([
      script(MEMBER, 'together', other, '0', '2', JSON.stringify({ keyFile: right, timeoutMs: 2500 })),
      script(MEMBER, 'together', other, '1', '2', JSON.stringify({ keyFile: wrong, timeoutMs: 2500 })),
    ])
    expect(refused.out).toContain('AUTH_FAILED')
    // INI-22
    expect(waiting.err).toContain('refused a connection from 127.0.0.1: AUTH_FAILED (its key differs). Give both ends the same key file.')
    expect(waiting.out).toContain('rank 1 is missing; 1 connection from 127.0.0.1 was refused: AUTH_FAILED. Look at')
    expect(refused.out).not.toContain(Buffer.alloc(32, 3).toString('base64').slice(0, 12))
  })

  test('SEC-11 a role may have done what its rights list, and nothing else, and learns of no stack where none are sent', async () => {
    const all = keyFile('all', [MEMBERS, OBSERVERS])
    const one = keyFile('one', [OBSERVERS])
    const method = `tcp://127.0.0.1:${await freePort()}`
    const rights = { observer: { call: ['add'], stores: true } }
    const [agent, observer] = await Promise.all([
      script(MEMBER, 'rights', method, '0', '2', JSON.stringify({ keyFile: all, role: 'member', rights, remoteStacks: false })),
      script(MEMBER, 'rights', method, '1', '2', JSON.stringify({ keyFile: one, role: 'observer' })),
    ])
    expect([agent.out, agent.err, agent.code]).toEqual(['', '', 0])
    expect(read(observer).lines).toMatchObject([{ allowed: 3, refused: { code: 'NOT_PERMITTED' }, stack: 'none' }])
  })

  test('without them only this machine is listened on', async () => {
    const { lines } = read(await script(MEMBER, 'together', 'tcp://192.0.2.1:4000', '0', '2', '{"timeoutMs":1000}'))
    expect(lines[0]!.failed).toMatchObject({ code: 'CREDENTIALS_REQUIRED' })
  })
})
