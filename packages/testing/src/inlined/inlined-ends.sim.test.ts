/** How an inlined run ends that does not end by itself. */
import * as inspector from 'node:inspector'
import { expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { call, currentWorker, expose, remote, stream } from '@postgrad/rpc'
import { meet } from '@postgrad/rpc/internal'
import type { TestCluster } from '../simulate/cluster.js'
import { simulate } from '../simulate/simulate.js'
import { inlined } from './inlined.js'

const never = () => new Promise<void>(() => {})
const askNever = (on: string) => call(on, never, [])
async function* silent(): AsyncGenerator<number> {
  yield 1
  await never()
}
expose({ 'inlined.never': never, 'inlined.askNever': askNever, 'inlined.silent': silent })

const errorOf = (run: Promise<unknown>): Promise<PostgradError> =>
  run.then(
    () => Promise.reject(new Error('it ended')),
    (error: PostgradError) => error,
  )

const onFirst = (main: () => unknown) => (cluster: TestCluster) => cluster.on('worker0').run(main)

test('TK-83 a call that nobody answers ends in SIM_DEADLOCK, as in a simulation, and the error says who waits', async () => {
  const body = onFirst(() => call('worker1', askNever, ['worker2']))
  const error = await errorOf(inlined({ workers: 3 }, body))
  expect(error).toMatchObject({ code: 'SIM_DEADLOCK' })
  expect(error.values.waits).toEqual([
    "worker0 waits for inlined.askNever from worker 'worker1'",
    "worker1 waits for inlined.never from worker 'worker2'",
  ])
  expect(error.message).toContain('Who waits for whom:\n  worker0 waits for inlined.askNever')
  expect(await errorOf(simulate({ workers: 3, rpcTimeoutMs: 0 }, body))).toMatchObject({ code: 'SIM_DEADLOCK' })
})

test.each<readonly [what: string, main: () => unknown, waits: RegExp]>([
  ['a promise of the program’s own', never, /^$/],
  [
    'an item of a stream',
    async () => {
      for await (const _ of stream('worker1', silent, []));
    },
    /worker0 waits for a stream of inlined.silent from worker 'worker1'/,
  ],
  ['the value of a reference', () => remote('worker1', never, []).toHere({ timeoutMs: 0 }), /waits for the value of .*RRef/],
])('TK-83 so does a program that waits for %s', async (_, main, waits) => {
  const error = await errorOf(inlined({ workers: 2 }, onFirst(main)))
  expect(error).toMatchObject({ code: 'SIM_DEADLOCK' })
  expect((error.values.waits as string[]).join('\n')).toMatch(waits)
})

test('TK-83 what has a deadline of its own ends by it, at once: time is virtual', async () => {
  const alone = onFirst(() => meet(1, ['worker0', 'worker1'], { timeoutMs: 3_600_000 }))
  const codes = [await errorOf(inlined({ workers: 2 }, alone)), await errorOf(simulate({ workers: 2 }, alone))].map(({ code }) => code)
  expect(codes).toEqual(['GROUP_TIMEOUT', 'GROUP_TIMEOUT'])
})

const turn = () => new Promise<void>((resolve) => currentWorker().clock.defer(resolve))
const turnsForEver = async () => {
  for (;;) await turn()
}

test('CLU-115 { timeoutMs } ends nothing while an inspector is open', async () => {
  inspector.open(0)
  const late = errorOf(inlined({ workers: 1, timeoutMs: 20 }, onFirst(turnsForEver)))
  const first = await Promise.race([late, new Promise((resolve) => setTimeout(resolve, 200, 'still at it'))])
  inspector.close()
  expect(first).toBe('still at it')
  expect(await late).toMatchObject({ code: 'RUN_TIMEOUT' })
})

test('TK-83 a run that repeats without end is ended by { timeoutMs } and by { signal }', async () => {
  const workers = 2
  const late = await errorOf(inlined({ workers, timeoutMs: 20 }, onFirst(turnsForEver)))
  expect(late).toMatchObject({ code: 'RUN_TIMEOUT', op: 'inlined', values: { timeoutMs: 20 } })
  const controller = new AbortController()
  const body = onFirst(async () => {
    await turn()
    controller.abort('enough')
    await turnsForEver()
  })
  expect(await errorOf(inlined({ workers, signal: controller.signal }, body))).toMatchObject({ code: 'CALL_CANCELLED', op: 'inlined' })
  expect(await errorOf(inlined({ workers, signal: controller.signal }, body))).toMatchObject({ code: 'CALL_CANCELLED' })
})

test('TK-83 a deadline that is no time is refused, and one that does not come changes nothing', async () => {
  const body = onFirst(() => 7)
  expect(await errorOf(inlined({ workers: 1, timeoutMs: -1 }, body))).toMatchObject({ code: 'TIMEOUT_INVALID' })
  expect(await errorOf(inlined({ workers: 1, signal: 7 as unknown as AbortSignal }, body))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  for (const timeoutMs of [0, 60_000, 2 ** 40, Number.POSITIVE_INFINITY]) expect(await inlined({ workers: 1, timeoutMs }, body)).toBe(7)
})
