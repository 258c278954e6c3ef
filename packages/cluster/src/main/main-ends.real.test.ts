/** The main thread as a guest: how workers and groups see it, their deaths and restarts, and its end with the cluster. */
import { describe, expect, jest, test } from '@jest/globals'
import { getWorkerInfos, rref, shutdown } from '@postgrad/rpc'
import type { ClusterEvent } from '../admin/inspect-events.js'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/main-thread.js'
import { script } from '../script.fixture.js'
import { launch as realLaunch } from './launch.js'

const { Counter } = program
const launch = launcher()
const url = new URL('../fixtures/main-thread.js', import.meta.url)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const until = async (isSo: () => boolean) => {
  while (!isSo()) await sleep(10)
}

describe('who is there', () => {
  test('CLU-78: no group counts it: cluster.workers, what workers see, barriers, the end of all', async () => {
    const cluster = await launch(url, { workers: 2 })
    await cluster.call('worker0', program.who)
    const names = ['worker0', 'worker1']
    expect(cluster.workers.map(({ name }) => name)).toEqual(names)
    expect(await cluster.call('worker1', program.others)).toEqual(expect.arrayContaining(names))
    expect(await cluster.call('worker1', program.others)).toHaveLength(2)
    expect((await cluster.runHere(() => getWorkerInfos())).map(({ name }) => name)).toEqual(names)
    // Of the workers alone.
    await Promise.all(names.map((name) => cluster.on(name).run(program.meetAll)))
    await expect(cluster.runHere(() => program.meetAll())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    // With it, since all name it.
    const all = ['main', ...names]
    await Promise.all([cluster.runHere(() => program.meetAll(all)), ...names.map((name) => cluster.call(name, program.meetAll, [all]))])
    // The end of all workers does not wait for it; it finds them left.
    await Promise.all(names.map((name) => cluster.on(name).run(program.endTogether)))
    await sleep(300)
    await expect(cluster.call('worker0', program.who)).rejects.toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
  }, 20_000)

  test('CLU-78: its own shutdown is its leave, and the workers go on', async () => {
    const cluster = await launch(url, { workers: 2 })
    await cluster.runHere(() => shutdown())
    await Promise.all(['worker0', 'worker1'].map((name) => cluster.on(name).run(program.meetAll)))
    await expect(cluster.on('worker0').run(program.ask, 'main')).rejects.toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
    await expect(cluster.call('worker0', program.who)).rejects.toMatchObject({ code: 'RPC_SHUT_DOWN' })
    await cluster.join(['worker2', 'worker3'])
    for (const name of ['worker2', 'worker3']) {
      await expect(cluster.on(name).run(program.ask, 'main')).rejects.toMatchObject({ code: 'WORKER_DIED' })
    }
    await cluster.close()
  })

  test('CLU-79: a worker that has its name keeps it, and another name may be given', async () => {
    const cluster = await launch(url, { workers: ['main', 'worker1'] })
    const refused = await cluster.call('worker1', program.who).catch((error) => error)
    expect(refused).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'main', workerId: 0 } })
    expect(await cluster.on('worker1').run(program.ask, 'main')).toBe('main')
    await cluster.leave('main')
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
    await expect(cluster.join('main')).rejects.toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'main', workerId: 65_535 } })
    const named = await launch(url, { workers: ['main'], mainName: 'script' })
    expect(await named.call('main', program.ask, ['script'])).toBe('script')
    await expect(launch(url, { workers: 1, mainName: 'a b' })).rejects.toMatchObject({ code: 'WORKER_NAME_INVALID' })
  }, 20_000)

  test('CLU-80: workers that join, leave or are started again are linked with it', async () => {
    const cluster = await launch(url, { workers: 1 })
    await cluster.call('worker0', program.who)
    await cluster.join(['worker1', 'worker2'])
    expect(await cluster.call('worker2', program.ask, ['main'])).toBe('main')
    const counter = await cluster.remote('worker1', Counter)
    await counter.created()
    const { id } = await cluster.restart('worker1')
    await expect(counter.rpcSync().add(1)).rejects.toMatchObject({ code: 'WORKER_DIED', values: { restartedAs: id } })
    expect(await cluster.call('worker1', program.ask, ['main'])).toBe('main')
    await cluster.leave('worker2')
    await expect(cluster.call('worker2', program.who)).rejects.toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
  }, 20_000)

  test('CLU-80: it joins while workers are being started', async () => {
    const cluster = await launch(url, { workers: 1 })
    const joining = cluster.join('worker1')
    const first = cluster.call('worker0', program.ask, ['main'])
    await joining
    expect(await first).toBe('main')
    expect(await cluster.call('worker1', program.ask, ['main'])).toBe('main')
    expect(await cluster.call('worker1', program.ask, ['worker0'])).toBe('worker0')
  })

  test('CLU-80: of a worker that died before it joined it knows the death', async () => {
    const cluster = await launch(url, { workers: 2 })
    await cluster.kill('worker1')
    await expect(cluster.call('worker1', program.who)).rejects.toMatchObject({ code: 'WORKER_DIED' })
    await cluster.restart('worker1')
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
  })

  test('CLU-80: two that call first at the same time join once', async () => {
    const cluster = await launch(url, { workers: 2 })
    const calls = [cluster.call('worker0', program.who), cluster.call('worker1', program.who), cluster.runHere(() => 'here')]
    expect(await Promise.all(calls)).toEqual(['worker0', 'worker1', 'here'])
  })
})

