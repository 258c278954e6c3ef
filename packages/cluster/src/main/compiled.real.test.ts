/** Threads load the library from one file, which another thread has compiled. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { houseOf } from '@postgrad/base/internal'
import { launcher } from '../clusters.fixture.js'
import { jobs } from '../index.js'
import { tookCompiled } from './compiled.fixture.js'

const launch = launcher()
const program = new URL('./compiled.fixture.js', import.meta.url)

test('CLU-66 threads of clusters and pools take what has been compiled', async () => {
  // By modules, under `npm test -- --modules`, there is nothing to take.
  const expected = existsSync(new URL('base/load.cjs', houseOf()!)) ? true : null
  const cluster = await launch(program, { workers: ['a', 'b'] })
  const both = await Promise.all(['a', 'b'].map((name) => cluster.on(name).run(tookCompiled)))
  await using pool = jobs(program, { threads: 1 })
  expect([...both, await pool.run(tookCompiled)]).toEqual([expected, expected, expected])
  // V8 takes no code that was made under other flags.
  setFlagsFromString('--stack-trace-limit=11')
  try {
    await cluster.join('c')
    expect(await cluster.on('c').run(tookCompiled)).toBe(expected)
  } finally {
    setFlagsFromString('--stack-trace-limit=10')
  }
})

test('CLU-66 a thread that loads the library loads no module of Node that it does not use', async () => {
  const load = fileURLToPath(new URL('base/load.cjs', houseOf()!))
  // By modules, under `npm test -- --modules`, all are imported.
  if (!existsSync(load)) return
  const code = `const before = new Set(process.moduleLoadList)
    const library = require(${JSON.stringify(load)}).load()
    const loaded = process.moduleLoadList.filter((name) => !before.has(name))
    require('node:worker_threads').parentPort.postMessage([Object.keys(library).length, loaded])`
  const worker = new Worker(code, { eval: true })
  // A thread that ends at once may be reported in the same turn as its message.
  const exited = once(worker, 'exit')
  const [[doors, loaded]] = (await once(worker, 'message')) as [[number, string[]]]
  expect(doors).toBeGreaterThan(10)
  expect(['crypto', 'net', 'child_process', 'fs/promises'].filter((name) => loaded.includes(`NativeModule ${name}`))).toEqual([])
  await exited
})

test('CLU-66 a worker that closes keeps the code of what it has called, if NODE_COMPILE_CACHE names a folder', () => {
  // By modules, under `npm test -- --modules`, nothing is kept.
  if (!existsSync(new URL('base/load.cjs', houseOf()!))) return
  const folder = mkdtempSync(join(tmpdir(), 'compiled-test-'))
  try {
    const env = { ...process.env, NODE_COMPILE_CACHE: folder }
    const script = fileURLToPath(new URL('../fixtures/compiles.js', import.meta.url))
    const times = [1, 2].map(() => {
      execFileSync(process.execPath, [script], { env, timeout: 60_000 })
      const kept = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => basename(name).startsWith('postgrad-'))
      expect(kept).toHaveLength(1)
      expect(readFileSync(join(folder, kept[0]!)).at(-1)).toBe(1)
      return statSync(join(folder, kept[0]!)).mtimeMs
    })
    // The second process keeps none.
    expect(times[1]).toBe(times[0])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** In the place of Node's: writes down in which thread it was called. Node 20 has none. */
const SPY = `
const { isMainThread } = require('node:worker_threads')
require('node:module').enableCompileCache = () => require('node:fs').appendFileSync(process.env.ASKED, isMainThread ? 'main ' : 'thread ')
`

test('SEC-14 no thread, process or pool keeps compiled code unless NODE_COMPILE_CACHE names a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'compiled-test-'))
  try {
    const [spy, asked] = [join(folder, 'spy.cjs'), join(folder, 'asked')]
    writeFileSync(spy, SPY)
    const { NODE_COMPILE_CACHE: _, ...inherited } = process.env
    const env = { ...inherited, NODE_OPTIONS: `--require "${spy.replaceAll('\\', '/')}"`, ASKED: asked, TMPDIR: folder }
    const script = fileURLToPath(new URL('../fixtures/compiles.js', import.meta.url))
    expect(execFileSync(process.execPath, [script], { env, encoding: 'utf8', timeout: 60_000 })).toBe('thread first second\n')
    expect(existsSync(asked) ? readFileSync(asked, 'utf8') : 'nobody').toBe('nobody')
    expect(readdirSync(folder)).toEqual(['spy.cjs'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
