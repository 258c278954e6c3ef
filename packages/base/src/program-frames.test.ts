/** Which frames of a stack are ours: in the repository, installed, and in a bundle of the user's. */
import { expect, test } from '@jest/globals'
import { framesOnStack, isOwnFrame, placeOfFrame, placeOfThrown } from './program-frames.js'
import { workerDied } from './worker-death.js'

const REPOSITORY = '/repo/packages/'
const INSTALLED = '/app/node_modules/postgrad/dist/'
const LINKED = '/elsewhere/postgrad/dist/'

test.each([
  ['at add (file:///repo/packages/rpc/dist/a/b.js:1:2)', REPOSITORY, true],
  ['at async add (/repo/packages/dist-autograd/dist/b.js:10:20)', REPOSITORY, true],
  ['at file:///repo/packages/rpc/dist/a/b.test.js:1:2', REPOSITORY, false],
  ['at file:///repo/packages/rpc/dist/a/b.suite.js:1:2', REPOSITORY, false],
  ['at file:///repo/packages/rpc/dist/fixtures/b.js:1:2', REPOSITORY, false],
  ['at file:///repo/apps/bench/dist/b.js:1:2', REPOSITORY, false],
  ['at add (/app/node_modules/postgrad/dist/library.cjs:1:2)', INSTALLED, true],
  ['at add (/app/node_modules/postgrad/dist/library.cjs:1:2)', REPOSITORY, true],
  ['at add (/elsewhere/postgrad/dist/library.cjs:1:2)', LINKED, true],
  ['at add (/my dir/postgrad/dist/library.cjs:1:2)', '/my dir/postgrad/dist/', true],
  ['at add (file:///my%20dir/postgrad/dist/jobs.js:1:2)', '/my dir/postgrad/dist/', true],
  ['at add (C:\\app\\node_modules\\postgrad\\dist\\library.cjs:1:2)', REPOSITORY, true],
  ['at add (file:///C:/elsewhere/postgrad/dist/a.js:1:2)', 'C:/elsewhere/postgrad/dist/', true],
  ['at main (file:///app/src/main.js:1:2)', INSTALLED, false],
  ['at main (file:///app/out.js:1:2)', null, false],
  ['at node:internal/process/task_queues:95:5', INSTALLED, false],
])('CLU-57 %s, seen from %s: ours %s', (line, own, ours) => {
  expect(isOwnFrame(line, own)).toBe(ours)
})

test.each([
  ['at main (file:///app/src/main.js:1:2)', '/app/src/main.js:1:2'],
  ['at async main (/app/src/main.cjs:1:2)', '/app/src/main.cjs:1:2'],
  ['at file:///C:/app/main.js:1:2', 'C:/app/main.js:1:2'],
  ['at main (file:///my%20dir/100%25/main.js:1:2)', '/my dir/100%/main.js:1:2'],
  ['at main (/my%20dir/main.cjs:1:2)', '/my%20dir/main.cjs:1:2'],
  ['at main (C:\\app\\main.cjs:1:2)', 'C:/app/main.cjs:1:2'],
  ['at process.processTicksAndRejections (node:internal/process/task_queues:95:5)', ''],
  ['at Array.map (<anonymous>)', ''],
  ['Error: no frame', ''],
])('CLU-57 the place of %s', (line, place) => {
  expect(placeOfFrame(line)).toBe(place)
})

test('CLU-57 frames are those of the caller, and more than the ten of a stack', () => {
  const deep = (left: number): string[] => (left === 0 ? framesOnStack() : deep(left - 1))
  const frames = deep(30)
  expect(
    frames.slice(0, 31).every((line) => line.startsWith('at deep ') && /program-frames\.test\.js:\d+:\d+$/.test(placeOfFrame(line))),
  ).toBe(true)
  expect(Error.stackTraceLimit).not.toBe(64)
})

test.each([
  [
    'its innermost frame',
    'Error: x\n    at f (/n/node_modules/postgrad/dist/library.cjs:1:2)\n    at g (file:///me/my%20run.ts:3:4)\n    at /me/b.ts:5:6',
    '/me/my run.ts:3:4',
  ],
  [
    'the line that Node could not read',
    'file:///me/run.ts:7\n  x y\n\nSyntaxError: Unexpected identifier\n    at compile (node:vm:1:2)',
    'file:///me/run.ts:7',
  ],
  ['no line of its message', 'SyntaxError: cannot parse /data/x.csv:3:5\n    at g (/me/run.ts:3:4)', '/me/run.ts:3:4'],
  ['nothing in frames of others', 'Error: x\n    at f (node:internal/timers:1:2)', ''],
])('CLU-113 the place of what was thrown is %s, also of what another thread threw', (_what, stack, place) => {
  expect([placeOfThrown({ stack }), placeOfThrown({ stack: 'Error\n at /here.ts:1:1', remoteStack: stack })]).toEqual([place, place])
})

test('CLU-113 the message of a death ends in the place of what was thrown', () => {
  const death = {
    worker: { name: 'a', id: 1 },
    cause: 'uncaught-exception',
    detail: 'its thread threw Error: x, and nobody caught it',
  } as const
  const stack = 'Error: x\n    at /me/run.ts:3:4'
  expect(workerDied('call', { ...death, thrown: { stack } }).message).toContain('nobody caught it (/me/run.ts:3:4). ')
  const fails = {
    get stack(): string {
      throw new RangeError('nobody may read this')
    },
  }
  for (const thrown of [undefined, 'text', null, { stack: 5 }, { stack: Object.create(null) }, { remoteStack: {} }, fails])
    expect(workerDied('call', { ...death, thrown }).message).toContain('nobody caught it. ')
})
