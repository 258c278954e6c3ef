/** The kernels of float32 and float64, and how tests of numbers call them. For `numerics.test.ts`, `bits.test.ts` and `rows/sums.test.ts`. */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { threadHeap } from '../../heap/thread-heap.js'
import { operandOf } from '../suite/layouts.suite.js'
import { createWasmBackend } from './backend.js'

export const { kernels } = createWasmBackend(threadHeap)
export const SEED = 7

export function randoms(seed: number): () => number {
  const generator = xoroshiro128plus(seed)
  return () => (generator.next() >>> 0) / 2 ** 32
}

/** Functions whose parameters are not 0. */
const PARAMETERS: Readonly<Partial<Record<Poly, readonly [number, number]>>> = { softplus: [1, 20], elu: [1, 0], pow: [1.7, 0] }

export type Poly =
  | 'log2'
  | 'log10'
  | 'exp2'
  | 'sinh'
  | 'cosh'
  | 'tan'
  | 'asin'
  | 'acos'
  | 'atan'
  | 'pow'
  | 'expm1'
  | 'log1p'
  | 'erf'
  | 'rsqrt'
  | 'silu'
  | 'gelu'
  | 'softplus'
  | 'elu'
  | 'exp'
  | 'log'
  | 'tanh'
  | 'sigmoid'
  | 'sin'
  | 'cos'
  | 'neg'
  | 'abs'
  | 'sqrt'
  | 'relu'

export function run(op: Poly, x: Float32Array, out: Float32Array, n = x.length, from = 0): void {
  const kernel = kernels[op].float32
  if ('unsupported' in kernel) throw new Error(kernel.unsupported)
  const [p0, p1] = PARAMETERS[op] ?? [0, 0]
  kernel(operandOf(x, from, [n]), operandOf(out, from, [n]), p0, p1)
}

export function values(op: Poly, x: Float32Array): number[] {
  const out = new Float32Array(x.length)
  run(op, x, out)
  return [...out]
}
