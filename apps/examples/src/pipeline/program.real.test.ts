/** The pipeline on threads, and over two processes. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { splitSequential } from 'postgrad/pipelining'
import { bits } from '../shared/bits.suite.js'
import { train } from './program.js'
import { checksumOf, SMALL, trainWhole } from './whole.suite.js'

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

test('PIP-18 two pipelines of two workers on threads: the bits of one model with both halves of each batch', async () => {
  const workers = ['rank0', 'rank1', 'rank2', 'rank3']
  const options = { ...SMALL, workers, replicas: 2, schedule: '1F1B' as const, stagesPerRank: 1, microbatches: 2, batch: 8 }
  const { losses, model } = await trainWhole(options, 2)
  const checksums = await Promise.all(splitSequential(model, 2).map((part) => checksumOf(part.parameters())))
  await using cluster = await launch(PROGRAM, { workers })
  const reports = await Promise.all(workers.map((worker) => cluster.on(worker).run(train, options)))
  expect(reports.map(({ checksum }) => checksum)).toEqual([...checksums, ...checksums])
  const [first, second] = [reports[1]!.losses, reports[3]!.losses]
  for (const [step, loss] of losses.entries()) expect((first[step]! + second[step]!) / 2).toBeCloseTo(loss, 5)
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
