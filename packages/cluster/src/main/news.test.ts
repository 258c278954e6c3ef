/** Waits for news, with a clock that the tests move. */
import { describe, expect, test } from '@jest/globals'
import { SimWorld } from '@postgrad/sim/internal'
import { News } from './news.js'

function waiting() {
  const world = new SimWorld(1)
  const clock = world.clockOf('a')
  return { world, clock, news: new News(clock) }
}

describe('whoever waits', () => {
  test('looks at once, and again with each news only', async () => {
    const { world, clock, news } = waiting()
    let [looks, isSo] = [0, false]
    const look = (): boolean => {
      looks++
      return isSo
    }
    clock.setTimer(10, () => news.tell())
    clock.setTimer(20, () => {
      isSo = true
      news.tell()
    })
    expect(await world.run(news.until(look, () => Number.POSITIVE_INFINITY))).toBe(true)
    expect([looks, clock.now()]).toEqual([3, 20])
    expect(await news.until(look, () => 0)).toBe(true)
  })

  test('looks a turn behind the news, when what they set off has happened', async () => {
    const { world, clock, news } = waiting()
    let isSo = false
    clock.setTimer(10, () => {
      news.tell()
      void Promise.resolve().then(() => {
        isSo = true
      })
    })
    expect(
      await world.run(
        news.until(
          () => isSo,
          () => 1000,
        ),
      ),
    ).toBe(true)
    expect(clock.now()).toBeLessThan(1000)
  })

  test('ends with its time, which may come nearer', async () => {
    const { world, clock, news } = waiting()
    let endMs = 1000
    clock.setTimer(10, () => {
      endMs = 30
      news.tell()
    })
    const done = world.run(
      news.until(
        () => false,
        () => endMs,
      ),
    )
    expect(await done).toBe(false)
    expect(clock.now()).toBe(30)
    expect(
      await news.until(
        () => false,
        () => 30,
      ),
    ).toBe(false)
  })
})
