/** Copies of the library in one thread: by their places. */
import { expect, test } from '@jest/globals'
import { noteCopy } from './second-copy.js'

const INSTALLED = 'file:///app/node_modules/postgrad/dist/'

test.each([
  ['an installed one and one in a bundle', [INSTALLED, null], 'one is in file:///app/node_modules/postgrad/dist/, the other in a bundle'],
  ['two that are installed', [INSTALLED, 'file:///other/'], 'the other in file:///other/'],
  ['two in bundles', [null, null], 'one is in a bundle, the other in a bundle'],
])('CLU-57 a second copy is said to be one: %s', (_what, places, said) => {
  const realm = {}
  const warnings: unknown[] = []
  for (const place of places) noteCopy(place, 'Have one.', realm, (...warning) => warnings.push(warning))
  expect(warnings).toEqual([[expect.stringMatching(/second copy.*\n {2}Remedy: Have one\.$/s), 'POSTGRAD_TWICE']])
  expect((warnings as string[][])[0]![0]).toContain(said)
})

test('CLU-57 a copy that a test runner loads again from its place is no second one', () => {
  const realm = {}
  const warnings: unknown[] = []
  for (const place of [INSTALLED, INSTALLED]) noteCopy(place, 'Have one.', realm, (...warning) => warnings.push(warning))
  expect(warnings).toEqual([])
})
