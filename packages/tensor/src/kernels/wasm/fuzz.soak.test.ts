/** `fuzz.fixture.ts` at full length: `npm run soak -- --calls 100000 wasm/fuzz`, with `--seed N` to begin where an error was found. */
import { expect, test } from '@jest/globals'
import { isExact } from './approximate.fixture.js'
import { createWasmBackend } from './backend.js'
import { fuzz } from './fuzz.fixture.js'
import { PAGE_BYTES, TestHeap } from './placed.fixture.js'

const CALLS = Number(process.env.POSTGRAD_SOAK_CALLS ?? 100_000)
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 30))

test(`${CALLS} drawn calls of kernels next to the oracle, wherever operands lie (seed ${seed})`, () => {
  const heap = new TestHeap(PAGE_BYTES)
  const { programs, cells } = fuzz(
    createWasmBackend(() => heap),
    heap,
    { programs: CALLS, seed, exact: isExact },
  )
  console.log(`${programs} calls of ${cells} cells, seed ${seed}`)
  expect(programs).toBeGreaterThanOrEqual(CALLS)
})
