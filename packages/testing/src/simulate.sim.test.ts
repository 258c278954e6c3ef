/** What `simulate` says of a body that failed: enough to run it again. */
import { expect, test } from '@jest/globals'
import { simulate } from './simulate.js'

test('an error of the body says in its stack, which is what a test runner prints, under which seed it arose', async () => {
  const error = await simulate({ workers: 2, seed: 17 }, async () => {
    throw new RangeError('boom')
  }).catch((e: unknown) => e as RangeError & { seed: number })
  expect(error).toMatchObject({ name: 'RangeError', message: 'boom', seed: 17 })
  expect((error as Error).stack).toMatch(
    /^RangeError: boom \(seed 17\)\nRepeat it, in front of the same test command: POSTGRAD_REPLAY=[\w.-]+\n +at /,
  )
})

test('what is thrown that is no error, or cannot be written to, comes through as it is', async () => {
  const thrown = async (value: unknown) => await simulate({ workers: 1, seed: 17 }, () => Promise.reject(value)).catch((e: unknown) => e)
  expect(await thrown('boom')).toBe('boom')
  const frozen = Object.freeze(new Error('boom'))
  expect(await thrown(frozen)).toBe(frozen)
})
