import { createRequire } from 'node:module'
import * as perf from 'node:perf_hooks'
import { afterEach, expect, test } from '@jest/globals'
import * as real from './real-time.js'

const require = createRequire(import.meta.url)
/** As fake clocks do: the global object, and what CommonJS and bundles read from. */
const places = [globalThis, require('node:timers'), process, perf.performance, Date] as Record<string, unknown>[]
const undo: (() => void)[] = []

afterEach(() => {
  for (const each of undo.splice(0)) each()
})

/** @returns how often it was called */
function fake(name: string): () => number {
  let times = 0
  const never = (): void => {
    times++
  }
  for (const place of places) {
    const was = place[name]
    if (typeof was !== 'function') continue
    place[name] = never
    undo.push(() => {
      place[name] = was
    })
  }
  return () => times
}

const ticks: [name: keyof typeof real, use: (resolve: () => void) => void][] = [
  ['setTimeout', (resolve) => real.setTimeout(resolve, 1)],
  ['setInterval', (resolve) => real.setInterval(resolve, 1).unref()],
  ['setImmediate', (resolve) => real.setImmediate(resolve)],
  ['queueMicrotask', (resolve) => real.queueMicrotask(resolve)],
  ['nextTick', (resolve) => real.nextTick(resolve)],
]

test.each(ticks)('CLK-3 %s is the one that this thread had when the library was loaded', async (name, use) => {
  const never = fake(name)
  const called = new Promise<void>(use)
  // Node itself takes ticks from there.
  for (const each of undo.splice(0)) each()
  await called
  expect(never()).toBe(0)
})

test('CLK-3 so are those that take one back, and the clocks', () => {
  const nevers = ['clearTimeout', 'clearInterval', 'clearImmediate', 'hrtime', 'now'].map(fake)
  real.clearTimeout(real.setTimeout(() => {}, 1))
  real.clearInterval(real.setInterval(() => {}, 1))
  real.clearImmediate(real.setImmediate(() => {}))
  expect([real.now(), real.wallMs(), real.hrtime()[0], real.timeOriginMs].every((time) => time > 0)).toBe(true)
  for (const never of nevers) expect(never()).toBe(0)
})
