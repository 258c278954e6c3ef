/** `fuzz.fixture.ts` for a moment, and the faults that it must find. */
import { describe, expect, test } from '@jest/globals'
import type { Backend } from '../table/backend.js'
import type { Operand } from '../table/operands.js'
import { isExact } from './approximate.fixture.js'
import { createWasmBackend } from './backend.js'
import { fuzz } from './fuzz.fixture.js'
import { type Entry, isOperand, PAGE_BYTES, TestHeap } from './placed.fixture.js'

const heap = new TestHeap(PAGE_BYTES)
const backend = createWasmBackend(() => heap)

test('PLACE: drawn calls of all kernels have the results of the oracle, and the same bits wherever operands lie', () => {
  const { programs, cells } = fuzz(backend, heap, { programs: 2000, seed: 20261129, exact: isExact })
  expect(programs).toBeGreaterThanOrEqual(2000)
  expect(cells).toBeGreaterThan(150)
})

/** The backend with a fault in one kernel: `fault` runs after it. */
function faulty(op: 'exp' | 'sum', fault: (out: Operand, args: readonly Operand[]) => void): Backend {
  const right = backend.kernels[op].float32 as unknown as Entry
  const wrong: Entry = (...args) => {
    right(...args)
    const operands = args.filter(isOperand)
    fault(operands.at(-1)!, operands)
  }
  const kernels = { ...backend.kernels, [op]: { ...backend.kernels[op], float32: wrong } } as unknown as Backend['kernels']
  return { ...backend, kernels }
}

const isInside = ({ storage }: Operand): boolean => storage.host!.buffer === heap.buffer
const spoil = (x: Operand, by = 77): void => {
  if (x.numel > 0) x.storage.host![x.offset]! += by
}

describe('canaries: a fault is found', () => {
  test.each<[string, 'exp' | 'sum', Parameters<typeof faulty>[1], string]>([
    ['in rows of 81 or more', 'sum', (out, [x]) => x!.numel / out.numel > 80 && spoil(out), 'expected'],
    ['where the operand lies outside', 'exp', (out, [x]) => isInside(out) && !isInside(x!) && spoil(out), 'placed by'],
    ['with strides alone', 'exp', (out, [x]) => !x!.isContiguous && spoil(out, 1e-6), 'strides'],
  ])('%s', (_, op, fault, words) => {
    expect(() => fuzz(faulty(op, fault), heap, { programs: 3000, seed: 1, exact: isExact, only: op })).toThrow(words)
  })
})
