/** The hybrid model on threads of two processes. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { run } from './program.js'

test('on threads of two processes the dense parts are alike, and the loss falls', async () => {
  const trainers = ['trainer0', 'trainer1']
  await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['master', 'ps', ...trainers], processes: 2 })
  const options = { server: 'ps', trainers, rows: 20, batch: 16, steps: 40, lr: 0.5, seed: 1 }
  const [first, second] = await cluster.on('master').run(run, options)
  expect(second!.checksum).toBe(first!.checksum)
  expect(first!.losses.at(-1)!).toBeLessThan(first!.losses[0]!)
})
