/** Which frames of an error a user sees, where postgrad is installed. */
import { afterEach, expect, test } from '@jest/globals'
import { beginAtProgram, programFrames } from './program-stack.js'

const OWN = 'add (/me/node_modules/postgrad/dist/library.cjs:1:2)'
const OF_PNPM = 'add (C:\\me\\node_modules\\.pnpm\\postgrad@1\\node_modules\\postgrad\\dist\\library.cjs:1:2)'
const PROGRAM = 'step (/me/run.ts:3:4)'

test.each([
  ['below those of postgrad', [OWN, OF_PNPM, PROGRAM, OWN], [PROGRAM, OWN]],
  ['below those between them', [OWN, 'new Promise (<anonymous>)', 'node:internal/x:1:2', 'run (node:async_hooks:1:2)', PROGRAM], [PROGRAM]],
  ['below a Promise.all between them', [OWN, 'async Promise.all (index 12)', PROGRAM], [PROGRAM]],
  ['of another package', [OWN, '/me/node_modules/postgrad-more/dist/a.js:1:2'], ['/me/node_modules/postgrad-more/dist/a.js:1:2']],
  ['at once', [PROGRAM, OWN], null],
  ['nowhere', [OWN, 'node:internal/x:1:2'], null],
  ['in no frames at all', [], null],
])('CLU-119 the program is %s', (_what, frames, expected) => {
  expect(programFrames(frames)).toEqual(expected)
})

const { prepareStackTrace, stackTraceLimit } = Error
afterEach(() => {
  Object.assign(Error, { prepareStackTrace, stackTraceLimit })
})

test('CLU-119 an Error.prepareStackTrace of the program is left alone, and what it gives', () => {
  const mine = (): unknown => ({ mine: true })
  Error.prepareStackTrace = mine
  const error = new RangeError('x')
  beginAtProgram(error, made)
  expect([Error.prepareStackTrace, error.stack]).toEqual([mine, { mine: true }])
})

test('CLU-119 the limit of frames that the program has set holds, and stays', () => {
  Error.prepareStackTrace = (error, frames) => [String(error), ...[OWN, ...frames.map(() => PROGRAM)]].join('\n    at ')
  Error.stackTraceLimit = 2
  const error = made()
  expect(Error.stackTraceLimit).toBe(2)
  expect(error.stack).toBe(['RangeError: x', PROGRAM, PROGRAM].join('\n    at '))
})

function made(): Error {
  const error = new RangeError('x')
  beginAtProgram(error, made)
  return error
}
