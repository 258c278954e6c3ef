/** `simulate` says enough of a body that failed to run it again. */
import { describe, expect, test } from '@jest/globals'
import { explore } from '../explore/explore.js'
import { exploreProgram } from '../explore/explore-program.js'
import { inlined } from '../inlined/inlined.js'
import { simulateProgram } from './program-run.js'
import { type SimulateOptions, simulate } from './simulate.js'

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

describe('what is wrong before a run begins is told, and is no run that could be repeated:', () => {
  const body = async () => 1
  test.each<[what: string, options: unknown, got: string]>([
    ['no options', undefined, 'undefined'],
    ['no workers', {}, 'undefined'],
    ['a seed that is text', { workers: 1, seed: '3' }, "'3'"],
    ['a misspelt option', { workers: 1, sed: 3 }, 'sed'],
    ['a misspelt plan', { workers: 1, faults: 'randm' }, "'randm'"],
    ['one rule in place of a list', { workers: 1, faults: { do: 'drop' } }, '{"do":"drop"}'],
  ])('%s', async (_what, options, got) => {
    for (const run of [simulate, explore]) {
      const error = (await run(options as SimulateOptions, body).catch((e: unknown) => e)) as Error
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(`got ${got}.`) })
      expect(error).not.toHaveProperty('replay')
    }
  })

  test('no body, for which the remedy names what runs a module', async () => {
    for (const run of [simulate, explore, inlined]) {
      const error = await run({ workers: 1 }, undefined as never).catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringMatching(/simulateProgram.*exploreProgram/) })
      expect(error).not.toHaveProperty('replay')
    }
    const program = 'data:text/javascript,export default async () => 1'
    await expect(simulateProgram({ program }, undefined as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const misspelt = { workers: 1, sed: 3 } as SimulateOptions
    await expect(simulateProgram({ program }, misspelt)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(exploreProgram({ program, ...misspelt })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})
