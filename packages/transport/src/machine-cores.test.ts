/** What the system says of its threads, in words of the test. */
import { expect, test } from '@jest/globals'
import { MachineCores } from './machine-cores.js'

const says = (running: number): string => `0.31 0.42 0.40 ${running}/187 12345\n`

test('AWK-6 a core is free while not more threads run than there are', () => {
  const free = [1, 2, 3, 12].map((running) => new MachineCores(2, () => says(running)).hasCore(0))
  expect(free).toEqual([true, true, false, false])
})

test('AWK-6 it is looked at once a millisecond, also when the clock wraps', () => {
  let running = 1
  let looks = 0
  const cores = new MachineCores(2, () => {
    looks++
    return says(running)
  })
  const from = 2 ** 31 - 500
  const at = (us: number): number => (from + us) | 0
  expect(cores.hasCore(at(0))).toBe(true)
  running = 3
  expect([cores.hasCore(at(1)), cores.hasCore(at(999))]).toEqual([true, true])
  expect(looks).toBe(1)
  expect(cores.hasCore(at(1000))).toBe(false)
  running = 2
  expect([cores.hasCore(at(1999)), cores.hasCore(at(2000))]).toEqual([false, true])
  expect(looks).toBe(3)
})

test.each([
  [
    'no such file',
    () => {
      throw new Error('no such file')
    },
  ],
  ['another text', () => 'hidden'],
  ['nothing', () => ''],
])('AWK-6 where the system does not tell, cores are free: %s', (_, read) => {
  expect(new MachineCores(1, read as () => string).hasCore(0)).toBe(true)
})

test('AWK-6 what this system says is understood: no more cores than it has threads that run are needed', () => {
  expect(new MachineCores(2 ** 20).hasCore(0)).toBe(true)
  // The asking thread runs, so there is no free core among none; but for systems that do not tell.
  expect(new MachineCores(0).hasCore(0)).toBe(process.platform !== 'linux')
})
