/** Which default exports a program may have. */
import { describe, expect, test } from '@jest/globals'
import { mainOf } from './program.js'

describe('mainOf', () => {
  test('the default export', () => {
    const main = (): number => 1
    expect(mainOf({ default: main }, 'file:///p.js')).toBe(main)
  })

  test.each([{}, { default: 3 }, { main: () => 1 }])('%j has none', (module) => {
    expect(() => mainOf(module, 'file:///p.js')).toThrow('export default async function main')
  })
})
