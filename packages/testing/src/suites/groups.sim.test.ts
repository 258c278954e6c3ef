/** Groups where messages are lost, repeated and put off, and workers that come and go. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, expose, getWorkerInfos, leave, remote, shutdown, storeOn } from '@postgrad/rpc'
import { meet } from '@postgrad/rpc/internal'
import { expectClean } from '../check/expect-clean.js'
import { explore } from '../explore/explore.js'
import type { FaultRule } from '../faults/message-kind.js'
import { simulate } from '../simulate/simulate.js'

const SEEDS = 25

const FAULTS: readonly FaultRule[] = [
  { match: { probability: 0.1 }, do: 'drop', timesEach: 5 },
  { match: { probability: 0.1 }, do: 'duplicate', delayMs: 3 },
  { match: { probability: 0.1 }, do: 'delay', delayMs: 7 },
]

const log: string[] = []
const note = (text: string): void => {
  log.push(text)
}
const hop = (ttl: number, to: readonly string[]): void => {
  if (ttl === 0) log.push('end')
  else call(to[ttl % to.length]!, hop, [ttl - 1, to]).catch((error) => log.push(`hop: ${error.code}`))
}
const echo = <T>(value: T): T => value
expose({ note, hop, echo })

describe('groups in the simulation', () => {
  test('SHD-1: the end of all, with chains that nobody awaits, under lost, repeated and late messages of every kind', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      log.length = 0
      const names = ['worker0', 'worker1', 'worker2', 'worker3']
      const simulation = await simulate({ workers: names, seed, faults: FAULTS }, async (sim) => {
        const ends = names.map((name) =>
          sim.on(name).run(async () => {
            hop(12, names)
            const ref = remote(names[(names.indexOf(name) + 1) % 4]!, echo, [name])
            void ref.toHere().then((value) => call('worker0', note, [value as string]))
            await meet(null)
            await shutdown()
          }),
        )
        await Promise.all(ends)
        for (const name of names) expect({ seed, name, closed: sim.on(name).runtime.isClosed }).toEqual({ seed, name, closed: true })
      })
      expect({ seed, log: [...log].sort() }).toEqual({ seed, log: ['end', 'end', 'end', 'end', ...names] })
      expectClean(simulation)
    }
  })

  test('GRP-15: three that give up and try again meet, in whatever order their words arrive', async () => {
    const names = ['worker0', 'worker1', 'worker2']
    const { exhausted, orders } = await explore({ workers: names }, async (sim) => {
      const attempts = async (timeoutMs: number): Promise<number> => {
        for (let n = 1; ; n++) {
          try {
            await meet(null, names, { timeoutMs: n === 1 ? timeoutMs : 1000 })
            return n
          } catch (error) {
            expect((error as { code: string }).code).toBe('GROUP_TIMEOUT')
          }
        }
      }
      const limits = [1, 1000, 2]
      const all = await Promise.all(names.map((name, i) => sim.on(name).run(() => attempts(limits[i]!))))
      // All at the first attempt, or all at the second.
      expect(new Set(all).size).toBe(1)
    })
    expect(exhausted).toBe(true)
    expect(orders).toBeGreaterThan(1)
  })

  test('GRP-1, GRP-2: workers join and leave under load and faults, and every call is answered or refused by name', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const simulation = await simulate({ workers: 2, seed, faults: seed % 2 === 0 ? FAULTS : [] }, async (sim) => {
        const outcomes = { served: 0, left: 0 }
        const caller = sim.on('worker0').run(async () => {
          for (let i = 0; i < 60; i++) {
            const others = getWorkerInfos().filter(({ id }) => id !== 0)
            const to = others[i % others.length]!
            try {
              expect(await call(to, echo, [i])).toBe(i)
              outcomes.served++
            } catch (error) {
              expect(error).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left', workerId: to.id } })
              outcomes.left++
            }
          }
        })
        for (let life = 0; life < 3; life++) {
          const guest = sim.join('guest')
          await guest.run(async () => {
            expect(await call('worker0', echo, [1])).toBe(1)
            await storeOn('worker1').add('guests', 1)
            await leave()
          })
        }
        await caller
        expect(outcomes.served + outcomes.left).toBe(60)
        expect(() => sim.join('worker1')).toThrow(expect.objectContaining({ code: 'WORKER_NAME_TAKEN' }))
        expect(await sim.on('worker0').run(() => storeOn('worker1').getText('guests'))).toBe('3')
        // All who are there end together, a guest that has just come among them.
        sim.join('guest')
        const last = await sim.ready('guest')
        await Promise.all([sim.on('worker0'), sim.on('worker1'), last].map((worker) => worker.run(() => shutdown())))
      })
      expectClean(simulation)
    }
  })

  test('GRP-7: a worker that was started again begins its rounds from the first, with those who know its new life', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await simulate({ workers: 3, seed, faults: FAULTS }, async (sim) => {
        const round = (names: readonly string[]) => Promise.all(names.map((name) => sim.on(name).run(() => meet(currentWorker().info.id))))
        const all = ['worker0', 'worker1', 'worker2']
        for (let i = 0; i < 3; i++) await round(all)
        sim.restart('worker2')
        const knows = (name: string) =>
          sim.on(name).run(async () => {
            while (!getWorkerInfos().some(({ id }) => id === 3))
              await new Promise<void>((resolve) => currentWorker().clock.setTimer(1, resolve))
          })
        await Promise.all(all.map(knows))
        for (const values of await round(all)) expect({ seed, ids: [...values.values()] }).toEqual({ seed, ids: [0, 1, 3] })
      })
    }
  })
})
