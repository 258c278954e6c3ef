/** The rows that jax-js has on its wasm device, compiled by its `jit`, under the names of `rows.ts`: forward alone. */
import { SIZES } from './rows.js'

/** The used part of `@jax-js/jax`. Its functions consume their arguments, so `ref` is taken of each. */
export interface Jax {
  init(device: string): Promise<unknown>
  defaultDevice(device: string): void
  jit(f: (...arrays: never[]) => unknown): (...arrays: unknown[]) => Arrays
  readonly numpy: Namespace
  readonly nn: Namespace
  readonly lax: Namespace
  readonly random: Namespace
}
type Namespace = Readonly<Record<string, (...args: unknown[]) => JaxArray>>
interface JaxArray {
  readonly ref: JaxArray
  dispose(): void
  blockUntilReady(): Promise<unknown>
  reshape(shape: readonly number[]): JaxArray
  astype(dtype: string): JaxArray
}
type Arrays = JaxArray | readonly JaxArray[]
export type AsyncWork = () => Promise<unknown>

/** The function, and which of the operands below it takes. */
type JaxRow = readonly [f: (jax: Jax, ...x: JaxArray[]) => unknown, ...operands: (keyof Operands)[]]
interface Operands {
  readonly x: JaxArray
  readonly y: JaxArray
  readonly mask: JaxArray
  readonly table: JaxArray
  readonly index: JaxArray
}

const PLAIN: Readonly<Record<string, JaxRow>> = {
  add: [({ numpy }, x, y) => numpy.add!(x, y), 'x', 'y'],
  mul: [({ numpy }, x, y) => numpy.multiply!(x, y), 'x', 'y'],
  div: [({ numpy }, x, y) => numpy.divide!(x, y), 'x', 'y'],
  exp: [({ numpy }, x) => numpy.exp!(x), 'x'],
  log: [({ numpy }, x) => numpy.log!(x), 'x'],
  tanh: [({ numpy }, x) => numpy.tanh!(x), 'x'],
  sigmoid: [({ nn }, x) => nn.sigmoid!(x), 'x'],
  gelu: [({ nn }, x) => nn.gelu!(x, { approximate: false }), 'x'],
  'pow2.5': [({ numpy }, x) => numpy.power!(x, 2.5), 'x'],
  sin: [({ numpy }, x) => numpy.sin!(x), 'x'],
  where: [({ numpy }, mask, x, y) => numpy.where!(mask, x, y), 'mask', 'x', 'y'],
  gt: [({ numpy }, x, y) => numpy.greater!(x, y), 'x', 'y'],
  sum: [({ numpy }, x) => numpy.sum!(x), 'x'],
  mean: [({ numpy }, x) => numpy.mean!(x), 'x'],
  var: [({ numpy }, x) => numpy.var_!(x), 'x'],
  amax: [({ numpy }, x) => numpy.max!(x), 'x'],
  argmax: [({ numpy }, x) => numpy.argmax!(x), 'x'],
  'sum dim0': [({ numpy }, table) => numpy.sum!(table, 0), 'table'],
  'sum dim1': [({ numpy }, table) => numpy.sum!(table, 1), 'table'],
  'softmax dim1': [({ nn }, table) => nn.softmax!(table, 1), 'table'],
  cumsum: [({ numpy }, x) => numpy.cumsum!(x), 'x'],
  prod: [({ numpy }, x) => numpy.prod!(x), 'x'],
  sort: [({ numpy }, x) => numpy.sort!(x), 'x'],
  logSumExp: [({ nn }, x) => nn.logsumexp!(x), 'x'],
  indexSelect: [({ numpy }, x, index) => numpy.take!(x, index, 0), 'x', 'index'],
  cat: [({ numpy }, x, y) => numpy.concatenate!([x, y]), 'x', 'y'],
  'transpose copy': [({ numpy }, table) => numpy.add!(numpy.transpose!(table), 0), 'table'],
  flip: [({ numpy }, x) => numpy.flip!(x), 'x'],
  roll: [({ numpy }, x) => numpy.roll!(x, 1), 'x'],
  clamp: [({ numpy }, x) => numpy.clip!(x, 0.2, 0.8), 'x'],
  floor: [({ numpy }, x) => numpy.floor!(x), 'x'],
  remainder: [({ numpy }, x) => numpy.remainder!(x, 0.3), 'x'],
}

export async function jaxRows(jax: Jax): Promise<ReadonlyMap<string, AsyncWork>> {
  await jax.init('wasm')
  jax.defaultDevice('wasm')
  const rows = new Map<string, AsyncWork>()
  const row = (name: string, [f]: JaxRow, operands: readonly JaxArray[]): void => {
    const compiled = jax.jit((...x: never[]) => f(jax, ...x))
    rows.set(name, async () => {
      const out = compiled(...operands.map((x) => x.ref))
      for (const x of Array.isArray(out) ? (out as JaxArray[]) : [out as JaxArray]) {
        await x.blockUntilReady()
        x.dispose()
      }
    })
  }
  let seed = 0
  const rand = (...shape: number[]) => jax.random.uniform!(jax.random.key!(seed++), shape)
  for (const n of SIZES) {
    const of: Operands = {
      x: jax.numpy.add!(rand(n), 0.1),
      y: jax.numpy.add!(rand(n), 0.1),
      mask: jax.numpy.greater!(rand(n), 0.5),
      table: rand(1000, n / 1000),
      index: jax.numpy.floor!(jax.numpy.multiply!(rand(n), n - 1)).astype('int32'),
    }
    for (const [name, plan] of Object.entries(PLAIN)) {
      const [, ...operands] = plan
      row(
        `${name} ${n}`,
        plan,
        operands.map((x) => of[x]),
      )
    }
  }
  const product: JaxRow = [({ numpy }, a, b) => numpy.matmul!(a, b)]
  for (const n of [64, 128, 256, 512, 1024]) row(`matmul ${n}`, product, [rand(n, n), rand(n, n)])
  row('bmm 64x64x64', product, [rand(64, 64, 64), rand(64, 64, 64)])
  row('add 3x3', [({ numpy }, a, b) => numpy.add!(a, b)], [rand(3, 3), rand(3, 3)])
  row('conv2d 8x16x32x32 3x3 32 forward', [({ lax }, x, w) => lax.conv!(x, w, [1, 1], 'SAME')], [rand(8, 16, 32, 32), rand(32, 16, 3, 3)])
  return rows
}
