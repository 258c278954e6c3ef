import { describe, expect, test } from '@jest/globals'
import { RealClock } from './clock.js'
import { EndOfTurn } from './end-of-turn.js'

describe('RealClock', () => {
  test('deferred calls keep their order and come before a timer of 0 ms set in the same turn of the loop', async () => {
    const clock = new RealClock()
    const seen: string[] = []
    // Start from the check phase, where both queues are empty and the next phase is known.
    await new Promise<void>((resolve) => clock.defer(resolve))
    await new Promise<void>((resolve) => {
      clock.defer(() => seen.push('deferred 1'))
      clock.defer(() => seen.push('deferred 2'))
      clock.setTimer(20, () => {
        seen.push('timer')
        resolve()
      })
    })
    expect(seen).toEqual(['deferred 1', 'deferred 2', 'timer'])
  })

  test('now never goes back and a cancelled timer does not fire', async () => {
    const clock = new RealClock()
    const before = clock.now()
    let fired = false
    clock
      .setTimer(1, () => {
        fired = true
      })
      .cancel()
    await new Promise<void>((resolve) => clock.setTimer(10, resolve))
    expect(fired).toBe(false)
    expect(clock.now() - before).toBeGreaterThan(5)
  })
})

describe('EndOfTurn', () => {
  const seenFrom = async (from: 'macrotask' | 'microtask' | 'tick') => {
    const seen: string[] = []
    const endOfTurn = new EndOfTurn(() => seen.push('end'))
    const start = () => {
      endOfTurn.arm()
      endOfTurn.arm()
      let hops: Promise<unknown> = Promise.resolve()
      for (let i = 0; i < 3; i++) hops = hops.then(() => seen.push('microtask'))
    }
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        if (from === 'macrotask') start()
        else if (from === 'microtask') Promise.resolve().then(start)
        else process.nextTick(start)
        setImmediate(resolve)
      })
    })
    return seen
  }

  test('runs once, behind all microtasks, when a microtask armed it', async () => {
    expect(await seenFrom('microtask')).toEqual(['microtask', 'microtask', 'microtask', 'end'])
  })

  test.each(['macrotask', 'tick'] as const)('runs once, when the running code is through, when a %s armed it', async (from) => {
    expect(await seenFrom(from)).toEqual(['end', 'microtask', 'microtask', 'microtask'])
  })
})
