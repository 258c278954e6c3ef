/** Tests the one-file library: who gets its code. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
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

/** A library in a folder of its own, and what a program prints that loads it, as often as it is run. */
function printed(
  text: string,
  main: string,
  args: readonly string[] = [],
  runs: readonly ((folder: string) => void)[] = [() => {}],
): string {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-load-'))
  try {
    mkdirSync(join(folder, 'base'))
    copyFileSync(fileURLToPath(new URL('./load.cjs', import.meta.url)), join(folder, 'base/load.cjs'))
    writeFileSync(join(folder, 'library.cjs'), text)
    writeFileSync(join(folder, 'main.cjs'), main)
    const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
    const outputs = runs.map((prepare) => {
      prepare(folder)
      return execFileSync(process.execPath, ['main.cjs', ...args], { cwd: folder, encoding: 'utf8', env })
    })
    return outputs.join('')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test.each([
  ['its file is what it was', [], 'one true\n'],
  ['its file has been replaced by one as long', [library('two')], 'two false\n'],
])('CLU-66 code is taken over only from the file that is there: %s', (_what, args, out) => {
  expect(printed(library('one'), MAIN, args)).toBe(out)
})

/** Says whether V8 took code that was kept. */
const KEPT = `
const { Script } = require('node:vm')
const scripts = []
require('node:vm').Script = class extends Script {
  constructor(...args) {
    super(...args)
    scripts.push(this)
  }
}
console.log(require('./base/load.cjs').load().door.value, scripts[0].cachedDataRejected)
`
/** Our files in the compile cache. From 22.1 on Node keeps its own in that folder, in a folder of its version. */
const keptIn = (folder: string): string[] =>
  readdirSync(join(folder, 'compiled'), { recursive: true, encoding: 'utf8' }).filter((one) => basename(one).startsWith('postgrad-'))
const cacheIn = (folder: string): string => join(folder, 'compiled', keptIn(folder)[0]!)

test('CLU-66 code is kept for the next process in the compile cache that a user gives Node; code that was damaged, that others can write, that is another user’s or a link, or of another text is not taken', () => {
  const damage = (folder: string): void => {
    const code = readFileSync(cacheIn(folder))
    code[code.length >> 1]! ^= 1
    writeFileSync(cacheIn(folder), code)
  }
  // Of one time and one length.
  const put = (value: string) => (folder: string) => {
    writeFileSync(join(folder, 'library.cjs'), library(value))
    utimesSync(join(folder, 'library.cjs'), 0, 0)
  }
  const lend = (folder: string): void => chmodSync(cacheIn(folder), 0o622)
  const none = (): void => {}
  const link = (folder: string): void => {
    const cache = cacheIn(folder)
    renameSync(cache, join(folder, 'kept'))
    symlinkSync(join(folder, 'kept'), cache)
  }
  // Root alone can give a file away.
  const give = (folder: string): void => (process.getuid?.() === 0 ? chownSync(cacheIn(folder), 65_534, 65_534) : lend(folder))
  const hasModes = process.platform !== 'win32'
  const runs = [put('one'), none, damage, none, ...(hasModes ? [lend, link, give] : []), put('two')]
  expect(printed(library('one'), KEPT, [], runs).trim().split('\n')).toEqual([
    ...['one undefined', 'one false'],
    ...['one undefined', 'one false'],
    ...(hasModes ? ['one undefined', 'one undefined', 'one undefined'] : []),
    'two undefined',
  ])
})

/** Two threads, one after the other, call what the main thread has not called, and keep their code. Prints whether V8 took code that was kept; of each thread whether it took the code, and whether it had to compile the function. */
const WORK = `
const { Worker, isMainThread } = require('node:worker_threads')
const { Script } = require('node:vm')
const scripts = []
require('node:vm').Script = class extends Script {
  constructor(...args) {
    super(...args)
    scripts.push(this)
  }
}
const load = require('./base/load.cjs')
const { door } = load.load()
if (!isMainThread) {
  const before = scripts[0].createCachedData().length
  door.isAny()
  console.log(load.isShared(), scripts[0].createCachedData().length > before)
  load.keepCode()
  load.keepCode()
} else {
  console.log(scripts[0].cachedDataRejected)
  load.shareCode()
  const first = new Worker(__filename)
  first.once('exit', () => new Worker(__filename))
}
`

test('CLU-66 the first worker of a process keeps the code of the functions that it has called, too; the next process hands that to its threads, and keeps no other', () => {
  const kept: string[] = []
  const note = (folder: string): void => {
    if (existsSync(join(folder, 'compiled'))) kept.push(`${keptIn(folder).length} ${readFileSync(cacheIn(folder)).at(-1)}`)
  }
  const stamp = (folder: string): void => {
    note(folder)
    utimesSync(cacheIn(folder), 0, 0)
  }
  const isSame = (folder: string): void => {
    note(folder)
    kept.push(String(statSync(cacheIn(folder)).mtimeMs))
  }
  const damage = (folder: string): void => {
    writeFileSync(cacheIn(folder), readFileSync(cacheIn(folder)).fill(0, 40, 60))
  }
  const out = printed(library('one'), WORK, [], [() => {}, stamp, isSame, damage])
  expect(kept).toEqual(['1 1', '1 1', '0'])
  expect(out.trim().split('\n')).toEqual([
    // Each thread compiles isAny.
    ...['undefined', 'true true', 'true true'],
    ...['false', 'true false', 'true false'],
    ...['false', 'true false', 'true false'],
    ...['undefined', 'true true', 'true true'],
  ])
})

test('CLU-66 where the folder for kept code is a file, the library is loaded without it', () => {
  const put = (folder: string): void => writeFileSync(join(folder, 'compiled'), '')
  expect(printed(library('one'), WORK, [], [put])).toBe('undefined\ntrue true\ntrue true\n')
})

test('CLU-66 what a thread left that ended while it wrote is removed by the next one to write, if it is old', () => {
  const left: string[] = []
  const leave = (folder: string): void => {
    const cache = cacheIn(folder)
    writeFileSync(cache, readFileSync(cache).fill(0, 40, 60))
    for (const name of ['old', 'new']) writeFileSync(`${cache}.${name}`, '')
    utimesSync(`${cache}.old`, 0, 0)
  }
  const look = (folder: string): void => {
    for (const name of keptIn(folder)) left.push(basename(name).replace(/^postgrad-[^.]*/, 'cache'))
  }
  printed(library('one'), WORK, [], [() => {}, leave, look])
  expect(left.sort()).toEqual(['cache', 'cache.new'])
})

/** Prints what large objects take in V8's heap of a thread, in MB: a string of the library's length is one. */
const LARGE = `
const { Worker, isMainThread } = require('node:worker_threads')
const load = require('./base/load.cjs')
load.load()
if (isMainThread) {
  load.shareCode()
  new Worker(__filename)
} else {
  const spaces = require('node:v8').getHeapSpaceStatistics()
  console.log(load.isShared(), spaces.find((one) => one.space_name === 'large_object_space').space_used_size / 1e6)
}
`

test('CLU-66 the text of the library is not in the heap of a thread, where it would be copied', () => {
  const [isShared, megabytes] = printed(`${library('one')}// ${'-'.repeat(4e6)}\n`, LARGE)
    .trim()
    .split(' ')
  expect(isShared).toBe('true')
  expect(Number(megabytes)).toBeLessThan(2)
})
