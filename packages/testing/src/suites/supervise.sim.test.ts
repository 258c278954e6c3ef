/** Supervised actors on a worker that is started again under its name, with messages lost, repeated and put off on the way. */
import { describe, expect, test } from '@jest/globals'
import { Actor, currentWorker, expose, link, monitor, remote, supervise } from '@postgrad/rpc'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const SEEDS = 15

class Score extends Actor {
  static readonly serial = true
  private n = 0
  add(m: number): number {
    this.n += m
    return this.n
  }
}
expose({ 'supervise.Score': Score })

const FAULTS = [
  { do: 'drop', match: { nth: 5 }, times: 20 },
  { do: 'duplicate', delayMs: 30 },
  { do: 'delay', delayMs: 40, match: { kind: 'ACTOR_DOWN' } },
] as const

describe('on a worker that is started again', () => {
  test.each([0, 1])(
    'ACS-3, ACS-7 an actor is made again on the worker that has its name now, which a start waits for (faults: %s)',
    async (faulty) => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const simulation = await simulate({ workers: 3, seed, faults: faulty === 1 ? FAULTS : [] }, async (sim) => {
          const after = (ms: number) => new Promise<void>((resolve) => sim.world.clock.setTimer(ms, resolve))
          return await sim.on('worker0').run(async () => {
            await using supervision = await supervise({
              intensity: 2,
              children: [{ name: 'score', actor: Score, worker: 'worker1' }],
            })
            const score = supervision.actor('score')
            const sums = [await score.call('add', [2]), await score.call('add', [3])]
            const old = score.current
            const watched = monitor('worker1')
            sim.crash('worker1')
            await watched.down
            await after(100)
            sim.restart('worker1')
            const now = await score.ready()
            sums.push(await score.call('add', [7]))
            const stale = await old.call('add', [1]).catch((error) => error.values.stale)
            return { sums, stale, isFresh: now.owner().id !== old.owner().id, name: now.ownerName(), restarts: supervision.restarts }
          })
        })
        expect({ seed, ...simulation.result }).toEqual({ seed, sums: [2, 5, 7], stale: true, isFresh: true, name: 'worker1', restarts: 1 })
        expectClean(simulation, { allow: ['deadLetters'] })
      }
    },
  )

  test('LNK-1, MON-5 its former actors have crashed for who was linked to them, and for who watched', async () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const simulation = await simulate({ workers: 3, seed, faults: FAULTS }, async (sim) =>
        sim.on('worker0').run(async () => {
          using a = remote('worker1', Score, [])
          using b = remote('worker2', Score, [])
          await link(a, b)
          const [ofA, ofB] = [monitor(a), monitor(b)]
          await b.call('add', [1])
          sim.restart('worker1')
          const downs = [await ofA.down, await ofB.down]
          const codes = downs.map(({ reason }) => (reason as { code: string }).code)
          await sim.ready('worker1')
          const { id } = currentWorker().resolve('worker1')
          using again = remote(id, Score, [])
          return [codes, await again.call('add', [1])]
        }),
      )
      expect([seed, simulation.result]).toEqual([seed, [['WORKER_DIED', 'LINKED_ACTOR_DOWN'], 1]])
      expectClean(simulation, { allow: ['deadLetters'] })
    }
  })
})
