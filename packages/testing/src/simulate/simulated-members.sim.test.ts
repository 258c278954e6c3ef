/** `sim.leave` and `sim.ready` next to what those of a cluster do. */
import { expect, test } from '@jest/globals'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { simulate } from './simulate.js'

const serve = async (ms: number): Promise<string> => {
  const { clock } = currentWorker()
  await new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
  return 'served'
}
const ask = (ms: number): Promise<string> =>
  call('worker1', serve, [ms]).then(
    (value) => value,
    (error) => error.code,
  )
const echo = (x: number): number => x
expose({ serve, ask, echo })

const echoed = (x: number): Promise<number | string> =>
  call('worker1', echo, [x]).then(
    (value) => value,
    (error) => error.code,
  )
const RESTART = { match: { to: 'worker1', kind: 'CALL' }, do: 'restart', delayMs: 100 } as const

test('TK-86 several sim.leave of one worker all resolve when it has ended', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const { result } = await simulate({ workers: 3, seed }, async (sim) => {
      const leaves = [0, 1, 2].map((i) => sim.leave('worker1', { timeoutMs: i * 100 }).then(() => sim.on('worker1').runtime.isClosed))
      return [...(await Promise.all(leaves)), await sim.leave('worker1').then(() => 'again')]
    })
    expect(result).toEqual([true, true, true, 'again'])
  }
})

test('TK-86 timeoutMs 0 cuts off at once what is under way; more, and Infinity, let it end', async () => {
  for (const [timeoutMs, answer, maxMs] of [
    [0, 'WORKER_DIED', 150],
    [5000, 'served', 5000],
    [Number.POSITIVE_INFINITY, 'served', 5000],
    [300, 'WORKER_DIED', 450],
    [undefined, 'served', 5000],
  ] as const) {
    const { result, timeMs } = await simulate({ workers: 2, ...(timeoutMs === undefined ? { rpcTimeoutMs: 0 } : {}) }, async (sim) => {
      const asked = sim.on('worker0').run(ask, 1500)
      await sim.on('worker0').run(serve, 100)
      await sim.leave('worker1', timeoutMs === undefined ? {} : { timeoutMs })
      return asked
    })
    expect([timeoutMs, result]).toEqual([timeoutMs, answer])
    expect(timeMs).toBeLessThan(maxMs)
  }
})

test('TK-86 a timeoutMs that is no time is refused', async () => {
  await simulate({ workers: 2 }, async (sim) => {
    await expect(sim.leave('worker1', { timeoutMs: Number.NaN })).rejects.toMatchObject({ code: 'TIMEOUT_INVALID' })
    await expect(sim.leave('worker1', { timeoutMs: -1 })).rejects.toMatchObject({ code: 'TIMEOUT_INVALID' })
    await sim.leave('worker1')
  })
})

test('TK-88 sim.ready waits for the worker that a fault rule brings back, in each of its lives', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const faults = [{ ...RESTART, times: 2 }]
    const { result } = await simulate({ workers: 2, seed, faults }, async (sim) => {
      const run = (x: number) => sim.on('worker0').run(echoed, x)
      const answers: unknown[] = []
      for (let x = 0; x < 3; x++) answers.push(await run(x), (await sim.ready('worker1')).info.id)
      return answers
    })
    expect(result).toEqual(['WORKER_DIED', 2, 'WORKER_DIED', 3, 2, 3])
  }
})

test('TK-88 sim.ready rejects with WORKER_DIED if nothing brings the worker back, and gives the one that the test starts', async () => {
  await simulate({ workers: 2, faults: [{ ...RESTART, do: 'crash' }] }, async (sim) => {
    expect(await sim.on('worker0').run(echoed, 1)).toBe('WORKER_DIED')
    await expect(sim.ready('worker1')).rejects.toMatchObject({
      code: 'WORKER_DIED',
      op: 'sim.ready',
      values: { worker: 'worker1', workerId: 1 },
    })
    sim.restart('worker1')
    expect((await sim.ready('worker1')).info.id).toBe(2)
    expect(await sim.on('worker0').run(echoed, 2)).toBe(2)
  })
  await simulate({ workers: 2, faults: [] }, async (sim) => {
    sim.restart('worker1')
    const ready = sim.ready('worker1')
    sim.crash('worker1')
    await expect(ready).rejects.toMatchObject({ code: 'WORKER_DIED' })
    await expect(sim.ready('worker1')).rejects.toMatchObject({ code: 'WORKER_DIED' })
    await expect(sim.ready('worker9')).rejects.toMatchObject({ code: 'UNKNOWN_WORKER' })
  })
})
