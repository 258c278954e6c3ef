/** The inspection events of a cluster's workers on the main thread. Rules CLU-50 to CLU-54 in SPEC.md. */
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import * as members from '../fixtures/members.js'
import type { Cluster } from '../main/cluster.js'
import type { ClusterEvent } from './inspect-events.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/members.js', import.meta.url)

async function inspected(cluster: Cluster) {
  const heard: ClusterEvent[] = []
  let wake = (): void => {}
  const remove = await cluster.inspect((event) => {
    heard.push(event)
    wake()
  })
  const until = async (what: (event: ClusterEvent) => boolean): Promise<ClusterEvent> => {
    for (;;) {
      const found = heard.find(what)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { heard, remove, until }
}

test('CLU-51 a call is heard of at both ends, before the result of the run that made it', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  const { heard, remove, until } = await inspected(cluster)
  expect(await cluster.on('a').run(members.callTo, 'b')).toBe('b')
  const atA = heard.filter(({ on, kind }) => on === 'a' && (kind === 'sent' || kind === 'received'))
  expect(atA).toMatchObject([
    { kind: 'sent', to: 'b', type: 'CALL', what: 'whoAmI', onId: 0 },
    { kind: 'received', from: 'b', type: 'RESULT' },
  ])
  await until(({ on, kind }) => on === 'b' && kind === 'ended')
  const atB = heard.filter(({ on }) => on === 'b')
  expect(atB).toMatchObject([
    { kind: 'received', from: 'a', type: 'CALL' },
    { kind: 'begun', from: 'a', what: 'whoAmI' },
    { kind: 'ended', from: 'a' },
    { kind: 'sent', to: 'a', type: 'RESULT' },
  ])
  await remove()
  const count = heard.length
  await cluster.on('a').run(members.callTo, 'b')
  await cluster.on('b').run(members.whoAmI)
  expect(heard.length).toBe(count)
})

test('CLU-56 a listener that is taken away is told all that had happened by then, and the next one nothing of it', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  const begun = async (calls: number): Promise<number> => {
    let count = 0
    const remove = await cluster.inspect(({ on, kind }) => {
      if (on === 'b' && kind === 'begun') count++
    })
    for (let i = 0; i < calls; i++) await cluster.on('a').run(members.callTo, 'b')
    await remove()
    return count
  }
  for (const calls of [20, 0, 20, 0, 1, 0]) expect(await begun(calls)).toBe(calls)
})

test('CLU-54 newcomers tell too; who joins, leaves and dies is heard of', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  cluster.onWorkerDeath(() => {})
  const { heard, until } = await inspected(cluster)
  await cluster.join('c')
  await cluster.on('c').run(members.callTo, 'a')
  expect(heard.find(({ on, kind }) => on === 'c' && kind === 'sent')).toMatchObject({ to: 'a', type: 'CALL' })
  await cluster.leave('c')
  // It learns of the end of a link a moment after the thread has ended.
  await until(({ on, kind }) => on === 'a' && kind === 'death')
  await cluster.kill('b')
  await until((event) => event.on === 'a' && event.kind === 'death' && event.worker === 'b')
  await cluster.restart('b')
  const seen = heard.filter(({ kind }) => ['joined', 'left', 'died', 'death'].includes(kind) && kind !== 'death')
  expect(seen.map(({ on, onId, kind }) => `${on}:${onId} ${kind}`)).toEqual(['c:2 joined', 'c:2 left', 'b:1 died', 'b:3 joined'])
  expect(heard.filter(({ on, kind }) => on === 'a' && kind === 'death')).toMatchObject([
    { worker: 'c', workerId: 2, cause: 'left' },
    { worker: 'b', workerId: 1, cause: 'link-closed' },
  ])
  const before = heard.length
  await cluster.close()
  // The end of all is nobody's death.
  const atEnd = heard.slice(before).filter(({ kind }) => kind === 'left' || kind === 'died')
  expect(atEnd.map(({ on, kind }) => `${on} ${kind}`).sort()).toEqual(['a left', 'b left'])
})

test('CLU-54 dead letters and metrics of all workers can be read', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  await cluster.metrics()
  await cluster.on('a').run(members.callTo, 'b')
  const metrics = await cluster.metrics()
  expect(Object.keys(metrics)).toEqual(['a', 'b'])
  expect(metrics.b).not.toEqual(metrics.a)
  expect(await cluster.deadLetters()).toMatchObject({ a: { total: 0, last: [] }, b: { total: 0, last: [] } })
})
