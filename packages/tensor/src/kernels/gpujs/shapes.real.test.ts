/** Many shapes on one compiler: discarded kernels free their memory. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { KERNELS_MAX } from './compiler.js'

const SHAPES = 500
/** Until the engine has compiled what it will. */
const WARM_UP = 500

interface Report {
  readonly before: number
  readonly after: number
  readonly kept: number
  readonly compiled: number
}

test(`${SHAPES} shapes leave memory as it was`, () => {
  const program = fileURLToPath(new URL('./shapes.fixture.js', import.meta.url))
  const { NODE_OPTIONS: _, ...env } = process.env
  const args = ['--expose-gc', program, String(KERNELS_MAX), String(WARM_UP), String(SHAPES)]
  const { before, after, kept, compiled } = JSON.parse(execFileSync(process.execPath, args, { env, encoding: 'utf8' })) as Report
  expect([kept, compiled]).toEqual([KERNELS_MAX, SHAPES + WARM_UP])
  expect(after - before).toBeLessThan(30)
})
