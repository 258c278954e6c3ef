/** Pools that are closed while their threads start: `npm run soak -- --pools 1000 data/dist/workers`, with `--seed N` to draw the same again. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

const POOLS = Number(process.env.POSTGRAD_SOAK_POOLS ?? 1_000)
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31))

test(`${POOLS} pools whose threads are ended at any moment of their start take nothing else with them (seed ${seed})`, () => {
  const { NODE_OPTIONS: _, ...env } = process.env
  const program = fileURLToPath(new URL('./fixtures/closes-at-random.js', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, `${seed}`, `${POOLS}`, '150'], { env, encoding: 'utf8' })
  expect([status, stdout, stderr]).toEqual([0, `${POOLS} pools were closed\n`, ''])
})
