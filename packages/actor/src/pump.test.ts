/** The pump against SPEC.md, on a clock that the test moves by hand. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from '@jest/globals'
import { Lane } from '@postgrad/base/internal'
import type { Clock, Timer } from '@postgrad/transport'
import { Source } from './mailbox.js'
import { BUDGET_MS, POLL_EVERY_TASKS, Pump } from './pump.js'

class HandClock implements Clock {
  nowMs = 0
  deferred: (() => void)[] = []

  now(): number {
    return this.nowMs
  }

  defer(fn: () => void): void {
    this.deferred.push(fn)
  }

  setTimer(): Timer {
    throw new Error('the pump sets no timers')
  }

  /** The turns that were deferred until now. */
  turn(): void {
    for (const fn of this.deferred.splice(0)) fn()
  }
}

type Action = () => void

function fixture(options: { pollEveryTasks?: number } = {}) {
  const clock = new HandClock()
  const bugs: unknown[] = []
  const pump = new Pump<Action>({ clock, dispatch: (action) => action(), onBug: (error) => bugs.push(error), ...options })
  const log: string[] = []
  const say = (word: string) => () => {
    log.push(word)
  }
  return { clock, bugs, pump, log, say }
}

const microtasks = () => new Promise((resolve) => setImmediate(resolve))

