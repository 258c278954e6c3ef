/** RPC-52 on threads: no message of a peer ends a thread or leaves a worker waiting. Testing's `forged.sim.test.ts` tries every field in every state. */
import { expect, test } from '@jest/globals'
import { MESSAGE_TABLE } from '@postgrad/wire/internal'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/forged.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/forged.js', import.meta.url)
const KINDS = Object.keys(MESSAGE_TABLE)

test('RPC-52 every kind of message with every field wrong, to threads that are idle, serve a call, and are in a pass', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'], referenceLeaks: 'ignore' })
  const deaths: unknown[] = []
  cluster.onWorkerDeath(({ name }, error) => deaths.push([name, error]))
  const { forged, answers } = await cluster.on('a').run(program.forgeAtWork, 'b')
  expect(answers).toEqual(KINDS.flatMap((kind) => [`serving ${kind}`, `idle ${kind}`]))
  const { forged: inPasses, ends } = await cluster.on('a').run(program.forgeInPass, 'b')
  expect(ends.filter((end) => end === 'lives')).toHaveLength(KINDS.length)
  const allowed =
    /^(lives|ended|PASS_UNREADABLE|UNEXPECTED_GRADIENTS|DIST_BACKWARD_TIMEOUT|CONTEXT_RELEASED|LINEAGE_MALFORMED|Error: forged)$/
  for (const end of ends) expect(end).toMatch(allowed)
  expect(deaths).toEqual([])
  expect(forged + inPasses).toBeGreaterThan(1000)
  for (const name of ['a', 'b']) expect((await cluster.on(name).run(program.letters)).failed).toBe(0)
  await cluster.close()
})
