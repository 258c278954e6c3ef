/** What a program may be: which files are TypeScript, what loads them, and what a default export must be. */
import { describe, expect, test } from '@jest/globals'
import { isTypeScript, mainOf, typescriptLoader } from './program.js'

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

describe('mainOf', () => {
  test('the default export', () => {
    const main = (): number => 1
    expect(mainOf({ default: main }, 'file:///p.js')).toBe(main)
  })

  test.each([{}, { default: 3 }, { main: () => 1 }])('%j has none', (module) => {
    expect(() => mainOf(module, 'file:///p.js')).toThrow('export default async function main')
  })
})
