/** A command line from a table: its help, its values, and its messages about mistakes. */
import { expect, test } from '@jest/globals'
import { choice, commandLine, count, countUpTo, outFile, positive, seed } from './options.js'

const { help, read } = commandLine('npm run x', 'What it does.', {
  steps: count(5, 'steps'),
  workers: countUpTo(8, 2, 'workers'),
  lr: positive(0.1, 'learning rate'),
  mode: choice(['one', 'two'], 'how'),
  seed: seed(),
  out: outFile('out/x.svg'),
})

test('the help has every option with its default', () => {
  expect(help).toBe(`Usage: npm run x -- [options]

What it does.

Options:
  --steps N    steps (default: 5)
  --workers N  workers (default: 2)
  --lr X       learning rate (default: 0.1)
  --mode NAME  one or two: how (default: one)
  --seed N     of all random numbers (default: 0)
  --out FILE   where the picture goes, and next to it the log; both replace earlier ones (default: out/x.svg)
  --help       print this`)
  expect(read(['--help'])).toBeNull()
})

test('what is given is read, what is not has its default', () => {
  expect(read([])).toEqual({ steps: 5, workers: 2, lr: 0.1, mode: 'one', seed: 0, out: null })
  expect(read(['--steps', '7', '--mode', 'two', '--lr=1e-3', '--out', 'a.svg', '--seed=-1', '--workers', '8'])).toEqual({
    steps: 7,
    workers: 8,
    lr: 1e-3,
    mode: 'two',
    seed: -1,
    out: 'a.svg',
  })
})

test.each([
  [['--steps', '0'], "--steps: expected a positive whole number, got '0'"],
  [['--workers', '9'], "--workers: expected a whole number from 1 to 8, got '9'"],
  [['--lr=-1'], "--lr: expected a positive number, got '-1'"],
  [['--mode', 'three'], "--mode: expected one of one, two, got 'three'"],
  [['--seed', 'x'], "--seed: expected a whole number, got 'x'"],
  [['--step', '3'], "Unknown option '--step'"],
  [['3'], 'Unexpected argument'],
])('%j', (args, message) => {
  expect(() => read(args)).toThrow(message)
})
