/** References on threads: a cluster's table of them, and its report at the end about those that nobody disposed of. */
import { expect, jest, test } from '@jest/globals'
import { referenceLeaks } from '@postgrad/rpc/internal'
import { launcher } from '../clusters.fixture.js'
import { backwardThere, drop, keep, moduleThere, proxies, useKept } from '../fixtures/references.js'
import { launch as realLaunch } from '../main/launch.js'

const program = new URL('../fixtures/references.js', import.meta.url)
const launch = launcher()
const workers = ['a', 'b']

test('RREF-31 cluster.references() tells who holds what, on every worker', async () => {
  const cluster = await launch(program, { workers, referenceStacks: true })
  await cluster.on('a').run(keep, 'b')
  const tables = await cluster.references()
  expect(tables.b!.owned).toMatchObject([{ type: 'Thing', holders: [{ worker: { name: 'a' } }] }])
  expect(tables.a!.held).toMatchObject([{ owner: { name: 'b' }, confirmed: true }])
  expect(tables.a!.held[0]!.madeAt).toContain('fixtures/references.js')
  expect(referenceLeaks(tables)).toHaveLength(1)
  await cluster.on('a').run(drop)
})

test('RREF-32 a warning at the end names what was left, by whom, and where it was made', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  try {
    const cluster = await launch(program, { workers, referenceStacks: true, referenceLeaks: 'warn' })
    await cluster.on('a').run(keep, 'b')
    await cluster.close()
    expect(warn).toHaveBeenCalledTimes(1)
    const [message, options] = warn.mock.calls[0] as unknown as [string, { type: string }]
    expect(options.type).toBe('RREF_LEAK')
    expect(message).toMatch(
      /1 reference was left:\n {2}RRef \d+ \(Thing\) of worker 'b', held by 'a' for \d+ ms, made at .*keep .*references\.js/,
    )
    expect((await cluster.closed).leaks).toMatchObject([{ owner: 'b', holder: 'a', type: 'Thing' }])
  } finally {
    warn.mockRestore()
  }
})

test('RREF-32 as an error close rejects, when all threads have ended; ignored, it says nothing; without leaks neither', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  try {
    // Not by the launcher, which closes once more.
    const strict = await realLaunch(program, { workers, referenceLeaks: 'error' })
    await strict.on('a').run(keep, 'b')
    await expect(strict.close()).rejects.toMatchObject({ code: 'RREF_LEAK', values: { leaks: [{ owner: 'b', holder: 'a' }] } })
    expect((await strict.closed).deaths).toEqual([])
    const ignoring = await launch(program, { workers })
    await ignoring.on('a').run(keep, 'b')
    await ignoring.close()
    const clean = await launch(program, { workers, referenceLeaks: 'error' })
    await clean.on('a').run(keep, 'b')
    await clean.on('a').run(drop)
    await clean.close()
    expect(warn).not.toHaveBeenCalled()
  } finally {
    warn.mockRestore()
  }
})

test('RREF-27 RREF-28 RREF-29 proxies on threads: methods of a class and of a tensor, results that stay, a name that is none, a third worker', async () => {
  const cluster = await launch(program, { workers: ['a', 'b', 'c'], referenceLeaks: 'error' })
  for (const at of ['b', 'a']) {
    expect(await cluster.on('a').run(proxies, at, 'c')).toEqual([[101, 112, 102], 117, 120, 'METHOD_NOT_FOUND', 4])
  }
  await cluster.close()
})

test('RREF-30 RM-1 RM-3 RM-6 a pass that begins at a reference, and a module on another thread', async () => {
  const cluster = await launch(program, { workers, referenceLeaks: 'error' })
  expect(await cluster.on('a').run(backwardThere, 'b')).toEqual([2, 2, 2])
  const { there, here } = await cluster.on('a').run(moduleThere, 'b/wasm')
  expect(there).toEqual(here)
  await cluster.close()
})

test('RREF-20 RREF-21 an owner that is started again: a reference to its former life fails and says so; a user that is: its forks end', async () => {
  const cluster = await launch(program, { workers })
  await cluster.on('a').run(keep, 'b')
  await cluster.kill('b')
  const { id } = await cluster.restart('b')
  const stale = await cluster.on('a').run(useKept)
  expect(stale).toMatchObject({ code: 'WORKER_DIED', restartedAs: id })
  expect(stale.message).toMatch(/'b'/)
  await cluster.on('a').run(drop)
  await cluster.on('a').run(keep, 'b')
  await cluster.restart('a')
  const { b } = await cluster.references()
  expect(b).toEqual({ owned: [], held: [] })
})
