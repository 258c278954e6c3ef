/** Files that threads load: there, or missing because this was bundled. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { houseOf, ownFile } from './own-file.js'

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
])('CLU-57 a bundle %s is told with the settings of bundlers', (_what, own) => {
  expect(() => ownFile('launch', 'base', 'worker-entry.js', own)).toThrow(
    expect.objectContaining({
      code: 'POSTGRAD_BUNDLED',
      op: 'launch',
      message: expect.stringMatching(/--external:postgrad;.*external: \[\/\^postgrad.*externalsType: 'module'.*serverExternalPackages/),
    }),
  )
})
