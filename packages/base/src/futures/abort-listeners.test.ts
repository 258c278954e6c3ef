/** Many listeners of one signal. */
import { getEventListeners } from 'node:events'
import { expect, test } from '@jest/globals'
import { onAbort } from './abort-listeners.js'

test('CAN-12: any number of calls cost a signal one listener; each hears of the abort once, in order, unless it has ended', () => {
  const controller = new AbortController()
  const heard: number[] = []
  const ends = Array.from({ length: 10_000 }, (_, i) => onAbort(controller.signal, () => heard.push(i)))
  expect(getEventListeners(controller.signal, 'abort').length).toBe(1)
  for (const end of ends.slice(3)) end()
  ends[1]!()
  // A listener that another one removes does not run.
  onAbort(controller.signal, () => last())
  const last = onAbort(controller.signal, () => heard.push(-1))
  controller.abort()
  controller.abort()
  expect(heard).toEqual([0, 2])
  const other = new AbortController()
  onAbort(other.signal, () => heard.push(5))
  other.abort()
  expect(heard).toEqual([0, 2, 5])
})