describe('deaths', () => {
  test('CLU-81: a worker that dies during a call: WORKER_DIED, with what ended it; the others go on', async () => {
    const cluster = await launch(url, { workers: 2 })
    await cluster.call('worker1', program.who)
    const waiting = cluster.call('worker1', program.never, [], { timeoutMs: 0 })
    waiting.catch(() => {})
    const dying = cluster.call('worker1', program.exit)
    await expect(dying).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', cause: 'exited', exitCode: 3 } })
    await expect(waiting).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', cause: 'exited' } })
    await expect(cluster.call('worker1', program.who)).rejects.toMatchObject({ code: 'WORKER_DIED', values: { cause: 'exited' } })
    expect(await cluster.call('worker0', program.who)).toBe('worker0')
    await cluster.restart('worker1')
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
    expect((await cluster.call('worker0', program.ask, ['worker1'])) as string).toBe('worker1')
  })

  test('CLU-81: a death that a worker tells of has its cause as well, also where it is printed', async () => {
    const cluster = await launch(url, { workers: 2 })
    cluster.onWorkerDeath(() => {})
    const error = await cluster.call('worker0', program.askToExit, ['worker1']).catch((error) => error)
    expect(error).toMatchObject({
      code: 'WORKER_DIED',
      values: { worker: 'worker1', cause: 'exited', exitCode: 3 },
      workers: [{ name: 'worker0' }],
      cause: { code: 'WORKER_DIED', message: expect.stringContaining('process.exit') },
    })
    for (const text of [error.message, error.stack]) expect(text).not.toContain('link-closed')
    expect(error.stack).toContain(error.message)
  })

  test('CLU-81: a death that a call of the main thread or of its reference was rejected with is heard; another one is warned of', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      const cluster = await launch(url, { workers: 3 })
      const counter = await cluster.remote('worker1', Counter)
      await counter.created()
      await expect(cluster.call('worker0', program.exit)).rejects.toMatchObject({ code: 'WORKER_DIED' })
      await Promise.all([
        expect(counter.rpcAsync().exit()).rejects.toMatchObject({ code: 'WORKER_DIED' }),
        until(() => cluster.deathOf('worker1') !== null),
      ])
      await sleep(50)
      expect(warn).not.toHaveBeenCalled()
      await cluster.call('worker2', program.exitSoon)
      await until(() => cluster.deathOf('worker2') !== null)
      await sleep(50)
      expect(warn).toHaveBeenCalledTimes(1)
    } finally {
      warn.mockRestore()
    }
  })

  test('CLU-81: under supervision a worker comes back, and its name can be called', async () => {
    const restarted: string[] = []
    const cluster = await launch(url, { workers: 2, supervision: { onRestart: ({ name }) => void restarted.push(name) } })
    await expect(cluster.call('worker1', program.exit)).rejects.toMatchObject({ code: 'WORKER_DIED' })
    while (restarted.length === 0) await sleep(10)
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
  })
})

