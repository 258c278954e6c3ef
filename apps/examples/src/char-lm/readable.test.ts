/** Samples as they are shown: lines, tabs, what cannot be seen, and length. */
import { expect, test } from '@jest/globals'
import { readable } from './readable.js'

test('lines stand behind a margin, empty ones too; tabs are arrows', () => {
  expect(readable('a\n\n\tb\r\nc')).toBe('  │ a\n  │\n  │ → b\n  │ c')
})

test('nothing reaches the terminal that would move its cursor or change its colours', () => {
  expect(readable('\u001b[31mred\u0007\u202e\0')).toBe('  │ \\u{1b}[31mred\\u{7}\\u{202e}\\u{0}')
})

test('long lines are folded between characters, many lines cut', () => {
  const folded = readable('🙂'.repeat(100)).split('\n')
  expect(folded).toEqual([`  │ ${'🙂'.repeat(76)}`, `  │ ${'🙂'.repeat(24)}`])
  expect(readable('\n'.repeat(99)).split('\n').at(-1)).toBe('  │ … (76 lines more)')
})
