/** Random programs of large operations, for tests that compare what different numbers of threads compute. */
import { setTimeout as sleep } from 'node:timers/promises'
import { compile, fromTypedArray, memoryScope, type Tensor, zeros, zerosLike } from '../../../index.js'
import { cat, conv2d, layerNorm, scaledDotProductAttention, where } from '../../../operations.js'
import { convolutionInput, convolutionWeight } from '../../../ops/inner/windows.js'
import { kernelsFor } from '../../../tensor/device.js'
import type { ConvGeometry } from '../../table/neural.js'
import type { AttentionBackward, Norm, NormBackward } from '../../table/operands.js'
import { helperCounts, setComputeThreads } from './compute-threads.js'

/** Numbers below n, by a seed. */
export function below(seed: number): (n: number) => number {
  let random = seed | 1
  return (n) => {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    return (random >>> 0) % n
  }
}

const SPECIALS = [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e-40, 3e38]

/** Mostly small numbers, and a few special values. */
function numbers(shape: readonly number[], pick: (n: number) => number, wide = false): Tensor {
  const host = Float32Array.from({ length: shape.reduce((all, extent) => all * extent, 1) }, () => pick(2001) / 500 - 2)
  for (let i = 0; i < 9; i++) host[pick(host.length)] = SPECIALS[pick(SPECIALS.length)]!
  const x = fromTypedArray(host, [...shape])
  return wide ? x.to('float64') : x
}

