/** The processes of the rows between processes: each kind of connection does all work. */
import { describe, expect, test } from '@jest/globals'
import { designNote, pipelined, roundTrip } from '../program.js'
import { ProcessGroup } from './process-group.js'
import { ProcessPair } from './process-pair.js'
import type { Proof } from './proofs.js'
import { bareSeconds } from './starts.js'
import { tensorsOneWay } from './tensors.js'
import type { Between, Over } from './works.js'

const SIZES = { request: 80, reply: 72 }
const LARGE = { request: 2 ** 20, reply: 72 }
const ELEMENTS = 2 ** 16

describe('two processes', () => {
  test.each<[Between, Over, Proof]>([
    ['socket', 'unix', 'none'],
    ['link', 'unix', 'none'],
    ['exchange', 'tcp', 'tls'],
  ])('a %s over %s with proof %s does every work', async (between, over, proof) => {
    const pair = new ProcessPair(between, over, proof)
    try {
      for (const work of [pair.roundTrip(SIZES), pair.roundTrip(LARGE), pair.pipelined(SIZES)]) expect(await work(5)).toBeGreaterThan(0)
      // A link alone and a socket connect as often as they are asked; an exchange dials its service.
      expect(await pair.connect(SIZES)(3)).toBeGreaterThan(0)
      // The connection that lasts is still the same.
      expect(await pair.roundTrip(SIZES)(5)).toBeGreaterThan(0)
    } finally {
      await pair.close()
    }
  })
})

test.each<Proof>(['key', 'tls'])('a group with proof %s does what its rows ask', async (proof) => {
  const group = new ProcessGroup(2, proof)
  try {
    for (const work of [roundTrip, pipelined, designNote]) expect(await group.runs(work)(3)).toBeGreaterThan(0)
    expect(await group.runs(tensorsOneWay, ELEMENTS)(3)).toBeGreaterThan(0)
  } finally {
    await group.close()
  }
})

test('a process that ends in the middle is told of', async () => {
  const group = new ProcessGroup(2)
  try {
    await expect(group.runs({ name: 'noSuchWork' })(1)).rejects.toThrow('a process of the benchmark has ended')
  } finally {
    await group.close()
  }
})

test('bare processes start and end', async () => {
  expect(await bareSeconds(2)).toBeGreaterThan(0)
})
