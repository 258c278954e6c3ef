/** A deep chain of nested calls between two threads, forward and backward. PyTorch with its defaults hangs at 50. The soak has a chain of 10,000. */
import { expect, test } from '@jest/globals'
import { cases, casesProgram } from '@postgrad/testing-cases'
import { launch } from '../index.js'
import { PLACES, untilClean } from './acceptance.fixture.js'

const CALLS = process.env.POSTGRAD_SOAK === '1' ? 10_000 : 2000

test.each(PLACES.map(([place, options]) => [CALLS, place, options] as const))(
  '%d nested calls that go back and forth between two %s, forward and backward',
  async (calls, _place, options) => {
    const cluster = await launch(casesProgram, { workers: 2, ...options })
    try {
      const { y, t } = await cluster.on('worker0').run(cases.longPingPong, calls)
      expect(y).toEqual({ dtype: 'float32', shape: [3], data: [1 + calls, 2 + calls, 3 + calls] })
      expect(t).toEqual({ dtype: 'float32', shape: [3], data: [0.5, -1, 2] })
      await untilClean(cluster)
    } finally {
      await cluster.close()
    }
  },
)
