/** Which frames of an error a user sees, where postgrad is installed. */
import { afterEach, expect, test } from '@jest/globals'
import { beginAtProgram, firstOfProgram } from './program-stack.js'

const OWN = 'add (/me/node_modules/postgrad/dist/library.cjs:1:2)'
const OF_PNPM = 'add (C:\\me\\node_modules\\.pnpm\\postgrad@1\\node_modules\\postgrad\\dist\\library.cjs:1:2)'
const PROGRAM = 'step (/me/run.ts:3:4)'

test.each([
  ['below those of postgrad', [OWN, OF_PNPM, PROGRAM, OWN], 2],
  ['below those between them', [OWN, 'new Promise (<anonymous>)', 'node:internal/x:1:2', 'run (node:async_hooks:1:2)', PROGRAM], 4],
  ['below a Promise.all between them', [OWN, 'async Promise.all (index 12)', PROGRAM], 2],
  ['of another package', [OWN, '/me/node_modules/postgrad-more/dist/a.js:1:2'], 1],
  ['at once', [PROGRAM, OWN], 0],
  ['nowhere', [OWN, 'node:internal/x:1:2'], -1],
  ['in no frames at all', [], -1],
])('CLU-119 the program is %s', (_what, frames, first) => {
  expect(firstOfProgram(frames)).toBe(first)
})

const { captureStackTrace, prepareStackTrace, stackTraceLimit } = Error
afterEach(() => {
  Object.assign(Error, { captureStackTrace, prepareStackTrace, stackTraceLimit })
})

test('CLU-119 an Error.prepareStackTrace of the program is left alone, and what it gives', () => {
  const mine = (): unknown => ({ mine: true })
  Error.prepareStackTrace = mine
  const error = new RangeError('x')
  beginAtProgram(error, deep)
  expect([Error.prepareStackTrace, error.stack]).toEqual([mine, { mine: true }])
})

test('CLU-119 the limit of frames that the program has set holds, and stays', () => {
  for (const above of [1, 9]) {
    const error = made(above, 2)
    expect(Error.stackTraceLimit).toBe(2)
    expect(error.stack).toBe(['RangeError: x', ...(above < 2 ? [PROGRAM] : [PROGRAM, PROGRAM])].join('\n    at '))
  }
})

test('CLU-119 more frames than Node keeps are asked for only where all of those that it keeps are of postgrad', () => {
  for (const [above, limit, isAsked] of [
    [0, 10, false],
    [9, 10, false],
    [10, 10, true],
    [20, 10, true],
    // All that there are.
    [99, 200, false],
    [5, 0, false],
  ] as const) {
    let asked = 0
    Error.captureStackTrace = (holder, below) => {
      asked++
      captureStackTrace(holder, below)
    }
    const { stack } = made(above, limit)
    expect([above, limit, asked > 0]).toEqual([above, limit, isAsked])
    if (above === 20) expect(stack!.split('\n')).toEqual(['RangeError: x', ...new Array<string>(10).fill(`    at ${PROGRAM}`)])
  }
})

test.each([
  ['with frames of the program', 3, [PROGRAM, PROGRAM]],
  ['with none', 200, [OWN, OWN]],
])('CLU-120 below the message is the command that explains its code, %s', (_what, above, frames) => {
  const error = made(above, 2, 'A_B')
  expect(error.stack).toBe(['RangeError: x\n  More: npx postgrad explain A_B', ...frames].join('\n    at '))
  expect(error.message).toBe('x')
})

test('CLU-120 nothing explains a code that the program has thrown itself, and text that is not a code', () => {
  expect(made(0, 2, 'A_B').stack).toBe(['RangeError: x', PROGRAM, PROGRAM].join('\n    at '))
  expect(made(3, 2, 'A; rm -rf').stack).toBe(['RangeError: x', PROGRAM, PROGRAM].join('\n    at '))
})

/** An error in 40 calls and more, of which the innermost `above` are of postgrad. */
function made(above: number, stackTraceLimit: number, code?: string): Error {
  return deep(40, function inner() {
    Error.prepareStackTrace = (cause, frames) => [String(cause), ...frames.map((_, i) => (i < above ? OWN : PROGRAM))].join('\n    at ')
    Error.stackTraceLimit = stackTraceLimit
    const error = Object.assign(new RangeError('x'), code !== undefined && { code })
    beginAtProgram(error, inner)
    return error
  })
}

function deep<T>(calls: number, fn: () => T): T {
  return calls === 0 ? fn() : deep(calls - 1, fn)
}
