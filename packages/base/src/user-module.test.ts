/** Which files are TypeScript, and what loads them. */
import { describe, expect, test } from '@jest/globals'
import { isTypeScript, typescriptLoader } from './user-module.js'

test.each([
  ['file:///a/b.ts', true],
  ['file:///a/b.mts', true],
  ['file:///a/b.ts?version=1', true],
  ['file:///a/b.js', false],
  ['file:///a/ts', false],
  ['file:///a.ts/b.mjs', false],
])('%s is TypeScript: %s', (url, expected) => {
  expect(isTypeScript(url)).toBe(expected)
})

describe('typescriptLoader', () => {
  const program = 'file:///a/b.ts'

  test('tsx, where it is installed', () => {
    for (const version of ['20.20.2', '24.0.0']) expect(typescriptLoader(program, 'file:///tsx.mjs', version)).toBe('file:///tsx.mjs')
  })

  test.each(['22.18.0', '22.20.1', '23.0.0', '24.11.0'])('nothing on Node %s', (version) => {
    expect(typescriptLoader(program, null, version)).toBeNull()
  })

  test.each(['20.20.2', '22.17.9'])('an error with its remedy on Node %s without tsx', (version) => {
    let error: unknown
    try {
      typescriptLoader(program, null, version)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({
      code: 'TYPESCRIPT_LOADER_MISSING',
      values: { program },
      remedy: expect.stringContaining('npm install --save-dev tsx'),
    })
  })
})
