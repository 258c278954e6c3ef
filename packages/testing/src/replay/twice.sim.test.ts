/** Programs that are not deterministic, each for another reason, are caught by being run twice; the report says where the runs parted and why that may be. */
import { expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { call, expose } from '@postgrad/rpc'
import { rand } from '@postgrad/tensor'
import { RACY_WORKERS, racy } from '../explore/racy.fixture.js'
import { type SimCluster, type SimulateOptions, simulate } from '../simulate/simulate.js'

const echo = (value: unknown) => value
expose({ 'twice.echo': echo })

const workers = ['worker0', 'worker1']

async function failure(body: (sim: SimCluster) => Promise<unknown>, options: Partial<SimulateOptions> = {}): Promise<PostgradError> {
  const error = await simulate({ workers, twice: true, ...options }, body).then(
    () => null,
    (thrown: PostgradError) => thrown,
  )
  if (error === null) throw new Error('it was found deterministic')
  return error
}

const saying = (what: () => unknown) => (sim: SimCluster) =>
  sim.on('worker0').run(async () => {
    await call('worker1', echo, ['first'])
    await call('worker1', echo, [what()])
    return 'said'
  })

test('TK-32 a program of the seed alone passes, and is run twice', async () => {
  const real = [Math.random, Date, performance.now, setTimeout]
  let runs = 0
  const { result } = await simulate({ workers, seed: 3, twice: true, faults: 'random' }, async (sim) => {
    runs++
    return sim.on('worker0').run(async () => (await call('worker1', echo, [rand([3]).toArray()])) as number[])
  })
  expect([runs, result.length]).toEqual([2, 3])
  // The doors lead again where they did.
  expect([Math.random, Date, performance.now, setTimeout]).toEqual(real)
  expect(Date).toBe(real[1])
})

test.each<[string, () => unknown, RegExp]>([
  ['Math.random', () => Math.random(), /Math\.random, 2 times, first at .*twice\.sim\.test/],
  ['crypto.randomUUID', () => crypto.randomUUID(), /crypto\.randomUUID, 2 times/],
  ['performance.now', () => performance.now(), /performance\.now, 2 times/],
  ['hrtime', () => process.hrtime.bigint(), /no real clock and no real chance that is watched/],
])('TK-32 %s in a message: where the runs part, what was the same before, and who asked', async (_, what, hint) => {
  const error = await failure(saying(what))
  expect(error).toMatchObject({ code: 'NOT_DETERMINISTIC', seed: 0 })
  expect(error.message).toMatch(/they part at event 3\n {2}both {4}#1 0 ms frame worker0 → worker1: call twice\.echo #1, \d+ bytes/)
  expect(error.message).toMatch(
    /\n {2}first {3}#3 0 ms frame worker0 → worker1: call twice\.echo #2, .*\n(?:.*\n)*? {2}second {2}#3 0 ms frame/,
  )
  expect(error.stack).toContain('(seed 0)\nRepeat it')
  expect(error.message).toMatch(hint)
  expect(error.message).toContain("Take chance from the worker's generator")
})

test('TK-32 the present time: Date.now and new Date, but not a date that is given', async () => {
  let now = 0
  const error = await failure(saying(() => [Date.now() + now++, new Date(5).getTime(), new Date() instanceof Date]))
  expect(error.values.real).toEqual([
    expect.objectContaining({ what: 'Date.now', times: 2 }),
    expect.objectContaining({ what: 'new Date()', times: 2 }),
  ])
})

test('TK-32 state that outlives a run: a counter of the module, one more message, a failure the second time only', async () => {
  let runs = 0
  const counts = await failure(saying(() => ++runs))
  expect(counts.message).toContain('look for what outlives a run, such as variables of modules')
  let more = 0
  const longer = await failure(async (sim) => {
    await sim.on('worker0').run(async () => {
      for (let i = 0; i <= more; i++) await call('worker1', echo, [i])
    })
    more++
  })
  expect(longer.message).toContain('first   (nothing more happens)')
  let fails = 0
  const failing = await failure(async () => {
    if (fails++ === 1) throw new RangeError('the second time')
  })
  expect(failing.message).toContain('one run failed and the other did not: the second time')
})

test('TK-32 results that differ though all events were the same; what fails twice alike is the failure itself', async () => {
  let result = 0
  const error = await failure(async () => ({ loss: ++result }))
  expect(error.message).toContain('all events were the same, and the results are not: loss')
  const racySeed = async (seed: number) =>
    simulate({ workers: RACY_WORKERS, seed, twice: true }, racy).catch((thrown: Error) => thrown.message)
  const ends = new Set<unknown>()
  for (let seed = 0; seed < 5; seed++) ends.add(typeof (await racySeed(seed)))
  expect(await failure(async () => Promise.reject(new RangeError('always')))).toMatchObject({ message: 'always' })
  expect(ends).toEqual(new Set(['object', 'string']))
})

test.each<[string, (run: number) => unknown, string]>([
  ['in its message only', (run) => new PostgradError('CODE', { op: 'same', message: `attempt ${run}` }), 'message differs'],
  ['in a number of its message', (run) => new RangeError(`after ${run} attempts`), 'message differs'],
  ['behind the first line', (run) => new RangeError(`it failed\n  attempt ${run}`), 'message differs'],
  ['in its name', (run) => Object.assign(new Error('it failed'), { name: `Error${run}` }), 'name differs'],
  ['in its values', (run) => new PostgradError('CODE', { op: 'same', message: 'it failed', values: { run } }), 'values.run differs'],
  ['in its cause', (run) => new RangeError('it failed', { cause: new Error(`attempt ${run}`) }), 'cause.message differs'],
  ['in one of several errors', (run) => new AggregateError([new Error('one'), new Error(`attempt ${run}`)], 'some'), 'errors[1].message'],
  ['as a text that was thrown', (run) => `attempt ${run}`, 'attempt'],
])('TK-32 a failure that differs %s', async (_, make, where) => {
  let runs = 0
  const error = await failure(() => Promise.reject(make(++runs)))
  expect(error).toMatchObject({ code: 'NOT_DETERMINISTIC' })
  expect(error.message).toContain('they failed in different ways')
  expect(error.message).toContain(where)
})

test.each<[string, () => unknown]>([
  ['a function', () => () => {}],
  ['a set', () => new Set([1])],
  ['a map with tensors as keys', () => new Map([[rand([1]), 1]])],
])('TK-32 %s in the result hides no difference beside it, and is none itself', async (_, make) => {
  let run = 0
  const error = await failure(async () => ({ first: make(), loss: ++run, last: make() }))
  expect(error.message).toContain('the results are not: loss differs')
  await simulate({ workers, twice: true }, async () => ({ first: make(), loss: 1 }))
})

test('TK-32 a bounded trace that has lost the place says so', async () => {
  const body = async (sim: SimCluster) => {
    await saying(() => Math.random())(sim)
    await sim.on('worker0').run(async () => {
      for (let i = 0; i < 20; i++) await call('worker1', echo, [Math.random()])
    })
  }
  const error = await failure(body, { world: { traceEventsMax: 10 } })
  expect(error.message).toContain('they part before the last 10 events')
})
