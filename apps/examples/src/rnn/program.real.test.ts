/** The network over two workers on threads. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { inlined } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { train, WORKERS as workers } from './program.js'

const PROGRAM = new URL('./program.js', import.meta.url)

test('the bits of the inlined program', async () => {
  const options = { embedding: 4, hidden: 8, layers: 2, epochs: 2, batches: 2, batch: 3, length: 5, lr: 0.3, seed: 1 }
  const oracle = await inlined({ workers }, (cluster) => cluster.on('trainer').run(train, options))
  await using cluster = await launch(PROGRAM, { workers })
  expect(bits(await cluster.on('trainer').run(train, options))).toBe(bits(oracle))
})
