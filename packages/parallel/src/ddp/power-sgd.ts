/**
 * PowerSGD: instead of a gradient two thin matrices are reduced whose product comes near to it, and what is lost is added to the next gradient. For models whose
 * gradients are large beside the links between ranks. PyTorch: `powerSGD_hook`.
 *
 *     M [n, m]  ≈  P [n, r] · Qᵀ [r, m]      P = mean(M Q), made orthogonal; Q = mean(Mᵀ P)
 *
 * Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", 2019.
 */
import { allReduceCoalesced, type ProcessGroup } from '@postgrad/process-group'
import { Generator, randn, type Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument, raw } from '@postgrad/tensor/internal'
import { meanOf } from './comm-hooks.js'
import type { GradBucket } from './grad-bucket.js'
import { groupOf } from './replica.js'

/** Of `PowerSGDState`. */
export interface PowerSGDStateOptions {
  /** Default the default group. */
  readonly processGroup?: ProcessGroup
  /** Columns of the thin matrices; default 1. */
  readonly matrixApproximationRank?: number
  /** So many iterations reduce whole gradients first; default 1000, at least 2 with error feedback or warm start. */
  readonly startPowerSGDIter?: number
  /** A gradient is compressed if that makes it smaller by more than this factor; default 2. */
  readonly minCompressionRate?: number
  /** What is lost is added to the next gradient; default true. */
  readonly useErrorFeedback?: boolean
  /** The last Q is where the next one begins; default true. */
  readonly warmStart?: boolean
  /** Of the first Q, the same on all ranks; default 0. */
  readonly randomSeed?: number
}

const OPTIONS = [
  'processGroup',
  'matrixApproximationRank',
  'startPowerSGDIter',
  'minCompressionRate',
  'useErrorFeedback',
  'warmStart',
  'randomSeed',
] as const satisfies readonly (keyof PowerSGDStateOptions)[]

/** What `powerSGDHook` keeps between iterations. PyTorch: the same. */
export class PowerSGDState {
  /** How many iterations have ended. */
  iteration = 0
  /** @internal */
  readonly options: Required<PowerSGDStateOptions>
  /** @internal By bucket. */
  readonly errors = new Map<number, Tensor>()
  /** @internal By parameter. */
  readonly qs = new Map<Tensor, Tensor>()
  /** @internal */
  readonly generator: Generator

  /** @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED */
  constructor(options: PowerSGDStateOptions = {}) {
    checkOptions('PowerSGDState', options, OPTIONS)
    const { matrixApproximationRank = 1, startPowerSGDIter = 1000, minCompressionRate = 2 } = options
    const { useErrorFeedback = true, warmStart = true, randomSeed = 0 } = options
    if (!Number.isSafeInteger(matrixApproximationRank) || matrixApproximationRank < 1) {
      throw invalidArgument('PowerSGDState', 'matrixApproximationRank to be an integer ≥ 1', matrixApproximationRank)
    }
    if (!(startPowerSGDIter > 1) && (useErrorFeedback || warmStart)) {
      throw invalidArgument(
        'PowerSGDState',
        'startPowerSGDIter > 1 with useErrorFeedback or warmStart',
        startPowerSGDIter,
        'The buckets are made again after the first iteration.',
      )
    }
    const processGroup = groupOf('PowerSGDState', options.processGroup)
    this.options = { processGroup, matrixApproximationRank, startPowerSGDIter, minCompressionRate, useErrorFeedback, warmStart, randomSeed }
    this.generator = new Generator(randomSeed)
  }
}

/** PyTorch: `powerSGD_hook`. */
export async function powerSGDHook(state: PowerSGDState, bucket: GradBucket): Promise<Tensor> {
  const { processGroup: group, startPowerSGDIter, useErrorFeedback, warmStart, matrixApproximationRank, minCompressionRate } = state.options
  const { buffer } = bucket
  const isWhole = state.iteration < startPowerSGDIter
  if (bucket.isLast) state.iteration++
  if (isWhole) return meanOf(buffer, group)
  const error = useErrorFeedback ? state.errors.get(bucket.index) : undefined
  if (error !== undefined) raw.add_(buffer, error)
  const before = useErrorFeedback ? raw.clone(buffer) : null

  const whole: Tensor[] = []
  const matrices: { readonly m: Tensor; readonly q: Tensor }[] = []
  for (const [i, grad] of bucket.gradients.entries()) {
    const [n, m] = [grad.shape[0] ?? 1, grad.numel / (grad.shape[0] ?? 1)]
    const rank = Math.min(n, m, matrixApproximationRank)
    if (grad.ndim < 2 || !((n + m) * rank * minCompressionRate < n * m)) {
      whole.push(grad)
      continue
    }
    const parameter = bucket.parameters[i]!
    let q = warmStart ? state.qs.get(parameter) : undefined
    if (q === undefined) q = randn([m, rank], { dtype: grad.dtype as 'float32', generator: state.generator })
    state.qs.set(parameter, q)
    orthogonalize(q)
    matrices.push({ m: raw.reshape(grad, [n, m]), q })
  }
  for (const each of whole) raw.mul_(each, 1 / group.size)
  if (whole.length > 0) await allReduceCoalesced(whole, { group })
  if (matrices.length === 0) return buffer
  const ps = matrices.map(({ m, q }) => raw.mul(raw.matmul(m, q), 1 / group.size))
  await allReduceCoalesced(ps, { group })
  for (const p of ps) orthogonalize(p)
  for (const [i, { m, q }] of matrices.entries()) raw.copy_(q, raw.mul(raw.matmul(raw.transpose(m, 0, 1), ps[i]!), 1 / group.size))
  await allReduceCoalesced(
    matrices.map(({ q }) => q),
    { group },
  )
  for (const [i, { m, q }] of matrices.entries()) raw.copy_(m, raw.matmul(ps[i]!, raw.transpose(q, 0, 1)))
  // Of gradients that went whole this is the difference from the mean, which adds up to 0 over the ranks.
  if (before !== null) state.errors.set(bucket.index, raw.sub(before, buffer))
  return buffer
}

/** Gram and Schmidt, column by column, in place. */
function orthogonalize(x: Tensor): void {
  const [n, r] = x.shape as readonly [number, number]
  x.storage.prepareWrite()
  const a = x.storage.array
  const at = (row: number, column: number): number => x.offset + row * r + column
  for (let c = 0; c < r; c++) {
    for (let before = 0; before < c; before++) {
      let dot = 0
      for (let row = 0; row < n; row++) dot += a[at(row, c)]! * a[at(row, before)]!
      for (let row = 0; row < n; row++) a[at(row, c)]! -= dot * a[at(row, before)]!
    }
    let square = 0
    for (let row = 0; row < n; row++) square += a[at(row, c)]! ** 2
    const norm = Math.sqrt(square)
    // A column that depends on those before it.
    if (norm > 0) for (let row = 0; row < n; row++) a[at(row, c)]! /= norm
  }
}
