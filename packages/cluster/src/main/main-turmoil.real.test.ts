/** The main thread calls, is called, holds references and runs passes while workers die, leave and restart at any moment. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, getDebugInfo, rref } from '@postgrad/rpc'
import { tensor } from '@postgrad/tensor'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/main-thread.js'

const launch = launcher()
const url = new URL('../fixtures/main-thread.js', import.meta.url)
const names = ['worker0', 'worker1', 'worker2']
/** `npm run soak -- --turmoil-ms 600000 main-turmoil` takes longer. */
const FOR_MS = Number(process.env.POSTGRAD_SOAK_TURMOIL_MS ?? 2500)

test('CLU-40 CLU-81: every promise settles, by the right answer or WORKER_DIED, and nothing is left', async () => {
  const cluster = await launch(url, { workers: names, rpcTimeoutMs: 30_000 })
  const endMs = performance.now() + FOR_MS
  const big = tensor(Float32Array.from({ length: 50_000 }, (_, i) => i))
  const seen: Record<string, number> = {}
  let turn = 0
  const next = () => names[turn++ % names.length]!
  const again = async (work: () => Promise<unknown>, expected: unknown) => {
    while (performance.now() < endMs) {
      const outcome = await work().catch((error: unknown) => (isPostgradError(error, 'WORKER_DIED') ? error.code : Promise.reject(error)))
      if (outcome !== 'WORKER_DIED') expect(outcome).toEqual(expected)
      seen[String(outcome)] = (seen[String(outcome)] ?? 0) + 1
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const worked = Promise.all([
    again(async () => (await cluster.call(next(), program.double, [big])).dataSync()[49_999], 99_998),
    again(() => cluster.call(next(), program.ask, ['main']), 'main'),
    again(async () => {
      using counter = await cluster.remote(next(), program.Counter)
      return await counter.rpcSync().add(2)
    }, 2),
    again(async () => {
      using held = await cluster.runHere(() => rref([1, 2, 3]))
      return await cluster.runHere(() => call(next(), program.passOn, [next(), held]))
    }, 6),
    again(
      () =>
        cluster.runHere(() =>
          distAutograd.context(async (ctx) => {
            const x = tensor([1, 2], { requiresGrad: true })
            const y = await call(next(), program.double, [await call(next(), program.double, [x])])
            await ctx.backward([y.sum()])
            return ctx.gradients().get(x)!.toArray()
          }),
        ),
      [4, 4],
    ),
  ])
  for (let i = 0; performance.now() < endMs; i++) {
    const name = next()
    if (i % 2 === 0) await cluster.kill(name)
    await cluster.restart(name, { leaveTimeoutMs: 1000 })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await worked
  for (const answer of ['99998', 'main', '2', '6', '4,4', 'WORKER_DIED']) expect(seen[answer]).toBeGreaterThan(0)
  const held = async () => {
    const {
      'agent.openLinks': links,
      'agent.deadLetters': _,
      ...counts
    } = (await cluster.runHere(() => getDebugInfo())) as Record<string, number>
    return { links, left: Object.entries(counts).filter(([, count]) => count !== 0) }
  }
  // Releases are under way.
  for (let i = 0; i < 100 && (await held()).left.length > 0; i++) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await held()).toEqual({ links: 3, left: [] })
})
