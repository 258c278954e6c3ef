/** How the elements of all ranks become one: PyTorch's reductions, and which dtypes have them. */
import { PostgradError } from '@postgrad/base'
import type { DType } from '@postgrad/tensor'
import { argumentText, isFloating } from '@postgrad/tensor/internal'

/**
 * How collectives combine the tensors of all ranks. For bool, SUM and MAX are "or", PRODUCT and MIN are "and", and AVG is refused. AVG of int32 rounds towards
 * 0. BAND, BOR and BXOR are for int32 and bool only. PyTorch: `torch.distributed.ReduceOp`.
 */
export const ReduceOp = {
  /** The sum of all ranks. */
  SUM: 'sum',
  /** The sum divided by the number of ranks. */
  AVG: 'avg',
  /** The product of all ranks. */
  PRODUCT: 'product',
  /** The smallest element of all ranks; NaN if one is NaN. */
  MIN: 'min',
  /** The largest element of all ranks; NaN if one is NaN. */
  MAX: 'max',
  /** The bits that are set on all ranks. */
  BAND: 'band',
  /** The bits that are set on at least one rank. */
  BOR: 'bor',
  /** The bits that are set on an odd number of ranks. */
  BXOR: 'bxor',
} as const

/** A sum in which each rank first multiplies its tensor with a factor of its own. `premulSum` makes one. */
export interface PremulSum {
  readonly kind: 'premulSum'
  /** The factor of this rank. */
  readonly factor: number
}

export type ReduceOp = (typeof ReduceOp)[keyof typeof ReduceOp] | PremulSum

/**
 * The sum of the tensors of all ranks, each times the factor of its rank, for `{ op }` of a collective. PyTorch: `_make_nccl_premul_sum`.
 * @throws INVALID_ARGUMENT if `factor` is not a finite number
 * @example
 * const factor = getRank() === 0 ? 0.25 : 0.75
 * await allReduce(tensor([getRank() + 4]), { op: premulSum(factor) }) // [4.75]
 */
export function premulSum(factor: number): PremulSum {
  if (typeof factor === 'number' && Number.isFinite(factor)) return { kind: 'premulSum', factor }
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'premulSum',
    expected: 'a finite number',
    got: argumentText(factor),
    remedy: 'It is what the tensor of this rank is multiplied with.',
  })
}

/** The kernel that takes two elements to one. */
export const KERNELS = {
  sum: 'add',
  avg: 'add',
  premulSum: 'add',
  product: 'mul',
  min: 'minimum',
  max: 'maximum',
  band: 'bitwiseAnd',
  bor: 'bitwiseOr',
  bxor: 'bitwiseXor',
} as const

export type ReduceName = keyof typeof KERNELS

export function nameOfOp(op: ReduceOp): ReduceName {
  return typeof op === 'object' ? op.kind : op
}

const BITS: ReadonlySet<ReduceName> = new Set(['band', 'bor', 'bxor'])

/** All that a reduction of this dtype could throw is thrown here, before anything is sent. @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
export function checkOp(fn: string, op: ReduceOp, dtype: DType): void {
  const isPremul = typeof op === 'object' && op !== null && op.kind === 'premulSum'
  if (!isPremul && !(typeof op === 'string' && Object.hasOwn(KERNELS, op) && (op as string) !== 'premulSum')) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: fn,
      expected: `one of ReduceOp.${Object.keys(ReduceOp).join(', ')} as { op }`,
      got: argumentText(op),
      remedy: 'Write { op: ReduceOp.MAX }, or premulSum(factor).',
    })
  }
  if (isPremul) premulSum(op.factor)
  if (isPremul && dtype === 'int32' && (op.factor | 0) !== op.factor)
    throw new PostgradError('DTYPE_MISMATCH', {
      op: fn,
      expected: 'a factor that int32 holds, for premulSum of int32',
      got: String(op.factor),
      remedy: "Convert with to('float32') first.",
      values: { dtype, reduction: 'premulSum', factor: op.factor },
    })
  const name = nameOfOp(op)
  const refused = (BITS.has(name) && isFloating(dtype)) || (dtype === 'bool' && (name === 'avg' || name === 'premulSum'))
  if (!refused) return
  throw new PostgradError('DTYPE_MISMATCH', {
    op: fn,
    expected: BITS.has(name) ? `int32 or bool for ${name}` : `numbers for ${name}`,
    got: dtype,
    remedy: BITS.has(name) ? "Convert with to('int32') first." : "Convert with to('float32') or to('int32') first.",
    values: { dtype, reduction: name },
  })
}
