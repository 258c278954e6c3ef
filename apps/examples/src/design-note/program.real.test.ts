/** The design note's programs on threads. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { inlined } from 'postgrad/testing'
import { bits } from '../shared/bits.suite.js'
import { designNote, endToEnd } from './program.js'

const PROGRAM = new URL('./program.js', import.meta.url)

const workers = ['worker0', 'worker1']

test('the bits of the inlined programs', async () => {
  const [note, losses] = await inlined({ workers }, async (cluster) => [
    await cluster.on('worker0').run(designNote),
    await cluster.on('worker1').run(endToEnd, 'worker0', 3, 0.05),
  ])
  await using cluster = await launch(PROGRAM, { workers })
  const found = await cluster.on('worker0').run(designNote)
  expect(found.gradients.map((t) => t.toArray())).toEqual(note.gradients.map((t) => t.toArray()))
  expect(bits(await cluster.on('worker1').run(endToEnd, 'worker0', 3, 0.05))).toBe(bits(losses))
})
