import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectSound, inlined, simulate } from 'postgrad/testing'
import { main, WORKERS } from './program.js'
import { decode, encode } from './text.js'

const workers = WORKERS

test('a text is the same after it was encoded and decoded', () => {
  assert.equal(decode(encode('The north wind')), 'The north wind')
})

test('losses and text are those of one process, whatever the order of the messages, and if some are lost', async () => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('trainer').run(main, 2, 5))
  for (let seed = 1; seed <= 5; seed++) {
    const faults = [{ match: { probability: 0.1 }, do: 'drop' as const }]
    expectSound(await simulate({ workers, seed, faults }, (sim) => sim.on('trainer').run(main, 2, 5)), { oracle })
  }
})
