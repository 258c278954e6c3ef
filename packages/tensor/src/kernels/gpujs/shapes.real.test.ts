/** Many shapes on one device: kernels that went give back their memory, and the 10.5 GB of addresses that each has in mode webasm. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { KERNELS_MAX } from './compiler.js'

const SHAPES = 500
/** Until the engine has compiled what it will. */
const WARM_UP = 500
/** Kernels that all stay: more than the check lets through, where each has 8 GB of addresses (Node 24) or 10.5 (Node 20). */
const SHAPES_THAT_STAY = 400
const RESERVED_GB = 10
const ADDRESSES_GB_MAX = 3 * KERNELS_MAX * RESERVED_GB

interface Report {
  readonly before: { readonly rssMB: number; readonly addressesGB: number }
  readonly after: { readonly rssMB: number; readonly addressesGB: number }
  readonly kept: number
  readonly compiled: number
}

function shapes(mode: string, kernelsMax: number, warmUp: number, count: number): Report {
  const program = fileURLToPath(new URL('./shapes.fixture.js', import.meta.url))
  const { NODE_OPTIONS: _, ...env } = process.env
  const args = ['--expose-gc', program, mode, String(kernelsMax), String(warmUp), String(count)]
  return JSON.parse(execFileSync(process.execPath, args, { env, encoding: 'utf8' })) as Report
}

test.each(['cpu', 'webasm'])(`${SHAPES} shapes in mode %s leave memory as it was`, (mode) => {
  const { before, after, kept, compiled } = shapes(mode, KERNELS_MAX, WARM_UP, SHAPES)
  expect([kept, compiled]).toEqual([KERNELS_MAX, SHAPES + WARM_UP])
  // 500 kernels of mode webasm that stay hold some 35 MB.
  expect(after.rssMB - before.rssMB).toBeLessThan(30)
  expect(after.addressesGB).toBeLessThan(ADDRESSES_GB_MAX)
})

test('the check can fail: kernels that all stay hold their addresses', () => {
  const { after, kept } = shapes('webasm', 2000, 0, SHAPES_THAT_STAY)
  expect(kept).toBe(SHAPES_THAT_STAY)
  if (existsSync('/proc/self/status')) expect(after.addressesGB).toBeGreaterThan(ADDRESSES_GB_MAX)
})
