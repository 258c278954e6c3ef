/**
 * Communication hooks that send gradients in half precision: half of the bytes of float32. `half.ts` says how a number is written. PyTorch: `fp16_compress_hook`,
 * `bf16_compress_hook`, which also add up in half precision; here the sum is one of float32, and rounded once more at its end.
 *
 *     each rank      rounds its gradients, and gives slice r of them to rank r
 *     rank r         adds what has come, in the order of the ranks, divides, rounds, and gives the mean to all
 *
 * Words of 32 bits with two numbers each travel as int32 tensors: no collective looks into them. All ranks get the same bits, those of rank r itself among them.
 */
import { allGatherIntoTensor, allToAllSingle, type ProcessGroup } from '@postgrad/process-group'
import { Tensor } from '@postgrad/tensor'
import type { GradBucket } from './grad-bucket.js'
import { BFLOAT16, FLOAT16, type HalfFormat } from './half.js'
import { groupOf } from './replica.js'

/** The mean over the ranks of `group` (null: of the default group), of gradients as float16. PyTorch: `fp16_compress_hook`. */
export function fp16CompressHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOfHalves(FLOAT16, groupOf('fp16CompressHook', group ?? undefined), bucket)
}

/** The same as bfloat16, which reaches as far as float32 with fewer digits. PyTorch: `bf16_compress_hook`. */
export function bf16CompressHook(group: ProcessGroup | null, bucket: GradBucket): Promise<Tensor> {
  return meanOfHalves(BFLOAT16, groupOf('bf16CompressHook', group ?? undefined), bucket)
}

async function meanOfHalves(format: HalfFormat, group: ProcessGroup, { buffer }: GradBucket): Promise<Tensor> {
  const { size } = group
  const { numel } = buffer
  // Of a slice: whole words.
  const words = Math.ceil(numel / size / 2)
  const own = Tensor.empty('int32', [size, words])
  write(format, elementsOf(buffer), halvesOf(own))
  const came = Tensor.empty('int32', [size, words])
  await allToAllSingle(came, own, { group })
  const mean = Tensor.empty('int32', [words])
  average(format, halvesOf(came), halvesOf(mean), size)
  await allGatherIntoTensor(own, mean, { group })
  buffer.storage.prepareWrite()
  read(format, halvesOf(own), elementsOf(buffer))
  return buffer
}

type Elements = Float32Array | Float64Array

const elementsOf = ({ storage: { array }, offset, numel }: Tensor): Elements => (array as Elements).subarray(offset, offset + numel)

/** A dense int32 tensor of our own as twice as many halves. */
function halvesOf({ storage: { array }, offset, numel }: Tensor): Uint16Array {
  return new Uint16Array(array.buffer, array.byteOffset + array.BYTES_PER_ELEMENT * offset, 2 * numel)
}

/** A float32 and its bits. */
function scratch(): { readonly value: Float32Array; readonly bits: Uint32Array } {
  const value = new Float32Array(1)
  return { value, bits: new Uint32Array(value.buffer) }
}

function write({ encode }: HalfFormat, from: Elements, to: Uint16Array): void {
  const { value, bits } = scratch()
  for (let i = 0; i < from.length; i++) {
    value[0] = from[i]!
    to[i] = encode(bits[0]!)
  }
}

function read({ decode }: HalfFormat, from: Uint16Array, to: Elements): void {
  const { value, bits } = scratch()
  for (let i = 0; i < to.length; i++) {
    bits[0] = decode(from[i]!)
    to[i] = value[0]!
  }
}

/** Of `size` slices, one behind the other, in their order. */
function average({ encode, decode }: HalfFormat, slices: Uint16Array, mean: Uint16Array, size: number): void {
  const { value, bits } = scratch()
  const factor = Math.fround(1 / size)
  for (let i = 0; i < mean.length; i++) {
    let sum = 0
    for (let rank = 0; rank < size; rank++) {
      bits[0] = decode(slices[rank * mean.length + i]!)
      sum = Math.fround(sum + value[0]!)
    }
    value[0] = sum * factor
    mean[i] = encode(bits[0]!)
  }
}
