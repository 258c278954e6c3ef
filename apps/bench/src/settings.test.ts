/** The command line: what it refuses, in which words. */
import { expect, test } from '@jest/globals'
import { HELP, readSettings } from './settings.js'

test('defaults, and what is given', () => {
  expect(readSettings([])).toMatchObject({ json: false, only: [''], turns: 15, plots: false, minutes: null, seed: 1 })
  expect([readSettings([])?.peers, readSettings(['--no-peers'])?.peers]).toEqual([true, false])
  expect(readSettings(['--plots'])).toMatchObject({ plots: true, turns: 5, trace: false })
  expect(readSettings(['--operations'])).toMatchObject({ operations: true, turns: 5, plots: false, threads: 1 })
  expect(readSettings(['--operations', '--threads', '2'])).toMatchObject({ threads: 2 })
  expect(readSettings(['--trace'])).toMatchObject({ trace: true })
  expect(readSettings(['--heap', '0.5', '--seed', '3'])).toMatchObject({ minutes: 0.5, seed: 3 })
  expect(readSettings(['--help'])).toBeNull()
  expect(HELP).toContain('Usage: npm run bench')
})

test.each([
  [['--onyl', 'x'], "Unknown option '--onyl'"],
  [['--turns', '0'], "--turns: expected a whole number from 1, got '0'"],
  [['--out', 'x'], '--out: goes with --plots'],
  [['--no-peers', '--plots'], '--no-peers: goes with rows'],
  [['--heap', '0'], "--heap: expected a number of minutes above 0, got '0'"],
  [['--heap', '1', '--seed', 'x'], "--seed: expected a whole number, got 'x'"],
  [['--seed', '1'], '--seed: goes with --heap'],
  [['--trace', '--json'], '--trace: goes with rows that are read as a table'],
  [['--trace', '--plots'], '--trace: goes with rows that are read as a table'],
  [['--operations', '--plots'], '--operations: goes without --plots, --trace and --heap'],
  [['--device', 'blas'], '--device: goes with --operations'],
  [['--threads', '2'], '--threads: goes with --operations'],
  [['--operations', '--threads', '0'], "--threads: expected a whole number from 1, got '0'"],
  [['--plots', '--json'], '--json: the plots write their figures beside the pictures'],
])('%j is refused', (argv, message) => {
  expect(() => readSettings(argv)).toThrow(message)
})