const UNARY = ['exp', 'tanh', 'sigmoid', 'neg', 'relu', 'sqrt', 'abs', 'log', 'sin', 'gelu', 'floor', 'square'] as const
const BINARY = ['add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'lt', 'atan2'] as const

/** One operation on operands of its own. */
function operation(pick: (n: number) => number): Tensor {
  const wide = pick(4) === 0
  // From two units of an element-wise kernel on, and a part of one.
  const shape = [2 + pick(3), 40 + pick(60), 300 + pick(200)]
  const [m, n, k] = [1 + pick(pick(2) === 0 ? 40 : 300), 1 + pick(300), 1 + pick(pick(3) === 0 ? 700 : 100)]
  switch (pick(15)) {
    case 0:
    case 1:
      return numbers(shape, pick, wide)[UNARY[pick(UNARY.length)]!]()
    case 2:
    case 3:
      return numbers(shape, pick, wide)[BINARY[pick(BINARY.length)]!](numbers(shape, pick, wide))
    case 4: {
      const x = numbers(shape, pick, wide)
      const chain = compile(() => x.mul(x).add(0.3).tanh().mul(x).sub(1))
      const all = [() => x.add(0.3), () => x.mul_(1.5), () => x.addcmul(x, x, { value: 0.1 }), () => x.transpose(0, 2).exp(), chain]
      return all[pick(5)]!()
    }
    case 5:
      return numbers([m, k], pick, wide).matmul(numbers([k, n], pick, wide))
    case 6:
      return numbers([k, m], pick, wide)
        .transpose(0, 1)
        .matmul(numbers([n, k], pick, wide).transpose(0, 1))
    case 7:
      return numbers([3, m, k], pick, wide).matmul(numbers([n, k], pick, wide).transpose(0, 1))
    case 8: {
      const [batches, rows] = [2 + pick(6), 1 + pick(60)]
      const left = numbers([batches, rows, k], pick, wide)
      return left.matmul(numbers([batches, 1 + pick(60), k], pick, wide).transpose(1, 2))
    }
    case 10: {
      const [heads, queries, keys, e] = [1 + pick(5), 20 + pick(60), 80 + pick(100), 40 + pick(40)]
      const of = (rows: number): Tensor => numbers([2, heads, rows, e], pick)
      return scaledDotProductAttention(of(queries), of(keys), of(keys), { isCausal: pick(2) === 0 })
    }
    case 11:
      return attended(pick)
    case 12:
      return normed(pick)
    case 13:
      return reduced(pick, wide)
    case 9:
      return convolved(pick, wide)
    default: {
      const x = numbers([shape[0]! * shape[1]!, shape[2]!], pick, wide)
      return [() => x.softmax(-1), () => x.logSoftmax(-1), () => layerNorm(x, [shape[2]!]), () => x.sum([0]), () => x.amax([1])][pick(5)]!()
    }
  }
}

/** Attention of many keys, or all gradients of attention. */
function attended(pick: (n: number) => number): Tensor {
  const [heads, queries, e] = [1 + pick(5), 20 + pick(60), 40 + pick(40)]
  const keys = pick(3) === 0 ? 2049 + pick(60) : 80 + pick(100)
  const of = (rows: number): Tensor => numbers([2, heads, rows, e], pick)
  const [q, k, v, grad] = [of(queries), of(keys), of(keys), of(queries)]
  const [isCausal, mask] = [pick(2) === 0, pick(2) === 0 ? numbers([1, 1, queries, keys], pick).expand([2, heads, queries, keys]) : null]
  if (pick(2) === 0) return scaledDotProductAttention(q, k, v, mask === null ? { isCausal } : { attnMask: mask })
  const grads = [q, k, v].map((x) => (pick(4) === 0 ? null : zerosLike(x))) as [Tensor | null, Tensor | null, Tensor | null]
  ;(kernelsFor(q).attentionBackward.float32 as AttentionBackward)(grad, q, k, v, mask, ...grads, 0.1, isCausal)
  return all(grads)
}

/** layerNorm or batchNorm of training, with all gradients. */
function normed(pick: (n: number) => number): Tensor {
  const [isRows, isAffine] = [pick(2) === 0, pick(3) > 0]
  const shape = isRows ? [20 + pick(300), [32, 64, 100, 128, 20 + pick(300)][pick(5)]!] : [1 + pick(6), 2 + pick(9), 100 + pick(400)]
  const [x, grad, weight, bias] = [numbers(shape, pick), numbers(shape, pick), numbers([shape[1]!], pick), numbers([shape[1]!], pick)]
  const { layerNorm: rows, layerNormBackward, channelNorm, channelNormBackward } = kernelsFor(x)
  const [forward, backward] = [
    (isRows ? rows : channelNorm).float32 as Norm,
    (isRows ? layerNormBackward : channelNormBackward).float32 as NormBackward,
  ]
  const [out, mean, spread] = [zerosLike(x), zeros([isRows ? shape[0]! : shape[1]!]), zeros([isRows ? shape[0]! : shape[1]!])]
  forward(x, isAffine ? weight : null, isAffine ? bias : null, out, mean, spread, 1e-5)
  const [dx, dw, db] = [zerosLike(x), zerosLike(weight), zerosLike(weight)]
  backward(grad, x, mean, spread, isAffine ? weight : null, dx, isAffine ? dw : null, isAffine ? db : null, 1e-5)
  return all([out, mean, spread, dx, dw, db])
}

const all = (xs: readonly (Tensor | null)[]): Tensor => cat([zeros([1]), ...xs.flatMap((x) => (x === null ? [] : [x.flatten()]))])

/** A reduction over rows, columns or both, or an operation whose second operand broadcasts. */
function reduced(pick: (n: number) => number, wide: boolean): Tensor {
  const shape = [100 + pick(300), 200 + pick(400)]
  const x = numbers(shape, pick, wide)
  const [row, column] = [numbers([shape[1]!], pick, wide), numbers([shape[0]!, 1], pick, wide)]
  return [
    ...[() => x.sum([pick(2)]), () => x.prod(pick(2)), () => x.amin([pick(2)]), () => x.argmax(pick(2)), () => x.var(pick(2))],
    ...[() => x.amax(), () => x.mean([1]), () => x.gt(0).any(pick(2)), () => x.to('int32').sum([pick(2)])],
    ...[
      () => x.add(row),
      () => x.mul(column),
      () => where(x.gt(0), row, column),
      () => x.narrow(0, 0, 100).reshape([2, 50, shape[1]!]).div(row),
    ],
    () => numbers([1 + pick(4), 1 + pick(9), 64 * (1 + pick(90))], pick, wide).sum([0, 2]),
  ][pick(14)]!()
}

/** A convolution of several images, or one of its gradients. */
function convolved(pick: (n: number) => number, wide: boolean): Tensor {
  const [n, c, o, h, w] = [1 + pick(6), 1 + pick(6), 1 + pick(20), 5 + pick(30), 5 + pick(30)]
  const [kh, kw, pad, stride] = [1 + pick(3), 1 + pick(3), pick(2), 1 + pick(2)]
  const [oh, ow] = [Math.floor((h + 2 * pad - kh) / stride) + 1, Math.floor((w + 2 * pad - kw) / stride) + 1]
  const strides = { strideH: stride, strideW: stride, padH: pad, padW: pad, dilH: 1, dilW: 1, groups: 1 }
  const geometry: ConvGeometry = { n, c, o, h, w, kh, kw, oh, ow, ...strides }
  const image = (): Tensor => numbers([n, c, h, w], pick, wide)
  const weight = (): Tensor => numbers([o, c, kh, kw], pick, wide)
  const grad = (): Tensor => numbers([n, o, oh, ow], pick, wide)
  const bias = pick(2) === 0 ? null : numbers([o], pick, wide)
  return [
    () => conv2d(image(), weight(), bias, { padding: pad, stride }),
    () => convolutionInput(grad(), weight(), geometry),
    () => convolutionWeight(image(), grad(), geometry),
  ][pick(3)]!()
}

/** The results of ten operations, as bytes. */
export function runProgram(seed: number): Uint8Array[] {
  const pick = below(seed)
  return Array.from({ length: 10 }, () => memoryScope(() => bytesOf(operation(pick))))
}

/** Which NaN comes of several is left open by WebAssembly, and differs once V8 has optimized a kernel: all become the same. */
function bytesOf(y: Tensor): Uint8Array {
  const host = y.dataSync().slice()
  const bytes = new Uint8Array(host.buffer)
  const size = host.BYTES_PER_ELEMENT
  for (let i = 0; i < host.length; i++) if (Number.isNaN(host[i]!)) bytes.fill(0xff, i * size, (i + 1) * size)
  return bytes
}

/** Sets the number of threads, and waits until all helpers can compute. @throws after 20 s */
export async function withHelpers(threads: number): Promise<void> {
  setComputeThreads(threads)
  for (let wait = 0; helperCounts().ready < threads - 1; wait++) {
    if (wait > 4000) throw new Error(`${helperCounts().ready} of ${threads - 1} helpers can compute`)
    // The first large operation starts them.
    memoryScope(() => zeros([300, 300]).exp())
    await sleep(5)
  }
}
