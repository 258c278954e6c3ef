/** One agent and many observers on threads and between processes: in both cases each observer plays the same episodes and the policy learns the same bits. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { simulate } from 'postgrad/testing'
import { runScript } from '../shared/script.suite.js'
import { type WholeRun, wholeRun } from './fixtures/whole-run.js'

const EPISODES = 3
const observers = ['observer1', 'observer2']
const workers = ['agent', ...observers]
const team = { observers, seed: 1 }

let simulated: WholeRun
beforeAll(async () => {
  simulated = (await simulate({ workers, seed: 1 }, (sim) => sim.on('agent').run(wholeRun, team, EPISODES))).result
})

test('on threads, the episodes and weights of the simulation', async () => {
  await using cluster = await launch(new URL('./fixtures/whole-run.js', import.meta.url), { workers })
  expect(await cluster.on('agent').run(wholeRun, team, EPISODES)).toEqual(simulated)
})

test('in a group of processes, one by a Unix socket and one by TCP, the same', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rl-'))
  try {
    const member = new URL('./fixtures/member.js', import.meta.url)
    const method = `file://${join(folder, 'meeting')}`
    const ends = await Promise.all([0, 1, 2].map((rank) => runScript(member, [method, `${rank}`, `${EPISODES}`])))
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual(Array(3).fill([0, '']))
    expect(JSON.parse(ends[0]!.stdout)).toEqual(simulated)
  } finally {
    await rm(folder, { recursive: true })
  }
})
