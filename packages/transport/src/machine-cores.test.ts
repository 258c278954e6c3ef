/** `MachineCores`, with `/proc/loadavg` written by the test. */
import { expect, test } from '@jest/globals'
import { type LoadReader, MachineCores } from './machine-cores.js'

const says = (running: number): string => `0.31 0.42 0.40 ${running}/187 12345\n`
const reader = (read: () => string): LoadReader => ({ read, close: () => {} })

test('AWK-6 a core is free while not more threads run than there are', () => {
  const free = [1, 2, 3, 12].map((running) =>
    new MachineCores(
      2,
      reader(() => says(running)),
    ).hasCore(0),
  )
  expect(free).toEqual([true, true, false, false])
})

test('AWK-6 it is looked at once a millisecond, also when the clock wraps', () => {
  let running = 1
  let looks = 0
  const look = (): string => {
    looks++
    return says(running)
  }
  const cores = new MachineCores(2, reader(look))
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

test('AWK-6 who has closed looks no more, and finds no core free', () => {
  const done: string[] = []
  const read = (): string => {
    done.push('read')
    return says(1)
  }
  const cores = new MachineCores(2, { read, close: () => done.push('close') })
  expect(cores.hasCore(0)).toBe(true)
  cores.close()
  expect(cores.hasCore(5000)).toBe(false)
  expect(done).toEqual(['read', 'close'])
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
  expect(new MachineCores(1, reader(read as () => string)).hasCore(0)).toBe(true)
})

test('AWK-6 what this system says is understood, each time: no more cores than it has threads that run are needed', () => {
  const many = new MachineCores(2 ** 20)
  // The asking thread itself runs, so none of 0 cores is free, unless the system says nothing.
  const none = new MachineCores(0)
  for (const us of [0, 2000, 4000]) expect([many.hasCore(us), none.hasCore(us)]).toEqual([true, process.platform !== 'linux'])
  many.close()
  none.close()
})
