/** Workers die and restart for as long as a cluster lives: what the main thread, which calls them, keeps of dead ones. */
import { queryObjects } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { call } from '@postgrad/rpc'
import { RemoteWorker } from '../admin/remote-worker.js'
import { launcher } from '../clusters.fixture.js'
import * as members from '../fixtures/members.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/members.js', import.meta.url)

/** After a full collection, which `queryObjects` makes. */
function kept(): { readonly threads: number; readonly workers: number } {
  const count = (what: abstract new (...args: never[]) => unknown): number =>
    queryObjects(what as never, { format: 'count' }) as unknown as number
  return { threads: count(Worker), workers: count(RemoteWorker) }
}

test('CLU-105 nothing stays of a worker that died but its entry in closed.deaths', async () => {
  // Left by earlier tests in this process.
  const before = kept()
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  cluster.onWorkerDeath(() => {})
  // How soon a machine lets go of an ended thread depends on what else it does; Node keeps the last one.
  const threadsMax = before.threads + 2 + 1
  const onlyLiving = async (): Promise<void> => {
    for (let i = 0; i < 10 && kept().threads > threadsMax; i++) await new Promise((resolve) => setTimeout(resolve, 1000))
    const { threads, workers } = kept()
    expect(threads).toBeLessThanOrEqual(threadsMax)
    expect(workers).toBeLessThanOrEqual(before.workers + 2)
  }
  const round = async (): Promise<void> => {
    await cluster.runHere(async () => {
      expect(await call('b', members.whoAmI)).toBe('b')
      await expect(call('b', members.exit, [3])).rejects.toMatchObject({ code: 'WORKER_DIED' })
    })
    await cluster.restart('b')
  }
  for (let i = 0; i < 3; i++) await round()
  await onlyLiving()
  await cluster.close()
  expect((await cluster.closed).deaths.length).toBe(3)
}, 90_000)
