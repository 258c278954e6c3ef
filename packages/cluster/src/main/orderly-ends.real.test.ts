/** Orderly ends lose nothing that was sent: a worker ends when its peers have read the tensors in its own blocks. */
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/orderly-ends.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/orderly-ends.js', import.meta.url)
/** After b has sent everything, and while a does not look. */
const KILL_MS = 400
const OWN_ENDS = ['leave', 'drain', 'shutdown'] as const
const CLUSTER_ENDS = ['cluster.leave', 'cluster.restart', 'cluster.close', 'cluster.kill'] as const
type How = (typeof OWN_ENDS)[number] | (typeof CLUSTER_ENDS)[number]

/** At a: the outcome of each kind of request to b. */
async function outcomesOf(how: How): Promise<Record<string, unknown>> {
  let text = ''
  let tell: (outcomes: Record<string, unknown>) => void
  const outcomes = new Promise<Record<string, unknown>>((resolve) => {
    tell = resolve
  })
  const stdout = (piece: string) => {
    text += piece
    const found = /OUTCOME (.*)\n/.exec(text)
    if (found !== null) tell({ ...JSON.parse(found[1]!), ...(text.includes('END') ? { end: text } : {}) })
  }
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'], stdout, referenceLeaks: 'ignore' })
  cluster.onWorkerDeath(() => {})
  const own = OWN_ENDS.find((end) => end === how)
  if (own !== undefined) await cluster.on('b').run(program.endWhenAsked, own)
  await cluster.on('a').run(program.ask, how === 'shutdown')
  await cluster.on('b').run(program.asked)
  if (how === 'cluster.leave') await cluster.leave('b')
  else if (how === 'cluster.restart') await cluster.restart('b')
  else if (how === 'cluster.close') await cluster.close()
  else if (how === 'cluster.kill') {
    await new Promise((resolve) => setTimeout(resolve, KILL_MS))
    await cluster.kill('b')
  }
  return outcomes
}

test.each([...OWN_ENDS, 'cluster.leave', 'cluster.restart', 'cluster.close'] as const)(
  'GRP-13 what is on its way to a busy worker when its sender ends by %s is read: results, values, items, gradients',
  async (how) => {
    expect(await outcomesOf(how)).toEqual(program.EXPECTED)
  },
)

test('GRP-14 what a killed worker takes with it fails with its death, and with nothing else', async () => {
  // What was read before it was killed is there.
  for (const [kind, outcome] of Object.entries(await outcomesOf('cluster.kill'))) {
    expect(['WORKER_DIED', program.EXPECTED[kind as program.Kind]]).toContain(outcome)
  }
})
