import { expect, test } from '@jest/globals'
import { type Clock, RealClock } from './clock.js'
import { describeLink, frame, Recorder } from './link.suite.js'
import { memoryLinkPair } from './memory-link.js'

const clock = new RealClock()
const turn = () => new Promise<void>((resolve) => clock.defer(resolve))

describeLink('the memory link', {
  make() {
    const [a, b] = memoryLinkPair(clock)
    return {
      a,
      b,
      dispose() {
        a.close()
        b.close()
      },
    }
  },
  async until(done) {
    for (let i = 0; i < 200 && !done(); i++) await turn()
  },
  async turns() {
    for (let i = 0; i < 5; i++) await turn()
  },
})

test('a receiver that throws at every frame gets all of them, then onClose in a turn of its own', () => {
  const turns: (() => void)[] = []
  const byHand: Clock = {
    now: () => 0,
    setTimer: () => ({ cancel() {} }),
    defer: (fn) => turns.push(fn),
  }
  const [a, b] = memoryLinkPair(byHand)
  const got = new Recorder()
  got.onEach = () => {
    throw new Error('a receiver must not throw, but if it does')
  }
  b.open(got)
  for (let i = 0; i < 3; i++) a.send(frame(`${i}`))
  a.close()
  let thrown = 0
  while (turns.length > 0) {
    try {
      turns.shift()?.()
    } catch {
      thrown++
      expect(got.closed).toBeNull()
    }
  }
  expect(thrown).toBe(3)
  expect(got.texts).toEqual(['0', '1', '2'])
  expect(got.events).toEqual(['close:peer:3'])
})
