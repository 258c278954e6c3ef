/** What processes of a run learn of each other's ends: an orderly end is not trouble, whenever each of them notices it. */
import { expect, test } from '@jest/globals'
import { currentWorker, HashStore } from 'postgrad'
import { simulate } from 'postgrad/testing'
import { type MemberOfRun, Others } from './others.js'

const workers = ['worker0', 'worker1', 'worker2']

/** A member of a group that lives in the simulation. */
const memberIn = (store: HashStore): MemberOfRun => ({
  worker: currentWorker(),
  store,
  run: async (fn, ...args) => (await fn(...args)) as never,
  onStoreLost: () => () => {},
})

test('CLI-44 three that end together are no trouble for each other; one that dies is', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    for (const victim of [null, 'worker1']) {
      const { result } = await simulate({ workers, seed }, async (sim) => {
        const store = new HashStore(sim.world.clock)
        const heard = new Set<string>()
        const ends = workers.map((name) =>
          sim.on(name).run(async () => {
            const hear = (error: unknown): unknown => heard.add(`${name}: ${(error as Error).message.split(';')[0]}`)
            const others = new Others(memberIn(store))
            void others.trouble.then(hear)
            // A worker may learn of the death from another worker, and end before it notices that itself.
            await currentWorker().shutdown().catch(hear)
            others.stop()
          }),
        )
        if (victim !== null) sim.crash(victim)
        await Promise.allSettled(ends)
        return [...heard].filter((line) => !line.startsWith(`${victim}:`))
      })
      const death = expect.stringMatching("worker 'worker1' .* died")
      expect({ seed, victim, heard: result }).toEqual({ seed, victim, heard: victim === null ? [] : expect.arrayContaining([death]) })
      if (victim !== null) expect(new Set(result.map((line) => line.split(':')[0]))).toEqual(new Set(['worker0', 'worker2']))
    }
  }
})
