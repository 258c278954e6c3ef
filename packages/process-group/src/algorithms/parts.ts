/** Tensors as parts of collectives: made to be sent, checked on arrival, and written into the user's tensors. */
import { PostgradError } from '@postgrad/base'
import type { DType, Tensor } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, copyInto, giveBack, isTensor, raw, wrote } from '@postgrad/tensor/internal'
import type { Values } from '../common/protocol.js'
import { run } from './combine.js'

/** Its elements as a dense tensor of one dimension: itself where it lies so, or a copy. */
export function flat(x: Tensor): Tensor {
  return run(x.isContiguous ? x : raw.contiguous(x), 0, x.numel)
}

/** Of all elements. */
export function bytesOf(tensors: readonly Like[]): number {
  return tensors.reduce((sum, { numel, dtype }) => sum + numel * BYTES_PER_ELEMENT[dtype], 0)
}

/**
 * The tensors that came from a rank, which must be dense and of these dtypes and numbers of elements. Where heads say all shapes they are; elsewhere (allToAll)
 * ranks may disagree.
 * @throws COLLECTIVE_MISMATCH
 */
export function tensorsOf(values: Values | undefined, like: readonly Like[], from: number): readonly Tensor[] {
  const tensors = values ?? []
  const isRight =
    tensors.length === like.length &&
    tensors.every((each, i) => isDense(each) && each.dtype === like[i]!.dtype && each.numel === like[i]!.numel)
  if (isRight) return (tensors as readonly Tensor[]).map(flat)
  throw new PostgradError('COLLECTIVE_MISMATCH', {
    op: 'collective',
    expected: `${like.map(likeText).join(', ')} from rank ${from}`,
    got: tensors.map((each) => (isDense(each) ? likeText(each) : 'something else')).join(', ') || 'nothing',
    remedy: 'One rank must send as many elements as the other receives, of the same dtype.',
    values: { rank: from },
  })
}

interface Like {
  readonly dtype: DType
  readonly numel: number
}

const isDense = (value: unknown): value is Tensor => isTensor(value) && !value.isSparse && value.isContiguous
const likeText = ({ dtype, numel }: Like): string => `${numel} × ${dtype}`

/** Ranks of this library do not send it. */
export function invalid(expected: string): PostgradError {
  return new PostgradError('COLLECTIVE_INVALID', {
    op: 'collective',
    expected: `${expected} from another rank`,
    got: 'something else',
    remedy: 'All ranks run the same version of this library.',
  })
}

/** Writes dense elements into a tensor of the user, which may be what they are. */
export function write(op: string, part: Tensor, out: Tensor): void {
  const isItself = part.storage === out.storage && part.offset === out.offset && out.isContiguous
  if (out.numel === 0 || isItself) return
  if (out.isContiguous && part.storage !== out.storage) {
    out.storage.prepareWrite()
    copyInto(part, run(out, 0, out.numel))
    wrote(op, out)
  } else raw.copy_(out, raw.reshape(part, out.shape))
}

/** Blocks that were read go back. */
export function release(parts: Iterable<Tensor>): void {
  for (const { storage } of parts) giveBack(storage)
}
