import { expect, test } from '@jest/globals'
import { Stopwatch } from './ddp-stats.js'

test('DDP-16 times of an iteration: what communication hides behind gradients, and what it does not', async () => {
  let ms = 100
  const watch = new Stopwatch(() => ms)
  const pass = (time: number) => {
    ms += time
  }
  const forward = () => {
    pass(5)
    return 'y'
  }
  expect(await watch.forward(forward)).toBe('y')
  expect(watch.last).toBeNull()
  watch.begin()
  pass(3)
  watch.launch()
  pass(4)
  watch.launch()
  watch.ready()
  pass(2)
  watch.end()
  expect(watch.last).toEqual({ forwardMs: 5, backwardMs: 7, communicationMs: 6, overlapMs: 4 })
  // All gradients in one bucket: nothing is hidden.
  watch.begin()
  pass(3)
  watch.ready()
  watch.launch()
  pass(6)
  watch.end()
  expect(watch.last).toEqual({ forwardMs: 5, backwardMs: 3, communicationMs: 6, overlapMs: 0 })
})