describe('the end', () => {
  test('CLU-82: close with references held gives them up: no warning, no leak, at once', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      const cluster = await realLaunch(url, { workers: 2 })
      const counters = await Promise.all(['worker0', 'worker1'].map((name) => cluster.remote(name, Counter)))
      await cluster.call('worker0', program.keep, [1])
      expect(await counters[0]!.rpcSync().add(1)).toBe(1)
      const begin = performance.now()
      await cluster.close()
      expect(performance.now() - begin).toBeLessThan(2000)
      expect(warn).not.toHaveBeenCalled()
      expect((await cluster.closed).leaks).toEqual([])
    } finally {
      warn.mockRestore()
    }
  })

  test('CLU-82: what workers hold of the main thread is a leak as any other', async () => {
    const cluster = await realLaunch(url, { workers: 1, referenceLeaks: 'error' })
    await cluster.runHere(() => cluster.call('worker0', program.keep, [rref(new Counter())]))
    await expect(cluster.close()).rejects.toMatchObject({ code: 'RREF_LEAK', values: { leaks: [{ owner: 'main', holder: 'worker0' }] } })
  })

  test('CLU-82: close waits for its calls, then cuts them off with CLUSTER_CLOSED', async () => {
    const cluster = await launch(url, { workers: 1 })
    await cluster.call('worker0', program.who)
    const slow = cluster.call('worker0', program.later, [200])
    await cluster.close()
    expect(await slow).toBe(200)
    const impatient = await launch(url, { workers: 1 })
    await impatient.call('worker0', program.who)
    const cut = impatient.call('worker0', program.never).catch((error) => error)
    await impatient.close({ timeoutMs: 100 })
    expect(await cut).toMatchObject({ code: 'CLUSTER_CLOSED' })
  })

  test('CLU-82: after close', async () => {
    const cluster = await launch(url, { workers: 1 })
    const counter = await cluster.remote('worker0', Counter)
    await cluster.close()
    for (const use of [cluster.call('worker0', program.who), cluster.remote('worker0', Counter), cluster.runHere(() => 1)]) {
      await expect(use).rejects.toMatchObject({ code: 'CLUSTER_CLOSED' })
    }
    await expect(counter.rpcSync().add(1)).rejects.toMatchObject({ code: expect.stringMatching(/RREF_DELETED|RPC_SHUT_DOWN/) })
    const never = await launch(url, { workers: 1 })
    const entering = never.call('worker0', program.who).catch((error) => error.code)
    await never.close({ timeoutMs: 0 })
    expect(['worker0', 'CLUSTER_CLOSED']).toContain(await entering)
  })

  test('CLU-83: cluster.inspect sees its calls at the workers', async () => {
    const cluster = await launch(url, { workers: 1 })
    const events: ClusterEvent[] = []
    await cluster.inspect((event) => events.push(event))
    await cluster.call('worker0', program.who)
    await cluster.debugInfo()
    expect(events.some((event) => event.on === 'worker0' && JSON.stringify(event).includes('"main"'))).toBe(true)
  })
})

test('CLU-13: a process whose main thread has joined ends by itself when all workers have died', async () => {
  const { code, out } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'guest')
  expect({ code, out }).toEqual({ code: 0, out: 'WORKER_DIED,WORKER_DIED,WORKER_DIED\n3 false\nend of script\n' })
})
