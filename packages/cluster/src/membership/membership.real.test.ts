/** Workers join, leave and restart while a cluster runs, and what the others see of it. Rules CLU-n in SPEC.md. */
import { afterEach, describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { call } from '@postgrad/rpc'
import { heapStats, threadHeap, verifyHeap } from '@postgrad/tensor/internal'
import { launcher } from '../clusters.fixture.js'
import * as members from '../fixtures/members.js'
import type { Cluster, ClusterEnd } from '../main/cluster.js'
import { script } from '../script.fixture.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/members.js', import.meta.url)

afterEach(() => {
  const heap = threadHeap()
  expect([...heapStats(heap).heldBytes.keys()].filter((slot) => slot !== heap.slot)).toEqual([])
  expect(verifyHeap(heap.words, [{ slot: heap.slot, held: heap.audit() }])).toEqual([])
})

function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    (value) => {
      throw new Error(`it did not reject, it gave ${JSON.stringify(value)}`)
    },
    (error) => error,
  )
}

const names = (cluster: Cluster): string[] => cluster.workers.map(({ name }) => name)

/** Who was cut off had no time to say so: the others learn it from the end of their own links to it, which may come after that of its thread. */
async function untilGone(cluster: Cluster, gone: string, among: readonly string[]): Promise<void> {
  for (const name of among) {
    while ((await cluster.on(name).run(members.whoIsThere)).includes(gone)) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Everybody knows the same workers, and every pair can call each other, with tensors that travel through the heap. */
async function expectAllLinked(cluster: Cluster, living: readonly string[]): Promise<void> {
  const there = cluster.workers.filter(({ name }) => living.includes(name)).map(({ name, id }) => `${name}:${id}`)
  expect(there.length).toBe(living.length)
  for (const name of living) {
    expect([...(await cluster.on(name).run(members.whoIsThere))].sort()).toEqual([...there].sort())
    const others = living.filter((other) => other !== name).sort()
    expect(await cluster.on(name).run(members.askAll)).toEqual(others.map((other) => `${other} ${64 * 64 * 2}`))
  }
}

describe('join', () => {
  test('CLU-1 a newcomer knows everybody while it loads, and everybody calls everybody as soon as it has joined', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    expect(await cluster.join('c')).toEqual({ name: 'c', id: 2 })
    expect([...(await cluster.on('c').run(members.seenAtStart))].sort()).toEqual(['a', 'b', 'c'])
    await expectAllLinked(cluster, ['a', 'b', 'c'])
    expect(await cluster.join(['d', 'e'])).toEqual([
      { name: 'd', id: 3 },
      { name: 'e', id: 4 },
    ])
    await expectAllLinked(cluster, ['a', 'b', 'c', 'd', 'e'])
    expect(names(cluster)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('CLU-1 joins at once are linked with each other, whichever is ready first', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    await Promise.all([cluster.join('b'), cluster.join(['c', 'd']), cluster.join('e')])
    await expectAllLinked(cluster, ['a', 'b', 'c', 'd', 'e'])
  })

  test('CLU-2 what is under way goes on', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const calls = cluster.on('a').run(members.askSlowly, 'b', 600)
    await cluster.join('c')
    expect(await calls).toBe('b')
  })

  test('CLU-3 a name that is alive or being started is taken; that of a dead worker is free', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    expect(await rejection(cluster.join('a'))).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'a', workerId: 0 } })
    const first = cluster.join('c')
    expect(await rejection(cluster.join(['d', 'c']))).toMatchObject({ code: 'WORKER_NAME_TAKEN', values: { worker: 'c' } })
    await first
    await cluster.kill('b')
    await cluster.join(['b', 'd'])
    await expectAllLinked(cluster, ['a', 'b', 'c', 'd'])
  })

  test('CLU-3 what is no name, a name twice, and nobody are refused', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    const refused: [string[], string][] = [
      [['no name'], 'WORKER_NAME_INVALID'],
      [['c', 'c'], 'WORKER_NAME_DUPLICATE'],
      [[], 'WORKER_COUNT_INVALID'],
    ]
    for (const [wanted, code] of refused) {
      expect(await rejection(cluster.join(wanted))).toMatchObject({ code })
      expect(names(cluster)).toEqual(['a'])
    }
  })

  test('CLU-4 newcomers that cannot start all fail, with the reason, and nobody else notices', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], workerOptions: { resourceLimits: (name) => limitsOf(name) } })
    const error = await rejection(cluster.join(['c', 'small']))
    expect(error).toMatchObject({ code: 'LAUNCH_FAILED', op: 'cluster.join', values: { worker: 'small' } })
    expect(error.cause).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'out-of-memory' } })
    expect(names(cluster)).toEqual(['a', 'b'])
    await expectAllLinked(cluster, ['a', 'b'])
    await cluster.join('c')
    await expectAllLinked(cluster, ['a', 'b', 'c'])
    await cluster.close()
    expect(await cluster.closed).toEqual({ deaths: [], leaks: [] })
  })

  test('CLU-4 a newcomer that is not ready in time is ended', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    const error = await rejection(cluster.join('b', { timeoutMs: 1 }))
    expect(error).toMatchObject({ code: 'LAUNCH_FAILED', cause: { code: 'RUN_TIMEOUT' } })
    await expectAllLinked(cluster, ['a'])
    await cluster.join('b')
    await expectAllLinked(cluster, ['a', 'b'])
  })

  test('CLU-5 workers that die while others join leave the rest linked', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c'] })
    for (let round = 0; round < 3; round++) {
      const joining = cluster.join(`new${round}`)
      await new Promise((resolve) => setTimeout(resolve, round * 120))
      const victim = cluster.workers.find(({ name }) => name === ['b', 'c', 'a'][round])!
      await cluster.kill(victim)
      await joining
      const living = names(cluster).filter((name) => cluster.deathOf(name) === null)
      await untilGone(cluster, `${victim.name}:${victim.id}`, living)
      await expectAllLinked(cluster, living)
      await cluster.restart(['b', 'c', 'a'][round]!)
    }
    await expectAllLinked(cluster, ['a', 'b', 'c', 'new0', 'new1', 'new2'])
    expect((await ended(cluster)).deaths.length).toBe(3)
  })

  test('CLU-6 a cluster that is closed while a worker joins ends, and the join says so', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    const joining = rejection(cluster.join('b'))
    await cluster.close({ timeoutMs: 0 })
    expect(await joining).toMatchObject({ code: 'CLUSTER_CLOSED' })
    expect(await cluster.closed).toEqual({ deaths: [], leaks: [] })
    expect(await rejection(cluster.join('c'))).toMatchObject({ code: 'CLUSTER_CLOSED', op: 'cluster.join' })
  })
})

