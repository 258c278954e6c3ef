/** Ends of a connection compare the release that is installed. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from '@jest/globals'
import { RELEASE } from '@postgrad/transport/internal'

test('HSK-8 the release that the library says is that of its manifest', () => {
  const manifest = createRequire(import.meta.url).resolve('postgrad/package.json')
  expect(JSON.parse(readFileSync(manifest, 'utf8'))).toMatchObject({ name: 'postgrad', version: RELEASE })
})
