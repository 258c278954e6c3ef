/** The layers on threads of their own. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { inlined } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { train } from './program.js'

const PROGRAM = new URL('./program.js', import.meta.url)

test('the bits of the inlined program', async () => {
  const layers = ['layer1', 'layer2']
  const workers = ['trainer', ...layers]
  const options = { workers: layers, hidden: 8, points: 5, steps: 4, lr: 0.05, seed: 1 }
  const oracle = await inlined({ workers }, (cluster) => cluster.on('trainer').run(train, options))
  await using cluster = await launch(PROGRAM, { workers })
  const found = await cluster.on('trainer').run(train, options)
  expect([bits(found.losses), found.accuracy]).toEqual([bits(oracle.losses), oracle.accuracy])
})