describe('ready', () => {
  test('CLU-58 waits for who is being started, and for nobody else', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    cluster.onWorkerDeath(() => {})
    expect(await cluster.ready('a')).toEqual({ name: 'a', id: 0 })
    expect(await rejection(cluster.ready('c'))).toMatchObject({ code: 'UNKNOWN_WORKER', op: 'cluster.ready' })
    const joining = cluster.join('c')
    expect(await cluster.ready('c')).toEqual(await joining)
    await cluster.kill('a')
    expect(await rejection(cluster.ready('a'))).toMatchObject({ code: 'WORKER_DIED', op: 'cluster.ready' })
    const restarting = cluster.restart('a')
    expect(await rejection(cluster.ready('a', { timeoutMs: 1 }))).toMatchObject({ code: 'RUN_TIMEOUT', values: { worker: 'a' } })
    const ready = await cluster.ready('a')
    expect(ready).toEqual({ name: 'a', id: 3 })
    expect(await restarting).toEqual(ready)
    const leaving = cluster.leave('c')
    expect(await rejection(cluster.ready('c'))).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
    await leaving
    const late = rejection(Promise.all([cluster.restart('b'), cluster.ready('b')]).then(() => cluster.ready('nobody')))
    await cluster.close({ timeoutMs: 0 })
    expect(await late).toMatchObject({ code: 'CLUSTER_CLOSED' })
  })

  test('CLU-58 waits for a supervisor, too', async () => {
    let prepared = 0
    const onRestart = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      prepared++
    }
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], supervision: { intensity: 5, onRestart } })
    await rejection(cluster.on('a').run(members.exit, 1))
    expect(await cluster.ready('a')).toEqual({ name: 'a', id: 2 })
    expect(prepared).toBe(1)
    expect(await cluster.ready('b')).toEqual({ name: 'b', id: 1 })
    await cluster.leave('b')
    expect(await rejection(cluster.ready('b'))).toMatchObject({ code: 'UNKNOWN_WORKER' })
    expect(await cluster.on('a').run(members.whoIsThere)).toEqual(expect.any(Array))
    await cluster.close()
  })

  test('CLU-58 waits for the end of a worker that the main thread has killed, or to which it has lost its link', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'], supervision: { intensity: 20, minBackoffMs: 0 } })
    const killed = cluster.kill('a')
    expect(await cluster.ready('a')).toEqual({ name: 'a', id: 2 })
    await killed
    const lives = await cluster.runHere(async () => {
      const ready: number[] = []
      for (let id = 1; ready.length < 5; id = ready.at(-1)!) {
        expect(await rejection(call('b', members.exit, [7]))).toMatchObject({ code: 'WORKER_DIED', values: { workerId: id } })
        ready.push((await cluster.ready('b')).id)
        expect(await call('b', members.whoAmI)).toBe('b')
      }
      return ready
    })
    expect(lives).toEqual([3, 4, 5, 6, 7])
    await cluster.close()
  })

  test('CLU-58 a worker that is being killed and that nobody starts again', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    const killed = cluster.kill('a')
    expect(await rejection(cluster.ready('a'))).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'killed' } })
    await killed
  })
})

