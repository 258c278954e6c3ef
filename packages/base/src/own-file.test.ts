/** Files that threads load: there, or missing because this was bundled. */
import { expect, test } from '@jest/globals'
import { ownFile } from './own-file.js'

test('CLU-57 a file that is there is given', () => {
  const url = new URL('./own-file.js', import.meta.url)
  expect(ownFile('launch', () => url)).toBe(url)
})

test.each<[string, () => URL]>([
  ['without the file', () => new URL('./worker-entry.js', import.meta.url)],
  ['without import.meta.url', () => new URL('./worker-entry.js', undefined as never)],
])('CLU-57 a bundle %s is told with the settings of bundlers', (_what, locate) => {
  expect(() => ownFile('launch', locate)).toThrow(
    expect.objectContaining({ code: 'POSTGRAD_BUNDLED', op: 'launch', message: expect.stringContaining('--external:postgrad') }),
  )
})

test('CLU-57 what else goes wrong is not hidden', () => {
  const broken = (): URL => {
    throw new RangeError('broken')
  }
  expect(() => ownFile('launch', broken)).toThrow(RangeError)
})
