/** The library as one file: whom its code is handed to. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

const library = (value: string): string => `exports.door = { value: '${value}', isAny: () => true }\n`

/** Loads the library, may put another in its place, and starts a thread that says what it has, and whether it took the code. */
const MAIN = `
const { Worker, isMainThread } = require('node:worker_threads')
const load = require('./base/load.cjs')
const { value } = load.load().door
if (!isMainThread) console.log(value, load.isShared())
else {
  load.shareCode()
  if (process.argv[2] !== undefined) require('node:fs').writeFileSync('library.cjs', process.argv[2])
  new Worker(__filename)
}
`

test.each([
  ['its file is what it was', [], 'one true\n'],
  ['its file has been replaced by one as long', [library('two')], 'two false\n'],
])('CLU-66 code is taken over only from the file that is there: %s', (_what, args, printed) => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-load-'))
  try {
    mkdirSync(join(folder, 'base'))
    copyFileSync(fileURLToPath(new URL('./load.cjs', import.meta.url)), join(folder, 'base/load.cjs'))
    writeFileSync(join(folder, 'library.cjs'), library('one'))
    writeFileSync(join(folder, 'main.cjs'), MAIN)
    expect(execFileSync(process.execPath, ['main.cjs', ...args], { cwd: folder, encoding: 'utf8' })).toBe(printed)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
