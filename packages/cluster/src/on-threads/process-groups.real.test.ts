/** Process groups on threads, or over processes (POSTGRAD_TEST_PROCESSES): the simulation's random programs, tensors by name instead of copies, a death. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import type { Cluster } from '../main/cluster.js'
import * as groups from './fixtures/process-groups.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/process-groups.js', import.meta.url)

test('PG-10, PG-11, PG-12: random programs give what their formulas say', async () => {
  const cluster = await launch(PROGRAM, { workers: 4 })
  const digests = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(groups.programs, 0, 6)))
  expect(digests.flat().some((digest) => digest.length > 0)).toBe(true)
  await cluster.close()
})

test('PG-14, PG-29: large tensors keep their values while others write to theirs, and all blocks go back', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  // Beyond what goes in one step, and with a slice that is shorter than the others.
  const length = 300_001
  const averages = [2, 2, 1, 1, 2, 2, 3, 3]
  for (const pieceBytes of [null, 100_000]) {
    const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(groups.large, length, pieceBytes)))
    for (const result of results) expect(result).toEqual([...averages, 1, 1, 1, 2, 3, 6])
  }
  await allGoBack(cluster)
  await cluster.close()
})

test('PG-14, PG-29, PG-31: so do those of two ranks, which reduce in one step', async () => {
  const cluster = await launch(PROGRAM, { workers: 2 })
  const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(groups.large, 16_001, null)))
  for (const result of results) expect(result).toEqual([1.5, 1.5, 0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 1, 1, 1, 2, 3])
  await allGoBack(cluster)
  await cluster.close()
})

test('PG-31: ranks of one heap share the block of what came, until one of them writes', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(groups.shares, 50_000)))
  const [zero, one, two] = results.map(({ addresses }) => addresses)
  if (process.env.POSTGRAD_TEST_PROCESSES === undefined) {
    // Rank 0 has copied its own to its output, whose block the others have not seen.
    expect(two).toEqual(one)
    expect(zero!.slice(0, 2)).toEqual(one!.slice(0, 2))
  }
  expect(results.map(({ values }) => values)).toEqual([0, 1, 2].map((rank) => [3 + rank, 3, 1 + rank, 1, 5]))
  await allGoBack(cluster)
  await cluster.close()
})

/** Nothing waits, and no block is held for a message. */
async function allGoBack(cluster: Cluster): Promise<void> {
  for (const name of cluster.workers) {
    let left = await cluster.on(name).run(groups.held)
    // The word that a message was read is one-way; it gets a moment.
    for (let tries = 0; left.blocks! > 0 && tries < 50; tries++) left = await cluster.on(name).run(groups.held)
    expect(left).toEqual({ collectives: 0, collectivesUnread: 0, blocks: 0 })
  }
}

test.each([undefined, 3])(
  'PG-32: who computes behind a collective keeps nobody waiting for what it has sent (processes: %s)',
  async (processes) => {
    const cluster = await launch(PROGRAM, { workers: 3, ...(processes === undefined ? {} : { processes }) })
    const folder = mkdtempSync(join(tmpdir(), 'pg-'))
    for (const kind of ['broadcast', 'send', 'allReduce'] as const) {
      for (const length of [4, 1_000_000]) {
        const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(groups.computesBehind, kind, length, folder)))
        expect([kind, length, ...results]).toEqual([kind, length, true, true, true])
      }
    }
    rmSync(folder, { recursive: true })
    await cluster.close()
  },
)

test('PG-24, PG-27: a thread that ends in the middle: the others learn of it, and make the group again', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  const living = ['worker0', 'worker2']
  const victim = cluster
    .on('worker1')
    .run(groups.survives, 'worker1')
    .catch(() => {})
  const results = await Promise.all(living.map((name) => cluster.on(name).run(groups.survives, 'worker1')))
  for (const result of results) expect(result).toEqual(['GROUP_BROKEN', 'WORKER_DIED', 4])
  await victim
})
