/** Which file a module's URL or path names, and which name an error gives if there is none. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from '@jest/globals'
import { locateModule } from './module-place.js'

test.each([
  [['program.ts'], './program.js', 'program.ts'],
  [['program.mts'], './program.mjs', 'program.mts'],
  [['program.js'], './program.ts', 'program.js'],
  [['program.mjs'], './program.ts', 'program.mjs'],
  [['program.cjs'], './program.ts', 'program.cjs'],
  [['program.mjs'], './program.mts', 'program.mjs'],
  [['program.cjs'], './program.cts', 'program.cjs'],
  [['program.js', 'program.ts'], './program.ts', 'program.ts'],
  [['program.js', 'program.ts'], './program.js', 'program.js'],
])('CLU-110: where there is %j, %s is %s, as a URL and as a path', (there, named, found) => {
  withFiles(there, (folder) => {
    const url = pathToFileURL(join(folder, found)).href
    expect(locateModule(new URL(named, `${pathToFileURL(folder).href}/`))).toEqual({ url, isThere: true, near: '' })
    expect(locateModule(join(folder, named))).toEqual({ url, isThere: true, near: '' })
  })
})

test.each([
  [['program.mjs'], './program.js', 'Next to it is program.mjs. '],
  [['program.mjs', 'program.ts'], './program', 'Next to it is program.mjs, program.ts. '],
  [['program.mjs'], './programs.js', ''],
  [['program.json'], './program.js', ''],
  [[], './nowhere/program.js', ''],
])('CLU-110: where there is %j, %s is not there: "%s"', (there, named, near) => {
  withFiles(there, (folder) => {
    const place = locateModule(join(folder, named))
    expect([place.isThere, place.near]).toEqual([false, near])
  })
})

function withFiles(names: readonly string[], use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-base-'))
  try {
    for (const name of names) writeFileSync(join(folder, name), '')
    use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
