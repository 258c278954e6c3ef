/** The guide's kernel of your own: the guide has exactly this text, and it runs on threads, in the simulation and inlined alike. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { launcher } from '@postgrad/cluster/suite'
import { withDevice } from '@postgrad/tensor'
import { inlined, simulate } from '@postgrad/testing'
import { main } from '../fixtures/own-kernel.js'

const launch = launcher()
const workers = ['worker0', 'worker1']
const sources = new URL('../../src/', import.meta.url)

test('the guide shows this program', () => {
  const program = readFileSync(new URL('fixtures/own-kernel.ts', sources), 'utf8')
    .replace("'../index.js'", "'postgrad'")
    .replace(/'\.\.\/(\w+)\.js'/g, "'postgrad/$1'")
  const page = readFileSync(new URL('../../../docs/guide/kernels.md', sources), 'utf8')
  expect(page).toContain(`\`\`\`ts\n${program}\`\`\`\n`)
})

test.each(['wasm', 'js'] as const)('on %s: threads, simulation and inlined calls give the same bits', async (device) => {
  const cluster = await launch(new URL('../fixtures/own-kernel.js', import.meta.url), { workers, device })
  const onThreads = await cluster.on('worker0').run(main)
  const simulation = await withDevice(device, () => simulate({ workers, seed: 7 }, (sim) => sim.on('worker0').run(main)))
  const oracle = await withDevice(device, () => inlined({ workers }, (all) => all.on('worker0').run(main)))
  for (const { y, gradient } of [onThreads, simulation.result, oracle]) {
    expect(y.toArray()).toEqual(oracle.y.toArray())
    expect(gradient!.toArray()).toEqual(oracle.gradient!.toArray())
  }
  const sigmoid = (v: number) => 1 / (1 + Math.exp(-1.5 * v))
  ;[-1, 0, 2].forEach((v, i) => {
    const s = sigmoid(v)
    expect(oracle.y.dataSync()[i]).toBeCloseTo(v * s, 6)
    expect(oracle.gradient!.dataSync()[i]).toBeCloseTo(s + 1.5 * v * s * (1 - s), 6)
  })
})
