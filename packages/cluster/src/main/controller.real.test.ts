/** Functions that the main thread runs on a worker: values, errors, deadlines, the worker's death, and the end of the cluster. */

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { tensor } from '@postgrad/tensor'
import { launcher } from '../clusters.fixture.js'
import * as basics from '../fixtures/basics.js'
import { script } from '../script.fixture.js'
import type { Cluster } from './cluster.js'
import { launch as launchForAll } from './launch.js'

const launch = launcher()
const BASICS = new URL('../fixtures/basics.js', import.meta.url)

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    () => {
      throw new Error('it did not reject')
    },
    (error) => error,
  )
}

describe('values and errors', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await launchForAll(BASICS, { workers: ['a', 'b'] })
  })
  afterAll(() => cluster.close())

  test('tensors go there and come back', async () => {
    const sum = await cluster.on('a').run(
      basics.addTensors,
      tensor([
        [1, 2],
        [3, 4],
      ]),
      tensor([10, 20]),
    )
    expect(sum.shape).toEqual([2, 2])
    expect(sum.toArray()).toEqual([
      [11, 22],
      [13, 24],
    ])
    expect(sum.requiresGrad).toBe(false)
  })

  test('a large tensor is moved whole, and the sender keeps its own', async () => {
    const big = tensor(Float32Array.from({ length: 100_000 }, (_, i) => i))
    const doubled = await cluster.on('a').run(basics.addTensors, big, big)
    expect(doubled.dataSync()[99_999]).toBe(199_998)
    expect(big.dataSync()[99_999]).toBe(99_999)
  })

  test('a parameter made here still requires grad there', async () => {
    expect(await cluster.on('a').run(basics.requiresGrad, tensor([1], { requiresGrad: true }))).toBe(true)
    expect(await cluster.on('a').run(basics.requiresGrad, tensor([1]))).toBe(false)
  })

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['-0', -0],
    ['a bigint', 2n ** 70n],
    ['a date', new Date(5)],
    ['nested collections', { map: new Map([['k', new Set([1, 2])]]), list: [1, [2, [3]]] }],
    ['a typed array', new Uint16Array([1, 65_535])],
    ['text', 'grün'],
  ])('%s survives', async (_name, value) => {
    expect(await cluster.on('b').run(basics.echo, value)).toEqual(value)
  })

  test('a built-in error keeps class, message and the stack there', async () => {
    const error = await rejection(cluster.on('a').run(basics.fail, 'TypeError'))
    expect(error.name).toBe('TypeError')
    expect(error.message).toBe('not that type')
    expect(error.remoteStack ?? error.stack).toContain('basics.js')
  })

  test('a PostgradError keeps code, op, remedy and values', async () => {
    const error = await rejection(cluster.on('a').run(basics.fail, 'PostgradError'))
    expect(isPostgradError(error, 'SOME_CODE')).toBe(true)
    expect(error).toMatchObject({ op: 'fail', remedy: 'Ask less.', values: { n: 3, list: [1, 2] } })
    expect(error.remoteStack).toContain('basics.js')
  })

  test('a cause survives', async () => {
    const error = await rejection(cluster.on('a').run(basics.fail, 'cause'))
    expect(error.name).toBe('RangeError')
    expect(error.cause).toMatchObject({ name: 'SyntaxError', message: 'inner' })
  })

  test("a class of the program's own is told by its name", async () => {
    const error = await rejection(cluster.on('a').run(basics.fail, 'own'))
    expect(`${error.name} ${error.message} ${JSON.stringify(error.values)}`).toContain('Odd')
    expect(error.message).toContain('an own class')
  })

  test('what is thrown need not be an error', async () => {
    const error = await rejection(cluster.on('a').run(basics.fail, 'string'))
    expect(String(error)).toContain('only text')
  })

  test('a function that is not exposed is refused here, an unknown name there', async () => {
    expect(await rejection(cluster.on('a').run(basics.notExposed))).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
    expect(await rejection(cluster.on('a').run('nobodyKnowsThis'))).toMatchObject({
      code: 'FUNCTION_NOT_EXPOSED',
      values: { function: 'nobodyKnowsThis' },
    })
  })

  test('an exposed function may be named', async () => {
    expect(await cluster.on('a').run('whoAmI')).toBe('a')
  })

  test('CLU-121: a run calls a static method on its class, makes an object of a class, asks a marked function for a future', async () => {
    const a = cluster.on('a')
    expect(await a.run(basics.Scale.times, 2)).toBe(6)
    // An object of a class does not travel, so it was made.
    expect(await rejection(a.run('Scale'))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', message: expect.stringContaining('Scale') })
    expect(await rejection(a.run(basics.forgetsFuture))).toMatchObject({ code: 'ASYNC_EXECUTION_NO_FUTURE', op: 'forgetsFuture' })
  })

  test('CLU-84: what cannot travel is refused, and who has references is said, as an argument and as a result', async () => {
    expect(await rejection(cluster.on('a').run(basics.echo, () => 1))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
    const remedy = expect.stringContaining('cluster.remote')
    expect(await rejection(cluster.on('a').run(basics.giveRRef))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', remedy })
    const held = await cluster.remote('b', basics.random)
    expect(await rejection(cluster.on('a').run(basics.echo, [held]))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE', remedy })
    held.dispose()
    expect(await cluster.on('a').run(basics.whoAmI)).toBe('a')
  })

  test('an unknown worker is named with the known ones', () => {
    expect(() => cluster.on('c')).toThrow(PostgradError)
    expect(() => cluster.on(7)).toThrow(/'a' \(0\), 'b' \(1\)/)
  })

  test('a deadline rejects, and the worker goes on', async () => {
    const error = await rejection(cluster.on('a', { timeoutMs: 30 }).run(basics.afterTurns, 1, 150))
    expect(error).toMatchObject({ code: 'RUN_TIMEOUT', values: { worker: 'a', timeoutMs: 30 } })
    expect(await cluster.on('a').run(basics.afterTurns, 2, 1)).toBe(2)
  })

  test('CLU-85 a run that is out of time is cancelled there: its signal aborts, and the calls that it has made are cancelled', async () => {
    const { length } = await cluster.on('b').run(basics.cancelledSoFar, 0)
    const runs = [
      cluster.on('b', { timeoutMs: 50 }).run(basics.untilCancelled, 'late'),
      cluster.on('a', { timeoutMs: 50 }).run(basics.callUntilCancelled, 'b', 'called late'),
    ]
    for (const run of runs) expect(await rejection(run)).toMatchObject({ code: 'RUN_TIMEOUT' })
    const seen = await cluster.on('b').run(basics.cancelledSoFar, length + 2)
    expect([...seen.slice(length)].sort()).toEqual(['called late CALL_CANCELLED', 'late CALL_CANCELLED'])
  })

  test('CLU-85 so is one whose signal aborts, which rejects with CALL_CANCELLED; one that has ended is not', async () => {
    const { length } = await cluster.on('b').run(basics.cancelledSoFar, 0)
    const controller = new AbortController()
    const { signal } = controller
    const run = rejection(cluster.on('a', { signal }).run(basics.callUntilCancelled, 'b', 'aborted'))
    expect(await cluster.on('b', { signal }).run(basics.echo, 1)).toBe(1)
    const reason = new Error('not wanted')
    controller.abort(reason)
    expect(await run).toMatchObject({ code: 'CALL_CANCELLED', op: 'run', values: { worker: 'a' }, cause: reason })
    expect((await cluster.on('b').run(basics.cancelledSoFar, length + 1)).slice(length)).toEqual(['aborted CALL_CANCELLED'])
    // Nothing is begun any more.
    expect(await rejection(cluster.on('b', { signal }).run(basics.untilCancelled, 'never'))).toMatchObject({ code: 'CALL_CANCELLED' })
    expect(await cluster.on('b').run(basics.cancelledSoFar, 0)).toHaveLength(length + 1)
    expect(() => cluster.on('b', { signal: 'no' as never })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  test('0 is no deadline, as in a call; what is no time is refused', async () => {
    expect(await cluster.on('a', { timeoutMs: 0 }).run(basics.afterTurns, 3, 20)).toBe(3)
    for (const timeoutMs of [Number.NaN, -1])
      expect(() => cluster.on('a', { timeoutMs })).toThrow(expect.objectContaining({ code: 'TIMEOUT_INVALID', op: 'cluster.on' }))
  })

  test('runs interleave', async () => {
    const order: number[] = []
    await Promise.all([100, 5].map(async (delayMs) => order.push(await cluster.on('a').run(basics.afterTurns, delayMs, delayMs))))
    expect(order).toEqual([5, 100])
  })

  test('debugInfo counts by worker, and is where it was after runs', async () => {
    const before = await cluster.debugInfo()
    for (let i = 0; i < 20; i++) await cluster.on('a').run(basics.callWhoAmI, 'b')
    const after = await cluster.debugInfo()
    expect(Object.keys(after)).toEqual(['a', 'b'])
    for (const name of ['a', 'b']) {
      expect(after[name]).toMatchObject({ pendingCalls: 0, servingCalls: 0, ports: before[name]!.ports })
      expect(after[name]!.heapUsedBytes).toBeGreaterThan(0)
    }
  })
})

describe('the death of a worker', () => {
  test('rejects every pending run at once by name, and later ones; the others go on', async () => {
    const cluster = await launch(BASICS, { workers: ['a', 'b'] })
    const deaths: string[] = []
    cluster.onWorkerDeath((worker, error) => deaths.push(`${worker.name} ${error.code}`))
    const pending = [cluster.on('a').run(basics.forever), cluster.on('a').run(basics.forever)].map(rejection)
    const atPeer = rejection(cluster.on('b').run(basics.callForever, 'a'))
    await cluster.on('b').run(basics.callWhoAmI, 'a')
    await cluster.kill('a')
    for (const error of await Promise.all(pending)) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'a' } })
    expect(await atPeer).toMatchObject({ code: 'WORKER_DIED' })
    expect((await atPeer).message).toContain("'a'")
    expect(await rejection(cluster.on('a').run(basics.whoAmI))).toMatchObject({ code: 'WORKER_DIED' })
    expect(await cluster.on('b').run(basics.whoAmI)).toBe('b')
    expect(Object.keys(await cluster.debugInfo())).toEqual(['b'])
    await cluster.close()
    expect(deaths).toEqual(['a WORKER_DIED'])
    expect((await cluster.closed).deaths.map((error) => error.values.worker)).toEqual(['a'])
  })

  test('by an endless loop that is killed', async () => {
    const cluster = await launch(BASICS, { workers: ['a', 'b'] })
    const spinning = rejection(cluster.on('a').run(basics.spin))
    await cluster.on('b').run(basics.whoAmI)
    await cluster.kill('a')
    expect(await spinning).toMatchObject({ code: 'WORKER_DIED' })
    await cluster.close()
  })

  test('by process.exit: the exit code is told', async () => {
    const cluster = await launch(BASICS, { workers: ['a'] })
    expect(await rejection(cluster.on('a').run(basics.exit, 7))).toMatchObject({
      code: 'WORKER_DIED',
      values: { worker: 'a', exitCode: 7 },
    })
    await cluster.closed
  })

  test('by an error that nobody catches: it is the cause', async () => {
    const cluster = await launch(BASICS, { workers: ['a'] })
    const pending = rejection(cluster.on('a').run(basics.forever))
    await cluster.on('a').run(basics.throwLater)
    const error = await pending
    expect(error).toMatchObject({ code: 'WORKER_DIED', cause: { name: 'RangeError', message: 'nobody catches this' } })
    expect(error.message).toContain('nobody catches this')
    await cluster.close()
  })
})

test('a listener that throws costs nobody the news of a death, and is not hidden', async () => {
  const { code, out, err } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'listener-throws')
  expect([code, out]).toEqual([0, 'second listener: a\n1 death\nend of script\nuncaught: the listener fails\n'])
  expect(err).toBe('')
})

test('progress that its listener cannot take does not keep a dead worker from being dead', async () => {
  const { code, out } = await script(new URL('../fixtures/ends-by-itself.js', import.meta.url), 'progress-throws')
  expect([code, out]).toEqual([0, 'WORKER_DIED 1 death\nend of script\n5 uncaught\n'])
})

test('a worker that runs out of its memory dies, and is named with the reason', async () => {
  const cluster = await launch(BASICS, { workers: ['a', 'b'], workerOptions: { resourceLimits: { maxOldGenerationSizeMb: 32 } } })
  const error = await rejection(cluster.on('a').run(basics.hoard))
  expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'a' }, cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' } })
  expect(await cluster.on('b').run(basics.whoAmI)).toBe('b')
})

