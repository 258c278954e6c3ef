/** `launch({ processes })`: workers of several processes are one cluster, and what ends a process ends no other. Rules CLU-90 to CLU-99. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { shutdown } from '@postgrad/rpc'
import { launcher } from '../clusters.fixture.js'
import { script } from '../script.fixture.js'
import * as program from './fixtures/in-processes.js'

const launch = launcher()
let cleanUp: () => void = () => {}
afterEach(() => cleanUp())
const PROGRAM = new URL('./fixtures/in-processes.js', import.meta.url)

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function until(isSo: () => boolean): Promise<void> {
  for (let looks = 0; looks < 1000 && !isSo(); looks++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(isSo()).toBe(true)
}

describe('a cluster of several processes', () => {
  test('CLU-90 CLU-91 runs each block of workers in a process of its own, and all of them call each other', async () => {
    const cluster = await launch(PROGRAM, { workers: 4, processes: 2 })
    const pids = await Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(program.pid)))
    expect(pids[0]).toBe(pids[1])
    expect(pids[2]).toBe(pids[3])
    expect(new Set([...pids, process.pid]).size).toBe(3)
    const totals = await Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(program.everybody, 20)))
    expect(totals).toEqual([60, 60, 60, 60])
    expect(await cluster.on('worker0').run(program.sendLarge, 'worker1', 300_000)).toBe(1_200_000)
    expect(await cluster.on('worker0').run(program.sendLarge, 'worker3', 300_000)).toBe(1_200_000)
    await cluster.close()
    await until(() => pids.every((pid) => !isAlive(pid)))
  })

  test('CLU-100 a small call, and a reply, need not wait for a large tensor on the same way, where no order is promised', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], processes: 2 })
    const count = 6 * 2 ** 20
    expect(await cluster.on('a').run(program.everybody, 3)).toBe(3)
    // The reply left after the large call, and comes before it.
    const atA = await cluster.on('a').run(program.behindLarge, 'b', 'a', count)
    expect(atA).toEqual(['reply'])
    expect(await cluster.on('b').run(program.whatHappened)).toEqual(['unordered', 'large', 'small'])
    while ((await cluster.on('a').run(program.whatHappened)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    // The call left after the large result, and is served while that is still coming.
    expect(await cluster.on('a').run(program.behindResult, 'b', 'a', count)).toEqual(['call behind the result', `result of ${count}`])
    // Their totals agree: nothing waits for a word that has been overtaken.
    await cluster.close()
  })

  test.each([1, 2])('RPC-25 a reply that came while its caller computed is no timeout, workers in %i processes', async (processes) => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], ...(processes > 1 ? { processes } : {}) })
    expect(await cluster.on('a').run(program.computeBeforeReply, 'b', 2000)).toBe(3)
  })

  test('CLU-91 the main thread calls workers of every process, and they call it', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], processes: 2 })
    expect(await cluster.call('a', program.names)).toEqual(['a', 'b'])
    const counter = await cluster.remote('b', program.Counter, [])
    expect(await counter.call('add', [3])).toBe(3)
    expect(await counter.call('add', [4])).toBe(7)
    counter.dispose()
    // When it has left, a newcomer does not wait for it.
    await cluster.runHere(() => shutdown())
    await cluster.join('c')
    await expect(cluster.on('c').run(program.namesOf, 'main')).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'main' } })
  })

  test('CLU-15 the death of a process that SIGKILL has ended says that memory may be the cause', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'], processes: 1 })
    await expect(cluster.on('a').run(program.crash, 'SIGKILL')).rejects.toMatchObject({
      message: expect.stringMatching(/was ended by SIGKILL, perhaps because .* out of memory/),
    })
  })

  test('CLU-92 a process that crashes takes its own workers alone; who waits for them learns it by name, and they are started again', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c', 'd'], processes: 2 })
    const deaths: unknown[] = []
    cluster.onWorkerDeath((worker, error) => deaths.push([worker.name, error.values.cause]))
    const [pidOfA, pidOfC] = await Promise.all(['a', 'c'].map((name) => cluster.on(name).run(program.pid)))
    const waiting = cluster.on('a').run(program.waitFor, 'c')
    const crashed = cluster.on('d').run(program.crash, 'SIGSEGV')
    await expect(waiting).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'c' } })
    await expect(crashed).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'd', cause: 'process-ended' } })
    expect(cluster.deathOf('c')!.message).toContain(`its process (${pidOfC}) was ended by SIGSEGV`)
    expect(deaths).toEqual([
      ['c', 'process-ended'],
      ['d', 'process-ended'],
    ])
    expect(await cluster.on('a').run(program.pid)).toBe(pidOfA)
    expect(new Set(await cluster.on('b').run(program.names))).toEqual(new Set(['a', 'b']))
    await cluster.restart('c')
    await cluster.restart('d')
    const again = await Promise.all(['c', 'd'].map((name) => cluster.on(name).run(program.pid)))
    expect(again[0]).toBe(again[1])
    expect(again[0]).not.toBe(pidOfC)
    expect(await cluster.on('b').run(program.everybody, 3)).toBe(9)
  })

  test('CLU-93 a worker that is killed, or ends itself, ends alone; a process ends with its last worker', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c'], processes: 2 })
    const [ofA, ofB, ofC] = await Promise.all(['a', 'b', 'c'].map((name) => cluster.on(name).run(program.pid)))
    expect(ofA).toBe(ofB)
    await cluster.kill('a')
    expect(await cluster.on('b').run(program.pid)).toBe(ofB)
    await cluster.leave('c')
    await until(() => !isAlive(ofC!))
    expect(isAlive(ofB!)).toBe(true)
    const [joined] = await cluster.join(['e'])
    expect(await cluster.on('e').run(program.everybody, 2)).toBe(2)
    expect(joined!.name).toBe('e')
  })

  test('CLU-94 a process that stands still is reported as stalled, and no death; when it is ended it dies of that', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], processes: 2, stallMs: 500 })
    const stalled = new Promise((resolve) => cluster.onWorkerStalled(({ name }) => resolve(name)))
    const frozen = cluster.on('b').run(program.freeze)
    frozen.catch(() => {})
    expect(await stalled).toBe('b')
    expect(cluster.deathOf('b')).toBeNull()
    expect(await cluster.on('a').run(program.names)).toEqual(['a', 'b'])
    await cluster.kill('b')
    await expect(frozen).rejects.toMatchObject({ code: 'WORKER_DIED', values: { worker: 'b', cause: 'killed' } })
  })

  test('CLU-94 a worker that is busy when another first speaks to it, for longer than a connection may take, is no death', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], processes: 2, stallMs: 0 })
    const busy = cluster.on('b').run(program.block, 12_000)
    expect(await cluster.on('a').run(program.everybody, 1)).toBe(1)
    await busy
  })

  test('CLU-95 nothing stays behind: no process, no folder of sockets, also when the process of the cluster is killed', async () => {
    // Its own folder: other tests run at the same time.
    const own = mkdtempSync(join(tmpdir(), 'processes-test-'))
    const { TMPDIR } = process.env
    process.env.TMPDIR = own
    cleanUp = () => {
      if (TMPDIR === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = TMPDIR
      rmSync(own, { recursive: true, force: true })
    }
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], processes: 2 })
    await cluster.on('a').run(program.everybody, 1)
    await cluster.close()
    expect(readdirSync(own)).toEqual([])
    const { out } = await script(new URL('./fixtures/killed-with-processes.js', import.meta.url))
    const [folder, ...pids] = out.trim().split(' ')
    expect(pids).toHaveLength(2)
    await until(() => pids.every((pid) => !isAlive(Number(pid))))
    expect(existsSync(folder!)).toBe(false)
  })

  test('CLU-92 memory that ends a whole process ends the workers in it, where threads of the cluster’s own process would all be gone', async () => {
    const fixture = new URL('./fixtures/runs-out-of-memory.js', import.meta.url)
    const [threads, processes] = await Promise.all([script(fixture, '0'), script(fixture, '2')])
    expect([processes.code, processes.out.trim().split('\n').toSorted()]).toEqual([0, ['WORKER_DIED', 'a 3', 'b process-ended']])
    expect(threads.err).toContain('heap out of memory')
    expect([threads.code, threads.out]).toEqual([null, ''])
  })

  test('CLU-92 where no process can be started the launch is refused with the reason', async () => {
    const { code, out, err } = await script(new URL('./fixtures/no-process.js', import.meta.url))
    const [codes, death] = out.trim().split('\n') as [string, string]
    expect([code, err, codes.split(' ')]).toEqual([0, '', ['LAUNCH_FAILED', 'WORKER_DIED', 'PROCESS_FAILED', 'ENOENT']])
    expect(death).toMatch(/ died: process-ended, its process could not be started: .*ENOENT.*\. The machine may allow no more processes/)
  })

  test('CLU-92 where no open files are left for a process the launch is refused with that reason', async () => {
    const { code, out, err } = await script(new URL('./fixtures/no-process.js', import.meta.url), 'EMFILE')
    const [codes, death] = out.trim().split('\n') as [string, string]
    expect([code, err, codes.split(' ')]).toEqual([0, '', ['LAUNCH_FAILED', 'WORKER_DIED', 'TOO_MANY_OPEN_FILES', 'EMFILE']])
    expect(death).toMatch(/ died: process-ended, its process could not be started: .*EMFILE.* Raise the limit before you start the program/)
  })

  test('CLU-92 a worker that throws the failure of a launch of its own has had a process, and dies of what it threw', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'], processes: 1 })
    await expect(cluster.on('a').run(program.throwProcessFailed)).rejects.toMatchObject({
      code: 'WORKER_DIED',
      message: expect.stringContaining('died: uncaught-exception, its thread threw PostgradError: launch: a process could not be started'),
      values: { worker: 'a', cause: 'uncaught-exception' },
    })
  })

  test('CLU-92 a process that ends with several workers while they are started fails the launch alone', async () => {
    const started = launch(new URL('./fixtures/crashes-at-start.js', import.meta.url), { workers: 3, processes: 1 })
    await expect(started).rejects.toMatchObject({ code: 'LAUNCH_FAILED', cause: { values: { cause: 'process-ended' } } })
  })

  test('CLU-65 a number of processes that cannot be is refused', async () => {
    for (const processes of [0, 3, 1.5, Number.NaN]) {
      const refused = launch(PROGRAM, { workers: 2, processes })
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })
})
