/** Elastic training on threads: one is killed, one joins. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { coordinate } from './program.js'

test('on threads: one is killed, one joins, and the training goes on', async () => {
  let step = 0
  const cluster = await launch(new URL('./program.js', import.meta.url), {
    workers: ['coordinator', 'trainer0', 'trainer1', 'trainer2'],
    onProgress: ({ done }) => {
      step = done
    },
  })
  try {
    cluster.onWorkerDeath(() => {})
    const steps = 150
    const running = cluster.on('coordinator').run(coordinate, { steps, roundSteps: 5, batch: 12, lr: 0.01, seed: 1 })
    while (step < 10) await new Promise((resolve) => setTimeout(resolve, 5))
    await cluster.kill('trainer1')
    await cluster.join('trainer3')
    const { rounds, last } = await running
    expect(rounds.at(-1)!.step).toBe(steps)
    expect(Object.keys(last).sort()).toEqual(['trainer0', 'trainer2', 'trainer3'])
    expect(new Set(Object.values(last).map(({ checksum }) => checksum)).size).toBe(1)
  } finally {
    await cluster.close({ timeoutMs: 0 })
  }
})
