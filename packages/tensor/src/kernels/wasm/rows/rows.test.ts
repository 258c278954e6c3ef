/** Promises of KERNELS.md about rows: digits of normalisation and of softmax, and places in rows that are longer than a chunk. */
import { expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { threadHeap } from '../../../heap/thread-heap.js'
import { allocate } from '../../../values/dtype.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { Operand } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'

const { kernels } = createWasmBackend(threadHeap)
const SEED = 35

function randoms(seed: number): () => number {
  const generator = xoroshiro128plus(seed)
  return () => (generator.next() >>> 0) / 2 ** 32
}

/** The kernel of float32, whose arguments the caller knows. */
function f32(op: 'layerNorm' | 'channelNorm' | 'softmax' | 'logSoftmax' | 'classLossBackward' | 'argmax' | 'argmin') {
  return kernels[op].float32 as unknown as (...args: unknown[]) => void
}
const vector = (n: number): Operand => operandOf(new Float32Array(n), 0, [n])

test(`NORM-1 rows and channels that lie far from 0 are normalised with all digits (seed ${SEED})`, () => {
  const random = randoms(SEED)
  const d = 301
  for (const [centre, first] of [
    [1000, 1000],
    [-3e4, -3e4],
    // A first element far outside, from which distances are taken.
    [0, 1e4],
    [1e-3, 7],
  ] as const) {
    const x = Float32Array.from({ length: d }, (_, i) => (i === 0 ? first : centre + random() - 0.5))
    const mean = x.reduce((sum, v) => sum + v, 0) / d
    const variance = x.reduce((sum, v) => sum + (v - mean) ** 2, 0) / d
    const expected = Array.from(x, (v) => (v - mean) / Math.sqrt(variance + 1e-5))
    const [rows, channels, columns] = [vector(d), vector(d), vector(d)]
    f32('layerNorm')(operandOf(x, 0, [1, d]), null, null, rows, vector(1), vector(1), 1e-5)
    f32('channelNorm')(operandOf(x, 0, [1, 1, d]), null, null, channels, vector(1), vector(1), 1e-5)
    f32('channelNorm')(operandOf(x, 0, [d, 1, 1]), null, null, columns, vector(1), vector(1), 1e-5)
    for (const out of [rows, channels, columns]) {
      const worst = expected.reduce((most, v, i) => Math.max(most, Math.abs(out.storage.host![i]! - v) / (1 + Math.abs(v))), 0)
      expect(worst).toBeLessThan(3e-7)
    }
  }
})

test(`NORM-2 a softmax has its digits, also where they are few, and wherever its numbers lie (seed ${SEED})`, () => {
  const random = randoms(SEED + 1)
  for (const k of [1, 3, 9, 37, 1000]) {
    for (const centre of [0, -3, 300, -300, 502, -520, 600, -1e4, 3e6]) {
      const x = Float32Array.from({ length: k }, () => centre + (random() - 0.5) * 20)
      if (k > 3) x.set([centre - 70, centre - 93, -Infinity, centre - 300], 1)
      const [out, logs] = [vector(k), vector(k)]
      f32('softmax')(operandOf(x, 0, [1, k, 1]), out, 1, k, 1)
      f32('logSoftmax')(operandOf(x, 0, [1, k, 1]), logs, 1, k, 1)
      const greatest = Math.max(...x)
      const total = x.reduce((sum, v) => sum + Math.exp(v - greatest), 0)
      for (let i = 0; i < k; i++) {
        const exact = Math.exp(x[i]! - greatest) / total
        const got = out.storage.host![i]!
        // Far from 0, distances from the greatest number are rounded to float32. A denormal result has few digits.
        const ofDistance = Math.abs(greatest) > 512 ? 6e-8 * Math.min(greatest - x[i]!, 1000) : 0
        const bound = (3e-7 + ofDistance) * exact + 7.1e-46
        if (exact > 1e-50) expect(Math.abs(got - exact)).toBeLessThanOrEqual(bound)
        else expect(got).toBe(0)
        const log = x[i]! - greatest - Math.log(total)
        if (x[i] !== -Infinity) expect(Math.abs(logs.storage.host![i]! - log)).toBeLessThan(4e-7 * (1 + Math.abs(log)))
        else expect(logs.storage.host![i]).toBe(-Infinity)
      }
    }
  }
})

test('NORM-2 NaN and infinity make a whole row of a softmax NaN, at any place', () => {
  for (const k of [1, 5, 40, 70]) {
    for (let at = 0; at < k; at++) {
      for (const special of [Number.NaN, Infinity]) {
        const x = Float32Array.from({ length: k }, (_, i) => (i === at ? special : i % 3 === 0 ? -Infinity : -i))
        for (const op of ['softmax', 'logSoftmax'] as const) {
          const out = vector(k)
          f32(op)(operandOf(x, 0, [1, k, 1]), out, 1, k, 1)
          expect(Array.from(out.storage.host!)).toEqual(Array.from(x, () => Number.NaN))
        }
      }
    }
  }
})

test('NORM-3 softmax and its logarithm may be written over their argument', () => {
  const random = randoms(SEED + 2)
  for (const [outer, k, inner] of [
    [3, 37, 1],
    [2, 11, 40],
  ] as const) {
    const x = Float32Array.from({ length: outer * k * inner }, () => random())
    for (const op of ['softmax', 'logSoftmax'] as const) {
      const [out, inPlace] = [new Float32Array(x.length), allocate('float32', x.length)]
      inPlace.set(x)
      f32(op)(operandOf(x, 0, [outer, k, inner]), operandOf(out, 0, [outer, k, inner]), outer, k, inner)
      f32(op)(operandOf(inPlace, 0, [outer, k, inner]), operandOf(inPlace, 0, [outer, k, inner]), outer, k, inner)
      expect(Array.from(inPlace)).toEqual(Array.from(out))
    }
  }
})

test('PLACES-1 the place of an extreme in a long row, wherever it is: in the last piece, in several, next to NaNs', () => {
  const k = 3 * 2048 + 77
  const out = operandOf(new Int32Array(1), 0, [1])
  const placeIn = (x: Float32Array, op: 'argmax' | 'argmin'): number => {
    f32(op)(operandOf(x, 0, [1, k, 1]), out, 1, k, 1)
    return out.storage.host![0]!
  }
  for (const at of [0, 1, 2047, 2048, 5000, 3 * 2048, k - 1]) {
    const x = new Float32Array(k)
    x[at] = 1
    expect(placeIn(x, 'argmax')).toBe(at)
    x[k - 1] = 1
    expect(placeIn(x, 'argmax')).toBe(at)
    expect(placeIn(x, 'argmin')).toBe(at === 0 ? 1 : 0)
    x[k - 2] = Number.NaN
    expect(placeIn(x, 'argmax')).toBe(k - 2)
    x[at] = Number.NaN
    expect(placeIn(x, 'argmin')).toBe(Math.min(at, k - 2))
  }
})
