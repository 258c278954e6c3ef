/** What threads load of the library: one file, which another thread has compiled. */
import { existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
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
