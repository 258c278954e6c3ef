/** References on threads: the live table of a cluster, and what it says at its end about those that nobody gave up. */
import { expect, jest, test } from '@jest/globals'
import { referenceLeaks } from '@postgrad/rpc/internal'
import { launcher } from './clusters.fixture.js'
import { drop, keep } from './fixtures/references.js'
import { launch as realLaunch } from './launch.js'

const program = new URL('./fixtures/references.js', import.meta.url)
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
    const cluster = await launch(program, { workers, referenceStacks: true })
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
    const ignoring = await launch(program, { workers, referenceLeaks: 'ignore' })
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
