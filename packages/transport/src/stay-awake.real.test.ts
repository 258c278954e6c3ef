/** A vigil begins with a post, ends by itself, and is given up where it is in vain. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { StayAwake, VIGIL_MS } from './stay-awake.js'

const isAwake = (): boolean => process.getActiveResourcesInfo().includes('Immediate')
const LONG_MS = 100 * VIGIL_MS

test('the loop turns after a post, and sleeps again when nothing more comes', async () => {
  const stayAwake = new StayAwake()
  expect(isAwake()).toBe(false)
  stayAwake.onPost(false)
  expect(isAwake()).toBe(true)
  await sleep(LONG_MS)
  expect(isAwake()).toBe(false)
})

test('after some vigils in vain posts go by without one, and then it tries again', async () => {
  const stayAwake = new StayAwake()
  const vigils: boolean[] = []
  for (let post = 0; post < 100; post++) {
    stayAwake.onPost(false)
    vigils.push(isAwake())
    await sleep(isAwake() ? LONG_MS : 0)
  }
  const first = vigils.indexOf(false)
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(20)
  const second = vigils.indexOf(true, first)
  expect(second - first).toBe(64)
})
