/** The lines of the library, one file as it is installed: tools that take it into a bundle may indent them. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { transform } from 'esbuild'

const library = new URL('../../../../dist/library.cjs', import.meta.url)
/** With `--modules` there is none. */
const isOneFile = existsSync(library)

test('CLU-57: no string and no template of the library is broken over lines, so that a tool may indent it', async () => {
  if (!isOneFile) return
  const text = readFileSync(library, 'utf8')
  const indented = text.replaceAll(/^/gm, '\t')
  const [plain, again] = await Promise.all([text, indented].map((one) => transform(one, { minifyWhitespace: true })))
  expect(text.split('\n').filter((line) => /(?<!\\)(\\\\)*\\$/.test(line))).toEqual([])
  expect(again!.code === plain!.code).toBe(true)
})

test('CLU-57: lines of the library end between its words: of an uncaught error Node prints the whole line', () => {
  if (!isOneFile) return
  const lengths = readFileSync(library, 'utf8')
    .split('\n')
    .map((line) => line.length)
  expect(lengths.length).toBeGreaterThan(5000)
  expect(lengths.filter((length) => length > 2000)).toEqual([])
})
