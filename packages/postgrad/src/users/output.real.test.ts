/** Threads print to this process's output, also when nobody reads that any more. */
import { expect, test } from '@jest/globals'
import { scriptToHead } from '@postgrad/cluster/suite'

const TALKS = new URL('../fixtures/talks.js', import.meta.url)

test('CLU-64: a cluster whose output nobody reads any more goes on and ends as one of which it is read', async () => {
  const { code, err } = await scriptToHead(TALKS)
  expect({ code, err }).toEqual({ code: 0, err: "[ 'has talked', 'has talked' ]\nat once\n" })
})

test('CLU-64: so do the threads of a pool', async () => {
  expect(await scriptToHead(TALKS, 'jobs')).toMatchObject({ code: 0, err: "[ 'has talked', 'has talked' ]\n" })
})
