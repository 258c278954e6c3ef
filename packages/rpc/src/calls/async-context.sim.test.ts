/** The stores of a user's own AsyncLocalStorage in code that a worker runs for others: those of where the worker was made, whatever program woke it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from '@jest/globals'
import { Actor } from '../api/actor.js'
import { call, currentWorker, remote, stream } from '../api/api.js'
import { monitor, stopActor } from '../api/monitor.js'
import { workerLocal } from '../api/worker-local.js'
import { expose } from '../common/function-registry.js'
import { Cluster, overSeeds, withSeed } from '../worker/sim-cluster.suite.js'

const SEEDS = 5
const store = new AsyncLocalStorage<string>()
const seen = () => store.getStore() ?? 'none'
const sleep = (ms = 1): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const seenLater = async (): Promise<string[]> => {
  const first = seen()
  await sleep()
  return [first, seen()]
}
const enters = async (value: string): Promise<string[]> => {
  const first = seen()
  store.enterWith(value)
  await sleep()
  return [first, seen()]
}
async function* items(n: number): AsyncGenerator<string> {
  for (let i = 0; i < n; i++) yield seen()
}
const log = workerLocal((): string[] => [])
const readLog = (): string[] => log().splice(0)

class Watcher extends Actor {
  static readonly serial = true
  async look(): Promise<string[]> {
    this.send(this.note, ['send'])
    this.setTimer(1, this.note, ['timer'])
    return await seenLater()
  }
  note(where: string): void {
    log().push(`${where} ${seen()}`)
    store.enterWith('left behind')
  }
  override onStop(): void {
    log().push(`onStop ${seen()}`)
  }
}
expose({ seen, seenLater, enters, items, readLog, Watcher })

describe('RPC-58: the async context of what is served', () => {
  test('a function finds none of its caller, on another worker or on the same, and the caller its own again', () =>
    overSeeds(SEEDS, 2, async () => {
      for (const to of ['worker0', 'worker1']) {
        await store.run('program', async () => {
          expect(await Promise.all([call(to, seen), call(to, seenLater)])).toEqual(['none', ['none', 'none']])
          expect(seen()).toBe('program')
          const given: string[] = []
          for await (const item of stream(to, items, [3])) given.push(item, seen())
          expect(given).toEqual(['none', 'program', 'none', 'program', 'none', 'program'])
          using made = remote(to, seenLater)
          expect(await made.toHere()).toEqual(['none', 'none'])
          const back = call(to, seen).then((value) => `${value} ${seen()}`)
          expect(await back).toBe('none program')
        })
        expect(seen()).toBe('none')
      }
    }))

  test('nor of a program that looked at the links while it computed', () =>
    overSeeds(SEEDS, 2, async ({ workers }) => {
      const [, other] = workers
      const answer = call('worker1', seen)
      // The message comes while the other worker's program runs, which then continues in its mailbox.
      await store.run('computes', async () => {
        for (let i = 0; i < 20; i++) {
          other!.lookAround()
          await null
        }
      })
      expect(await answer).toBe('none')
    }))

  test('methods, self-sends, timers and onStop of an actor, and who hears of its end', () =>
    overSeeds(SEEDS, 2, async () => {
      for (const to of ['worker0', 'worker1']) {
        await store.run('program', async () => {
          using actor = remote(to, Watcher)
          const { down } = monitor(actor)
          // The second waits for its turn.
          expect(await Promise.all([actor.call('look', []), actor.call('look', [])])).toEqual([
            ['none', 'none'],
            ['none', 'none'],
          ])
          await sleep(10)
          await stopActor(actor)
          expect(await down).toMatchObject({ normal: true })
          expect(seen()).toBe('program')
          expect((await call(to, readLog)).sort()).toEqual(['onStop none', 'send none', 'send none', 'timer none', 'timer none'])
        })
      }
    }))

  test('a store that a function enters is its own, and no other call finds it', () =>
    overSeeds(SEEDS, 2, async () => {
      for (const to of ['worker0', 'worker1']) {
        const names = ['a', 'b', 'c']
        const answers = await Promise.all([...names.map((name) => call(to, enters, [name])), call(to, seenLater)])
        expect(answers).toEqual([...names.map((name) => ['none', name]), ['none', 'none']])
        expect(await call(to, seen)).toBe('none')
      }
    }))

  test('it is the context in which the worker was made', () =>
    withSeed(1, async () => {
      const cluster = store.run('maker', () => new Cluster(1, 2))
      await cluster.run(0, () =>
        store.run('program', async () => {
          expect(await Promise.all([call('worker0', seenLater), call('worker1', seenLater)])).toEqual([
            ['maker', 'maker'],
            ['maker', 'maker'],
          ])
        }),
      )
      expect(await cluster.leftovers()).toEqual([])
    }))
})
