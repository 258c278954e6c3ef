/** Files that threads load: there, or missing because this was bundled; and copies of the library in one thread. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { houseOf, noteCopy, ownFile } from './own-file.js'

test('CLU-57 a file that is there is given', () => {
  const path = fileURLToPath(ownFile('launch', 'base', 'typescript-format.js'))
  expect([path.slice(fileURLToPath(houseOf()!).length), existsSync(path)]).toEqual([
    expect.stringMatching(/^base\/(dist\/)?typescript-format\.js$/),
    true,
  ])
})

test.each([
  ['packages/base/dist/own-file.js', 'packages/rpc/dist/a/b.js', 'packages/'],
  ['node_modules/postgrad/dist/base/own-file.js', 'node_modules/postgrad/dist/rpc/a/b.js', 'node_modules/postgrad/dist/'],
])('CLU-57 seen from %s it is %s', (own, file, house) => {
  expect(ownFile('launch', 'rpc', 'a/b.js', `http://host/${own}`).href).toBe(`http://host/${file}`)
  expect(houseOf(`http://host/${own}`)).toBe(`http://host/${house}`)
})

test.each([
  ['without the file', new URL('./own-file.js', import.meta.url).href],
  ['in one file', 'file:///app/out.mjs'],
  ['without import.meta.url', ''],
])('CLU-57 a bundle %s is refused with the settings of bundlers', (_what, own) => {
  expect(() => ownFile('launch', 'base', 'worker-entry.js', own)).toThrow(
    expect.objectContaining({
      code: 'POSTGRAD_BUNDLED',
      op: 'launch',
      message: expect.stringMatching(/--external:postgrad;.*external: \[\/\^postgrad.*externalsType: 'module'.*serverExternalPackages/),
    }),
  )
})

const INSTALLED = 'file:///app/node_modules/postgrad/dist/'

test.each([
  ['an installed one and one in a bundle', [INSTALLED, null], 'one is in file:///app/node_modules/postgrad/dist/, the other in a bundle'],
  ['two that are installed', [INSTALLED, 'file:///other/'], 'the other in file:///other/'],
  ['two in bundles', [null, null], 'one is in a bundle, the other in a bundle'],
])('CLU-57 a second copy is said to be one: %s', (_what, places, said) => {
  const realm = {}
  const warnings: unknown[] = []
  for (const place of places) noteCopy(place, realm, (...warning) => warnings.push(warning))
  expect(warnings).toEqual([
    [expect.stringMatching(/second copy.*\n {2}Remedy: Leave postgrad out of the bundle, with its subpaths/s), 'POSTGRAD_TWICE'],
  ])
  expect((warnings as string[][])[0]![0]).toContain(said)
})

test('CLU-57 a copy that a test runner loads again from its place is no second one', () => {
  const realm = {}
  const warnings: unknown[] = []
  for (const place of [INSTALLED, INSTALLED]) noteCopy(place, realm, (...warning) => warnings.push(warning))
  expect(warnings).toEqual([])
})