describe('close', () => {
  test('waits for what is under way', async () => {
    const cluster = await launch(BASICS, { workers: ['a', 'b'] })
    const pending = cluster.on('a').run(basics.afterTurns, 9, 100)
    await cluster.close()
    expect(await pending).toBe(9)
  })

  test('cuts off what does not end, refuses what comes later, and may be called again', async () => {
    const cluster = await launch(BASICS, { workers: ['a', 'b'] })
    const pending = rejection(cluster.on('a').run(basics.forever))
    const call = rejection(cluster.on('b').run(basics.callForever, 'a'))
    const closing = cluster.close({ timeoutMs: 50 })
    expect(cluster.close()).toBe(closing)
    expect(await rejection(cluster.on('a').run(basics.whoAmI))).toMatchObject({ code: 'CLUSTER_CLOSED' })
    await closing
    expect(await pending).toMatchObject({ code: 'CLUSTER_CLOSED' })
    expect(await call).toMatchObject({ code: 'CLUSTER_CLOSED' })
    expect((await cluster.closed).deaths).toEqual([])
  })

  test('a second close with less time hastens the first, one with more does not delay it', async () => {
    const cluster = await launch(BASICS, { workers: ['a'] })
    const pending = rejection(cluster.on('a').run(basics.forever))
    const started = performance.now()
    const patient = cluster.close({ timeoutMs: 20_000 })
    await cluster.close({ timeoutMs: 0 })
    await patient
    expect(performance.now() - started).toBeLessThan(5000)
    expect(await pending).toMatchObject({ code: 'CLUSTER_CLOSED' })
  })

  test('refuses what is no time, and goes on', async () => {
    const cluster = await launch(BASICS, { workers: ['a'] })
    expect(() => cluster.close({ timeoutMs: Number.NaN })).toThrow(expect.objectContaining({ code: 'TIMEOUT_INVALID' }))
    expect(await cluster.on('a').run(basics.whoAmI)).toBe('a')
  })

  test('ends a worker that keeps a timer open, and one that spins', async () => {
    const cluster = await launch(BASICS, { workers: ['a', 'b'] })
    await cluster.on('a').run(basics.keepOpen)
    const spinning = rejection(cluster.on('b').run(basics.spin))
    await cluster.close({ timeoutMs: 20 })
    expect(await spinning).toMatchObject({ code: 'CLUSTER_CLOSED' })
  })
})