describe('leave', () => {
  test('CLU-7 its runs and calls end, the others know, and it is no death', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c'] })
    const run = cluster.on('b').run(members.slowly, 300)
    const made = cluster.on('b').run(members.askSlowly, 'a', 400)
    const served = cluster.on('c').run(members.askSlowly, 'b', 500)
    await run
    await cluster.leave('b')
    expect(await Promise.all([made, served])).toEqual(['a', 'b'])
    expect(names(cluster)).toEqual(['a', 'c'])
    await expectAllLinked(cluster, ['a', 'c'])
    expect(await cluster.on('a').run(members.callTo, 'b')).toBe('WORKER_DIED about b as left')
    expect(await rejection(cluster.leave('b'))).toMatchObject({ code: 'UNKNOWN_WORKER' })
    expect((await ended(cluster)).deaths).toEqual([])
  })

  test('CLU-7 listeners hear of those that left, of a restart too, and of none that died or was closed', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c', 'd'] })
    cluster.onWorkerDeath(() => {})
    const left: string[] = []
    const stop = cluster.onWorkerLeft(({ name, id }) => left.push(`${name}:${id}`))
    await cluster.leave('b')
    await cluster.kill('d')
    await cluster.restart('c')
    expect(left).toEqual(['b:1', 'c:2'])
    stop()
    await cluster.leave('c')
    await cluster.close()
    expect(left).toHaveLength(2)
  })

  test('CLU-18 errors name what was asked, and remedies only what helps', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    cluster.onWorkerDeath(() => {})
    const unknown = [cluster.leave('x'), cluster.restart('x'), cluster.kill('x'), cluster.join('a')].map(rejection)
    expect((await Promise.all(unknown)).map(({ op, code }) => [op, code])).toEqual([
      ['cluster.leave', 'UNKNOWN_WORKER'],
      ['cluster.restart', 'UNKNOWN_WORKER'],
      ['cluster.kill', 'UNKNOWN_WORKER'],
      ['worker name', 'WORKER_NAME_TAKEN'],
    ])
    expect((await rejection(cluster.on('a').run(members.exit, 2))).remedy).toContain('cluster.restart')
    const supervised = await launch(PROGRAM, { workers: ['a'], supervision: {} })
    expect((await rejection(supervised.on('a').run(members.exit, 2))).remedy).toContain('supervisor starts it again')
    const { message } = await rejection(launch(new URL('../fixtures/exits-at-import.js', import.meta.url), { workers: 1 }))
    expect(message).toContain('exit code 4')
    expect(message).not.toContain('cluster.restart')
  })

  test('CLU-7 what does not end is cut off, also in a worker that spins', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const run = rejection(cluster.on('b').run(members.forever))
    const spinning = rejection(cluster.on('b').run(members.spin))
    await cluster.leave('b', { timeoutMs: 20 })
    for (const error of [await run, await spinning]) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
    await untilGone(cluster, 'b:1', ['a'])
    await expectAllLinked(cluster, ['a'])
  })

  test('CLU-8 references that it held are disposed; what it owned is gone', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c'] })
    await cluster.on('b').run(members.hold, 'a')
    await cluster.on('c').run(members.hold, 'b')
    expect(await cluster.on('a').run(members.owned)).toBe(1)
    await cluster.leave('b')
    expect(await cluster.on('c').run(members.useHeld)).toBe('WORKER_DIED about b as left')
    expect(await cluster.on('a').run(members.owned)).toBe(0)
  })

  test('CLU-9 one that dies before it could leave is a death; a dead one is forgotten', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    cluster.onWorkerDeath(() => {})
    const run = rejection(cluster.on('b').run(members.slowly, 60_000))
    const leaving = rejection(cluster.leave('b', { timeoutMs: 60_000 }))
    await cluster.kill('b')
    expect(await leaving).toMatchObject({ code: 'WORKER_DIED', op: 'cluster.leave', values: { worker: 'b', cause: 'killed' } })
    await run
    expect(names(cluster)).toEqual(['a', 'b'])
    await cluster.leave('b')
    expect(names(cluster)).toEqual(['a'])
    expect((await ended(cluster)).deaths.length).toBe(1)
  })

  test.each(['leave', 'restart'] as const)('CLU-9 one that was dying when it was asked to end by %s has died and not left', async (op) => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const heard: unknown[] = []
    cluster.onWorkerDeath(({ name }, { values }) => heard.push(`${name} ${values.cause} ${values.exitCode}`))
    await cluster.on('b').run(members.dieSoon, 300, 3)
    if (op === 'leave') {
      expect(await rejection(cluster.leave('b'))).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'b', cause: 'exited' } })
    } else {
      expect(await cluster.restart('b')).toEqual({ name: 'b', id: 2 })
      await expectAllLinked(cluster, ['a', 'b'])
    }
    expect(heard).toEqual(['b exited 3'])
    expect((await ended(cluster)).deaths.length).toBe(1)
  })
})

