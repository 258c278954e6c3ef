/**
 * Communication hooks that send gradients in half precision: half of the bytes of float32. `half.ts` encodes the numbers. PyTorch: `fp16_compress_hook`,
 * `bf16_compress_hook`, which also add up in half precision; here the sum is in float32, and rounded once more at its end.
 *
 *     each rank      rounds its gradients, and gives slice r of them to rank r
 *     rank r         adds what has come, in the order of the ranks, divides, rounds, and gives the mean to all
 *
 * Words of 32 bits with two numbers each travel as int32 tensors: no collective looks into them. All ranks get the same bits, those of rank r itself among them.
 */
import { allGatherIntoTensor, allToAllSingle, type ProcessGroup } from '@postgrad/process-group'
import { type TypedArray, tensor } from '@postgrad/tensor'
import { CPU, elementsOf, raw, Tensor } from '@postgrad/tensor/internal'
import type { GradBucket } from './grad-bucket.js'
import { BFLOAT16, FLOAT16, type HalfFormat } from './half.js'
import { groupOf } from './replica.js'

/**
 * Reduces gradients as float16, to the mean over the ranks of `group` (null: the default group). PyTorch: `fp16_compress_hook`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(null, fp16CompressHook) // half of the bytes
 * await model.backward((await model.forward(x)).sum())
 */
export function fp16CompressHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOfHalves(FLOAT16, groupOf('fp16CompressHook', group ?? undefined), bucket)
}

/**
 * Reduces gradients as bfloat16, to the mean over the ranks of `group` (null: the default group). bfloat16 has the range of float32 with fewer digits. PyTorch:
 * `bf16_compress_hook`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(null, bf16CompressHook) // half of the bytes
 * await model.backward((await model.forward(x)).sum())
 */
export function bf16CompressHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOfHalves(BFLOAT16, groupOf('bf16CompressHook', group ?? undefined), bucket)
}

async function meanOfHalves(format: HalfFormat, group: ProcessGroup, { buffer }: GradBucket): Promise<Tensor> {
  const { size } = group
  // Of a slice: whole words.
  const words = Math.ceil(buffer.numel / size / 2)
  const encoded = new Int32Array(size * words)
  format.encode(bitsOf(elementsOf(raw.to(buffer, 'float32'))), halvesOf(encoded))
  const own = tensor(encoded).reshape([size, words])
  const came = Tensor.uninitialized('int32', [size, words], CPU)
  await allToAllSingle(came, own, { group })
  const averaged = new Int32Array(words)
  average(format, halvesOf(elementsOf(came)), halvesOf(averaged), size)
  await allGatherIntoTensor(own, tensor(averaged), { group })
  const decoded = new Float32Array(buffer.numel)
  format.decode(halvesOf(elementsOf(own)), bitsOf(decoded))
  return raw.copy_(buffer, tensor(decoded))
}

/** Words of 32 bits as twice as many halves. */
const halvesOf = ({ buffer, byteOffset, length }: TypedArray): Uint16Array => new Uint16Array(buffer, byteOffset, 2 * length)

const bitsOf = ({ buffer, byteOffset, length }: TypedArray): Uint32Array => new Uint32Array(buffer, byteOffset, length)

/** Elements at a time: temporaries stay in the cache, and make no garbage. */
const CHUNK = 8192

/** Of `size` slices, one after the other, in their order. */
function average(format: HalfFormat, slices: Uint16Array, mean: Uint16Array, size: number): void {
  const sum = new Float32Array(Math.min(CHUNK, mean.length))
  const slice = new Float32Array(sum.length)
  for (let at = 0; at < mean.length; at += CHUNK) {
    const length = Math.min(CHUNK, mean.length - at)
    sum.fill(0)
    for (let rank = 0; rank < size; rank++) {
      const from = rank * mean.length + at
      format.decode(slices.subarray(from, from + length), bitsOf(slice).subarray(0, length))
      for (let i = 0; i < length; i++) sum[i] = sum[i]! + slice[i]!
    }
    for (let i = 0; i < length; i++) sum[i] = sum[i]! / size
    format.encode(bitsOf(sum).subarray(0, length), mean.subarray(at, at + length))
  }
}
