/** The pipeline on threads, and over two processes. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { bits } from '../shared/bits.suite.js'
import { train } from './program.js'
import { SMALL, trainWhole } from './whole.suite.js'

const PROGRAM = new URL('./program.js', import.meta.url)

test.each([
  ['threads', 'ZBVZeroBubble', 2, {}],
  ['two processes', '1F1B', 1, { processes: 2 }],
] as const)('PIP-8 over %s: the bits of the model in one place', async (_, schedule, stagesPerRank, launched) => {
  const workers = ['rank0', 'rank1']
  const { losses } = await trainWhole(SMALL)
  await using cluster = await launch(PROGRAM, { workers, ...launched })
  const reports = await Promise.all(workers.map((worker) => cluster.on(worker).run(train, { ...SMALL, workers, schedule, stagesPerRank })))
  expect(bits(reports.flatMap((report) => report.losses))).toBe(bits(losses))
})

test('PIP-12 a worker that dies in the middle is the error of the other', async () => {
  const workers = ['rank0', 'rank1']
  await using cluster = await launch(PROGRAM, { workers })
  const options = { ...SMALL, workers, schedule: '1F1B' as const, stagesPerRank: 1, steps: 1_000_000 }
  const ends = workers.map((worker) =>
    cluster
      .on(worker)
      .run(train, options)
      .then(
        () => 'done',
        (error: { code: string; cause?: { code?: string } }) => [error.code, error.cause?.code],
      ),
  )
  await cluster.kill('rank1')
  expect((await Promise.all(ends))[0]).toEqual(['PIPELINE_FAILED', 'WORKER_DIED'])
})