describe('Pump', () => {
  test('PU-1 one at a time: what a dispatch pushes waits until it has ended', () => {
    const { pump, log, say } = fixture()
    pump.mailbox.push(Lane.call, () => {
      pump.mailbox.push(Lane.signal, say('inner'))
      pump.runNow()
      pump.wake()
      log.push('outer ends')
    })
    pump.runNow()
    expect(log).toEqual(['outer ends', 'inner'])
    expect(pump.counts.runs).toBe(1)
  })

  test('PU-2 several wakes make one run, in a microtask', async () => {
    const { pump, log, say } = fixture()
    pump.mailbox.push(Lane.call, say('a'))
    pump.wake()
    pump.mailbox.push(Lane.control, say('b'))
    pump.wake()
    expect(log).toEqual([])
    await Promise.resolve()
    expect(log).toEqual(['b', 'a'])
    await microtasks()
    expect(pump.counts.runs).toBe(1)
  })

  test('PU-3 runNow overtakes a wake', async () => {
    const { pump, log, say } = fixture()
    pump.mailbox.push(Lane.call, say('a'))
    pump.wake()
    pump.runNow()
    expect(log).toEqual(['a'])
    await microtasks()
    expect(pump.counts.runs).toBe(1)
  })

  test(`PU-4 after ${BUDGET_MS} ms the rest waits for a later turn, whoever wakes`, async () => {
    const { pump, clock, log } = fixture()
    for (let i = 0; i < 100; i++) {
      pump.mailbox.push(Lane.call, () => {
        clock.nowMs += 1
        log.push(`${i}`)
      })
    }
    pump.runNow()
    const first = log.length
    // The clock is read every few items, so the budget is kept to some items, not to one.
    expect(first).toBeGreaterThanOrEqual(BUDGET_MS)
    expect(first).toBeLessThan(BUDGET_MS + 4)
    pump.wake()
    pump.runNow()
    await microtasks()
    expect(log.length).toBe(first)
    while (clock.deferred.length > 0) clock.turn()
    expect(log.length).toBe(100)
    expect(pump.counts.deferrals).toBeGreaterThanOrEqual(10)
  })

  test('PU-4 a chain of microtasks has one budget', async () => {
    const { pump, clock } = fixture()
    let ran = 0
    // Each run dispatches one item, which takes 1 ms and asks for another run: without a common budget this keeps the turn for 1000 ms.
    const again = () => {
      clock.nowMs += 1
      if (++ran === 1000) return
      void Promise.resolve().then(() => {
        pump.mailbox.push(Lane.call, again)
        pump.wake()
      })
    }
    pump.mailbox.push(Lane.call, again)
    pump.wake()
    await microtasks()
    expect(ran).toBe(BUDGET_MS)
    // The turn that it was deferred to brings a new one.
    clock.turn()
    await microtasks()
    expect(ran).toBe(2 * BUDGET_MS)
  })

  test(`PU-5 every ${POLL_EVERY_TASKS} node tasks the links are polled, and what arrived takes its lane`, () => {
    const { pump, log, say } = fixture()
    const a = new Source('a')
    let polls = 0
    pump.addPoll(() => {
      if (polls++ > 0) return 0
      pump.mailbox.pushFrom(a, Lane.control, say('abort'))
      return 1
    })
    for (let i = 0; i < 2 * POLL_EVERY_TASKS; i++) pump.mailbox.pushTask(say('task'), 1)
    pump.runNow()
    const at = log.indexOf('abort')
    expect(at).toBeGreaterThanOrEqual(POLL_EVERY_TASKS)
    expect(at).toBeLessThan(POLL_EVERY_TASKS + 32)
  })

  test('PU-5 PU-10 a poll after every task where it is asked for, under a clock that stands still', () => {
    const { pump, say } = fixture({ pollEveryTasks: 1 })
    for (let i = 0; i < 10; i++) pump.mailbox.pushTask(say('task'), 1)
    pump.runNow()
    expect(pump.counts).toMatchObject({ polls: 10, deferrals: 0 })
  })

  test('PU-5 long items are followed by a poll each', () => {
    const { pump, clock } = fixture()
    for (let i = 0; i < 6; i++) {
      pump.mailbox.push(Lane.call, () => {
        clock.nowMs += 1
      })
    }
    pump.runNow()
    expect(pump.counts.polls).toBeGreaterThanOrEqual(4)
  })

  test('PU-12 a task of several steps goes on exactly while the mailbox would take it next', () => {
    const STEPS = 300
    /** Messages arrive by the links, a step makes some, calls wait; each step is a task by itself, or all are one. */
    const logOf = (inOne: boolean, calls: number, stepMs: number) => {
      const { pump, clock, log, say } = fixture()
      const a = new Source('a')
      let polls = 0
      pump.addPoll(() => {
        pump.mailbox.pushFrom(a, polls++ % 2 === 0 ? Lane.gradient : Lane.control, say(`message ${polls}`))
        return 1
      })
      const step = (i: number) => {
        log.push(`step ${i}`)
        clock.nowMs += stepMs
        if (i % 50 === 7) pump.mailbox.push(Lane.signal, say('signal'))
      }
      let next = 0
      const all = () => {
        do step(next++)
        while (next < STEPS && pump.mayContinue())
        if (next < STEPS) pump.mailbox.pushTask(all, 1)
      }
      if (inOne) pump.mailbox.pushTask(all, 1)
      else for (let i = 0; i < STEPS; i++) pump.mailbox.pushTask(() => step(i), 1)
      for (let i = 0; i < calls; i++) pump.mailbox.push(Lane.call, say(`call ${i}`))
      pump.runNow()
      while (pump.mailbox.size > 0) {
        log.push('a later turn')
        clock.turn()
      }
      return log
    }
    for (const calls of [0, 10]) {
      for (const stepMs of [0, 0.01, 0.3, 3]) {
        const log = logOf(true, calls, stepMs)
        expect(log).toEqual(logOf(false, calls, stepMs))
        expect(log.filter((word) => word.startsWith('step'))).toHaveLength(STEPS)
      }
    }
  })

  test('PU-12 it goes on where only tasks wait, of which it is the first', () => {
    const { pump, log, say } = fixture()
    pump.mailbox.pushTask(say('another'), 1)
    pump.mailbox.pushTask(() => {
      for (let i = 0; i === 0 || (i < 3 && pump.mayContinue()); i++) log.push(`step ${i}`)
    }, 2)
    pump.runNow()
    expect(log).toEqual(['step 0', 'step 1', 'step 2', 'another'])
  })

  test('PU-12 a stop ends it', () => {
    const { pump } = fixture()
    const seen: boolean[] = []
    pump.mailbox.pushTask(() => {
      seen.push(pump.mayContinue())
      pump.stop()
      seen.push(pump.mayContinue())
    }, 1)
    pump.runNow()
    expect(seen).toEqual([true, false])
  })

  test('PU-6 drained is told each time the mailbox runs empty, and may push', () => {
    const { pump, log, say } = fixture()
    let times = 0
    const remove = pump.onDrained(() => {
      log.push('drained')
      if (++times === 1) pump.mailbox.push(Lane.call, say('more'))
    })
    pump.runNow()
    expect(log).toEqual([])
    pump.mailbox.push(Lane.call, say('first'))
    pump.runNow()
    expect(log).toEqual(['first', 'drained', 'more', 'drained'])
    remove()
    pump.mailbox.push(Lane.call, say('last'))
    pump.runNow()
    expect(log.slice(4)).toEqual(['last'])
  })

  test('PU-6 a drained callback that removes itself costs no other its turn', () => {
    const { pump, log, say } = fixture()
    const remove = pump.onDrained(() => {
      log.push('once')
      remove()
    })
    pump.onDrained(say('always'))
    for (const item of ['a', 'b']) {
      pump.mailbox.push(Lane.call, say(item))
      pump.runNow()
    }
    expect(log).toEqual(['a', 'once', 'always', 'b', 'always'])
  })

  test('PU-7 a throw is reported, and the pump goes on', () => {
    const { pump, bugs, log, say } = fixture({ pollEveryTasks: 1 })
    const boom = (word: string) => () => {
      throw new Error(word)
    }
    pump.addPoll(boom('poll'))
    pump.onDrained(boom('drained'))
    pump.mailbox.pushTask(boom('dispatch'), 1)
    pump.mailbox.pushTask(say('next'), 0)
    pump.runNow()
    expect(bugs.map((bug) => (bug as Error).message)).toEqual(['dispatch', 'poll', 'poll', 'drained'])
    expect(log).toEqual(['next'])
    expect(pump.counts.bugs).toBe(4)
  })

  test('PU-8 an error of the reporter surfaces in a turn of its own', () => {
    const clock = new HandClock()
    const log: string[] = []
    const pump = new Pump<string>({
      clock,
      dispatch: (word) => {
        log.push(word)
        if (word === 'a') throw new Error('first')
      },
      onBug: () => {
        throw new Error('second')
      },
    })
    pump.mailbox.push(Lane.call, 'a')
    pump.mailbox.push(Lane.call, 'b')
    pump.runNow()
    expect(log).toEqual(['a', 'b'])
    expect(() => clock.turn()).toThrow('second')
  })

  test('PU-11 look: in the middle of an item the links are polled, and what arrives waits for its end', async () => {
    const { pump, log, say } = fixture()
    let arrived: Action[] = [say('arrived')]
    pump.addPoll(() => {
      for (const action of arrived) pump.mailbox.push(Lane.signal, action)
      return arrived.splice(0).length
    })
    pump.mailbox.push(Lane.call, () => {
      log.push('begins')
      expect(pump.look()).toBe(1)
      expect(pump.look()).toBe(1)
      log.push('ends')
    })
    pump.runNow()
    expect(log).toEqual(['begins', 'ends', 'arrived'])
    // Outside of the pump: it runs in a microtask, as after a wake.
    arrived = [say('later')]
    expect(pump.look()).toBe(1)
    expect(log).toHaveLength(3)
    await microtasks()
    expect(log).toEqual(['begins', 'ends', 'arrived', 'later'])
    pump.stop()
    arrived = [say('never')]
    expect(pump.look()).toBe(0)
  })

  test('PU-13 items and drained callbacks find the stores of where the pump was made, whatever woke it', async () => {
    const store = new AsyncLocalStorage<string>()
    const { pump, clock, log } = store.run('maker', fixture)
    const see = (where: string) => () => {
      log.push(`${where} ${store.getStore()}`)
    }
    pump.onDrained(see('drained'))
    const wokenBy = (how: () => void, where: string) =>
      store.run('other', async () => {
        pump.mailbox.push(Lane.call, see(where))
        how()
        await microtasks()
        expect(store.getStore()).toBe('other')
      })
    await wokenBy(() => pump.wake(), 'wake')
    await wokenBy(() => pump.runNow(), 'runNow')
    await wokenBy(() => pump.look(), 'look')
    pump.mailbox.push(Lane.call, () => {
      clock.nowMs += BUDGET_MS
    })
    await wokenBy(() => {
      pump.runNow()
      clock.turn()
    }, 'resume')
    expect(log).toEqual(['wake', 'runNow', 'look', 'resume'].flatMap((where) => [`${where} maker`, 'drained maker']))
  })

  test('PU-9 a stop before the turn that it was put off to: nothing runs in that turn', () => {
    const { pump, clock, log, say } = fixture()
    const items = 100
    for (let i = 0; i < items; i++) {
      pump.mailbox.push(Lane.call, () => {
        clock.nowMs += 1
        log.push(`${i}`)
      })
    }
    pump.runNow()
    const ran = log.length
    expect(clock.deferred.length).toBe(1)
    let left = 0
    pump.stop(() => left++)
    expect(ran + left).toBe(items)
    pump.mailbox.push(Lane.call, say('after the stop'))
    clock.turn()
    expect(log.length).toBe(ran)
    expect(clock.deferred.length).toBe(0)
  })

  test('PU-9 stop hands over what waits, in order, and nothing runs after it', async () => {
    const { pump, log, say } = fixture()
    const rest: Lane[] = []
    pump.mailbox.push(Lane.call, () => {
      pump.mailbox.push(Lane.call, say('late'))
      pump.mailbox.push(Lane.control, say('late'))
      pump.stop((_, lane) => rest.push(lane))
      log.push('ends')
    })
    pump.runNow()
    pump.mailbox.push(Lane.call, say('after'))
    pump.wake()
    pump.runNow()
    await microtasks()
    expect(log).toEqual(['ends'])
    expect(rest).toEqual([Lane.control, Lane.call])
    expect(pump.stopped).toBe(true)
  })
})
