/** How options' values are read. */
import { expect, test } from '@jest/globals'
import { milliseconds, timerMilliseconds, workers } from './arguments.js'

test('CLU-61 a count of workers is as large as the library takes it', () => {
  expect([workers('65535'), workers('a,b')]).toEqual([65_535, ['a', 'b']])
  for (const text of ['0', '65536']) expect(() => workers(text)).toThrow('A cluster has 1 to 65535 workers.')
})

test('a time may be longer than Node’s timers, but for an option that ends in such a timer, which says what to do', () => {
  expect([milliseconds('0'), milliseconds('8589934592')]).toEqual([0, 8589934592])
  expect(timerMilliseconds()('2147483647')).toBe(2147483647)
  expect(() => timerMilliseconds(' Write 0 for no limit.')('2147483648')).toThrow('24.8 days) are possible. Write 0 for no limit.')
  // For --grace, 0 means at once.
  expect(() => timerMilliseconds()('2147483648')).toThrow(/possible\.$/)
  for (const text of ['-1', '', 'soon', 'Infinity']) expect(() => milliseconds(text)).toThrow('A number of milliseconds is expected.')
})
