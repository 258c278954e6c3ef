/** The rows that tfjs has on its wasm backend, under the names of `rows.ts`: forward alone. Its names are of the browser's world, its layouts as its own. */
import { SIZES, type Work } from './rows.js'

/** The part of `@tensorflow/tfjs-core` that is used here; a row names its function. */
export interface Tf {
  randomUniform(shape: readonly number[], min?: number, max?: number, dtype?: string): TfTensor
  tidy(work: () => unknown): void
  readonly [name: string]: (...args: never[]) => unknown
}
export interface TfTensor {
  readonly shape: readonly number[]
}

const PLAIN: Readonly<Record<string, (tf: Tf, of: Operands) => unknown>> = {
  add: (tf, { x, y }) => call(tf, 'add', x, y),
  mul: (tf, { x, y }) => call(tf, 'mul', x, y),
  div: (tf, { x, y }) => call(tf, 'div', x, y),
  exp: (tf, { x }) => call(tf, 'exp', x),
  log: (tf, { x }) => call(tf, 'log', x),
  tanh: (tf, { x }) => call(tf, 'tanh', x),
  sigmoid: (tf, { x }) => call(tf, 'sigmoid', x),
  'pow2.5': (tf, { x }) => call(tf, 'pow', x, 2.5),
  sin: (tf, { x }) => call(tf, 'sin', x),
  where: (tf, { x, y, mask }) => call(tf, 'where', mask, x, y),
  gt: (tf, { x, y }) => call(tf, 'greater', x, y),
  sum: (tf, { x }) => call(tf, 'sum', x),
  mean: (tf, { x }) => call(tf, 'mean', x),
  amax: (tf, { x }) => call(tf, 'max', x),
  argmax: (tf, { x }) => call(tf, 'argMax', x),
  'sum dim0': (tf, { table }) => call(tf, 'sum', table, 0),
  'sum dim1': (tf, { table }) => call(tf, 'sum', table, 1),
  'softmax dim1': (tf, { table }) => call(tf, 'softmax', table, 1),
  cumsum: (tf, { x }) => call(tf, 'cumsum', x, 0),
  cumprod: (tf, { x }) => call(tf, 'cumprod', x, 0),
  prod: (tf, { x }) => call(tf, 'prod', x),
  'topk 10': (tf, { x }) => call(tf, 'topk', x, 10),
  logSumExp: (tf, { x }) => call(tf, 'logSumExp', x),
  indexSelect: (tf, { x, index }) => call(tf, 'gather', x, index),
  cat: (tf, { x, y }) => call(tf, 'concat', [x, y]),
  'transpose copy': (tf, { table }) => call(tf, 'transpose', table),
  flip: (tf, { x }) => call(tf, 'reverse', x),
  clone: (tf, { x }) => call(tf, 'add', x, 0),
  clamp: (tf, { x }) => call(tf, 'clipByValue', x, 0.2, 0.8),
  floor: (tf, { x }) => call(tf, 'floor', x),
  remainder: (tf, { x }) => call(tf, 'mod', x, 0.3),
  oneHot: (tf, { classes }) => call(tf, 'oneHot', classes, 10),
}

interface Operands {
  readonly x: TfTensor
  readonly y: TfTensor
  readonly mask: TfTensor
  readonly table: TfTensor
  readonly index: TfTensor
  readonly classes: TfTensor
}

export function tfjsRows(tf: Tf): ReadonlyMap<string, Work> {
  const rows = new Map<string, Work>()
  const row = (name: string, work: Work) => rows.set(name, () => tf.tidy(() => void work()))
  const rand = (...shape: number[]) => tf.randomUniform(shape)
  for (const n of SIZES) {
    // Below the last: float32 rounds some draws up to the bound.
    const whole = (below: number, length: number) => call(tf, 'cast', tf.randomUniform([length], 0, below - 1), 'int32') as TfTensor
    const of: Operands = {
      x: tf.randomUniform([n], 0.1, 1.1),
      y: tf.randomUniform([n], 0.1, 1.1),
      mask: call(tf, 'greater', rand(n), 0.5) as TfTensor,
      table: rand(1000, n / 1000),
      index: whole(n, n),
      classes: whole(10, n / 10),
    }
    for (const [name, work] of Object.entries(PLAIN)) row(`${name} ${n}`, () => work(tf, of))
  }
  for (const n of [64, 128, 256, 512, 1024]) {
    const [a, b] = [rand(n, n), rand(n, n)]
    row(`matmul ${n}`, () => call(tf, 'matMul', a, b))
  }
  const [a, b] = [rand(64, 64, 64), rand(64, 64, 64)]
  row('bmm 64x64x64', () => call(tf, 'matMul', a, b))
  const [u, v] = [rand(3, 3), rand(3, 3)]
  row('add 3x3', () => call(tf, 'add', u, v))
  const [image, filter] = [rand(8, 32, 32, 16), rand(3, 3, 16, 32)]
  row('conv2d 8x16x32x32 3x3 32 forward', () => call(tf, 'conv2d', image, filter, 1, 1))
  row('maxPool2d forward', () => call(tf, 'maxPool', image, 2, 2, 0))
  const [transposing] = [rand(4, 4, 8, 16)]
  row('convTranspose2d forward', () => call(tf, 'conv2dTranspose', image, transposing, [8, 64, 64, 8], 2, 'same'))
  return rows
}

const call = (tf: Tf, name: string, ...args: unknown[]): unknown => (tf[name] as (...args: unknown[]) => unknown)(...args)
