/** A vigil begins with a post, ends by itself, needs a core, and is given up where it is in vain. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { AwakeThreads, makeAwakeWords } from './awake-threads.js'
import { StayAwake, VIGIL_MS } from './stay-awake.js'

const isAwake = (): boolean => process.getActiveResourcesInfo().includes('Immediate')
const LONG_MS = 100 * VIGIL_MS

test('AWK-1 the loop turns after a post, and sleeps again when nothing more comes', async () => {
  const stayAwake = new StayAwake(makeAwakeWords(2))
  expect(isAwake()).toBe(false)
  stayAwake.onSend(0)
  expect(isAwake()).toBe(true)
  await sleep(LONG_MS)
  expect(isAwake()).toBe(false)
})

test('AWK-5 after some vigils in vain posts go by without one, and then it tries again', async () => {
  const stayAwake = new StayAwake(makeAwakeWords(2))
  const vigils: boolean[] = []
  for (let post = 0; post < 100; post++) {
    stayAwake.onSend(0)
    vigils.push(isAwake())
    await sleep(isAwake() ? LONG_MS : 0)
  }
  const first = vigils.indexOf(false)
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(20)
  const second = vigils.indexOf(true, first)
  expect(second - first).toBe(64)
})

test('AWK-2 the loop does not turn while others need the cores', async () => {
  const words = makeAwakeWords(1)
  const [here, there] = [new StayAwake(words), new StayAwake(words)]
  const third = new AwakeThreads(words)
  // The third thread's word expires, so a try in which this thread lost its core does not count.
  for (let took = Number.POSITIVE_INFINITY; took > VIGIL_MS; ) {
    await sleep(LONG_MS)
    expect(isAwake()).toBe(false)
    const startedMs = performance.now()
    there.onSend(third.own)
    expect(isAwake()).toBe(false)
    here.onSend(0)
    const awake = isAwake()
    took = performance.now() - startedMs
    if (took <= VIGIL_MS) expect(awake).toBe(false)
  }
})