describe('restart', () => {
  test('CLU-10 the same name, a fresh id, and errors about the old one name the new', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    await cluster.on('a').run(members.hold, 'b')
    const former = cluster.on('b')
    const dead = rejection(cluster.on('b').run(members.exit, 3))
    await dead
    expect(await cluster.on('a').run(members.callTo, 'b')).toBe('WORKER_DIED about b as link-closed')
    expect(await cluster.restart('b')).toEqual({ name: 'b', id: 2 })
    await expectAllLinked(cluster, ['a', 'b'])
    expect(await cluster.on('a').run(members.callTo, 1)).toBe('WORKER_DIED about b as link-closed, now 2')
    expect(await cluster.on('a').run(members.useHeld)).toBe('WORKER_DIED about b as link-closed, now 2')
    // RPC-41: the new life of b knows its former one.
    expect(await cluster.on('b').run(members.callTo, 1)).toBe('WORKER_DIED about b as exited, now 2')
    expect(await rejection(former.run(members.whoAmI))).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 1, restartedAs: 2 } })
    expect((await ended(cluster)).deaths.map(({ values }) => values)).toEqual([
      { worker: 'b', workerId: 1, cause: 'exited', detail: 'its thread ended with exit code 3 (process.exit)', exitCode: 3 },
    ])
  })

  test('CLU-10 one that is alive leaves first; ids are never used again', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const ids: number[] = []
    for (let round = 0; round < 3; round++) {
      ids.push((await cluster.restart('b')).id)
      await expectAllLinked(cluster, ['a', 'b'])
    }
    expect(ids).toEqual([2, 3, 4])
    expect((await ended(cluster)).deaths).toEqual([])
  })

  test('CLU-11 random numbers continue by the name and its lives, the same in every run', async () => {
    const draw = async (): Promise<number[]> => {
      const cluster = await launch(PROGRAM, { workers: ['a', 'b'], seed: 3 })
      const drawn = [await cluster.on('b').run(members.draw)]
      await cluster.restart('b')
      drawn.push(await cluster.on('b').run(members.draw))
      await cluster.kill('b')
      await cluster.restart('b')
      drawn.push(await cluster.on('b').run(members.draw), await cluster.on('a').run(members.draw))
      await cluster.close()
      return drawn
    }
    const first = await draw()
    expect(new Set(first).size).toBe(4)
    expect(await draw()).toEqual(first)
  })

  test('CLU-12 all may die and one be started again; restarts of different workers at once', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b', 'c'] })
    await Promise.all(['a', 'b', 'c'].map((name) => cluster.kill(name)))
    expect((await cluster.closed).deaths.length).toBe(3)
    await Promise.all(['c', 'a', 'b'].map((name) => cluster.restart(name)))
    await expectAllLinked(cluster, ['a', 'b', 'c'])
  })

  test('CLU-12 of two changes of one worker at once the second is told that the name is taken', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const taken = { code: 'WORKER_NAME_TAKEN', values: { worker: 'b' } }
    const restarting = cluster.restart('b')
    const late = [rejection(cluster.restart('b')), rejection(cluster.leave('b')), rejection(cluster.join('b'))]
    for (const error of await Promise.all(late)) expect(error).toMatchObject(taken)
    expect(await restarting).toEqual({ name: 'b', id: 2 })
    await expectAllLinked(cluster, ['a', 'b'])
    const leaving = cluster.leave('b')
    expect(await rejection(cluster.restart('b'))).toMatchObject(taken)
    await Promise.all([leaving, cluster.leave('b')])
    expect(names(cluster)).toEqual(['a'])
  })
})

test('CLU-16 a dead worker leaves nothing in the main thread, nor does one that left', async () => {
  const { out, err } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'collected')
  expect([out, err]).toEqual(['1 thread of 5\nend of script\n', ''])
})

test('CLU-13 a process with a cluster that has changed ends by itself when it is closed', async () => {
  const { code, out, err } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'members')
  expect([code, out, err]).toEqual([0, 'a b d\nend of script\n', ''])
})

/** 'small' cannot even load the program. */
const limitsOf = (name: string) => (name === 'small' ? { maxOldGenerationSizeMb: 4 } : undefined)

async function ended(cluster: Cluster): Promise<ClusterEnd> {
  await cluster.close()
  return cluster.closed
}
