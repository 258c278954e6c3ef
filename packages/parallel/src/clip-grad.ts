/**
 * Clips the gradients that a context has on all workers: by the norm of all of them as one vector, or each element by a bound. One round asks the
 * owners for their gradients' shares of the norm, a second one scales, if necessary. `clip-shares.ts` is an owner's part.
 * PyTorch has none for distributed autograd; the reference is `torch.nn.utils.clip_grad_norm_` over all parameters in one place.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { DistAutogradContext } from '@postgrad/dist-autograd'
import { currentDistAutograd, idOf } from '@postgrad/dist-autograd/internal'
import { checkFinite, clipFactor, normOfShares } from '@postgrad/nn/internal'
import { type CallOptions, call, expose, type RRef, type WorkerInfo } from '@postgrad/rpc'
import { type Tensor, zeros } from '@postgrad/tensor'
import { checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import { clampGrads, gradShares, scaleGrads } from './clip-shares.js'
import { gradientsIn } from './local-optimizer.js'

/** Options of `clipGradNorm`. */
export interface ClipNormOptions extends CallOptions {
  /** The p > 0 of the p-norm, or Infinity for the largest absolute value; default 2. */
  readonly normType?: number
  /** Whether to reject with GRAD_NOT_FINITE, instead of scaling, if the norm is infinite or NaN; default false. */
  readonly errorIfNonfinite?: boolean
}

/** One owner's parameters, however they are reached. */
export interface ClipPart {
  readonly owner: WorkerInfo
  /** The places of its parameters among all. */
  readonly places: readonly number[]
  shares(contextId: bigint, normType: number): PromiseLike<(Tensor | null)[]>
  scale(contextId: bigint, factor: Tensor): PromiseLike<void>
  clamp(contextId: bigint, clipValue: number): PromiseLike<void>
}

/**
 * Scales the gradients that `params` have in a context by min(1, maxNorm / norm), in place on their owners. The norm is the p-norm of all gradients as one
 * vector. Returns the norm before the scaling, a tensor []. The result has the same bits as `clipGradNorm_` over the same parameters in one process. Call it
 * between backward and step, while no pass of the context is under way. PyTorch: `torch.nn.utils.clip_grad_norm_`, for one process.
 * @throws INVALID_ARGUMENT if an argument is not valid; GRAD_NOT_FINITE if `errorIfNonfinite` is set and the norm is not finite (then nothing is scaled);
 * CONTEXT_NOT_FOUND or CONTEXT_RELEASED if the context does not exist; PASS_UNDER_WAY if a pass of the context has not ended; GRAD_CLIP_FAILED if an owner
 * fails. Its `values.owners` names owners that failed, and `values.scaled` owners that have scaled; its cause is the first owner's error
 * @example
 * using w = remote('worker1', zeros, [[2, 2], { requiresGrad: true }])
 * await distAutograd.context(async (ctx) => {
 *   await ctx.backward([(await w.rpcSync().mul(x)).sum()])
 *   const norm = await clipGradNorm(ctx, [w], 1) // 5.4772
 * })
 */
export async function clipGradNorm(
  context: DistAutogradContext | bigint,
  params: Iterable<RRef<Tensor>>,
  maxNorm: number,
  options: ClipNormOptions = {},
): Promise<Tensor> {
  return await clipNormOver(
    partsOf(params, limitsOf('clipGradNorm', options, NORM_OPTIONS)),
    contextIdOf(context, 'clipGradNorm'),
    maxNorm,
    options,
  )
}

/**
 * Clamps the gradients that `params` have in a context to −clipValue … clipValue, in place on their owners. NaN stays NaN. PyTorch:
 * `torch.nn.utils.clip_grad_value_`, for one process.
 * @throws INVALID_ARGUMENT if an argument is not valid; CONTEXT_NOT_FOUND or CONTEXT_RELEASED if the context does not exist; PASS_UNDER_WAY if a pass of the
 * context has not ended; GRAD_CLIP_FAILED if an owner fails
 * @example
 * using w = remote('worker1', zeros, [[2, 2], { requiresGrad: true }])
 * await distAutograd.context(async (ctx) => {
 *   await ctx.backward([(await w.rpcSync().mul(x)).sum()])
 *   await clipGradValue(ctx, [w], 1) // each element of the gradient is now from −1 to 1
 * })
 */
export async function clipGradValue(
  context: DistAutogradContext | bigint,
  params: Iterable<RRef<Tensor>>,
  clipValue: number,
  options: CallOptions = {},
): Promise<void> {
  await clipValueOver(partsOf(params, limitsOf('clipGradValue', options)), contextIdOf(context, 'clipGradValue'), clipValue)
}

export async function clipNormOver(
  parts: readonly ClipPart[],
  contextId: bigint,
  maxNorm: number,
  { normType = 2, errorIfNonfinite = false }: ClipNormOptions,
): Promise<Tensor> {
  if (!(maxNorm >= 0)) throw invalidArgument('clipGradNorm', 'a maxNorm ≥ 0', maxNorm, 'Infinity only measures the norm.')
  if (!(normType > 0)) throw invalidArgument('clipGradNorm', 'a normType > 0 or Infinity', normType, 'Leave it out for the Euclidean norm.')
  const byPlace: (Tensor | null)[] = []
  const found = await onAll('clipGradNorm', 'measure', parts, (part) => part.shares(contextId, normType))
  for (const [i, { places }] of parts.entries()) for (const [own, place] of places.entries()) byPlace[place] = found[i]![own] ?? null
  const shares = byPlace.filter((share) => share !== null)
  if (shares.length === 0) return zeros([])
  const norm = normOfShares(shares, normType)
  if (errorIfNonfinite) checkFinite(await norm.item(), normType, 'clipGradNorm')
  const factor = clipFactor(norm, maxNorm)
  // A factor of 1 changes no bit.
  if ((await factor.item()) !== 1) await onAll('clipGradNorm', 'clip', parts, (part) => part.scale(contextId, factor))
  return norm
}

export async function clipValueOver(parts: readonly ClipPart[], contextId: bigint, clipValue: number): Promise<void> {
  if (!(clipValue >= 0))
    throw invalidArgument('clipGradValue', 'a clipValue ≥ 0', clipValue, 'Every element is held between −clipValue and clipValue.')
  await onAll('clipGradValue', 'clip', parts, (part) => part.clamp(contextId, clipValue))
}

/** @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED; PASS_UNDER_WAY, since what is done with its gradients needs all of them */
export function contextIdOf(context: DistAutogradContext | bigint, op: string): bigint {
  const contextId = idOf(context)
  currentDistAutograd().container.retrieve(contextId, op).checkAwaited(op)
  return contextId
}

/** One round: it measures, or it changes gradients. */
async function onAll<T>(
  op: string,
  round: 'measure' | 'clip',
  parts: readonly ClipPart[],
  fn: (part: ClipPart) => PromiseLike<T>,
): Promise<T[]> {
  const ends = await Promise.allSettled(parts.map(fn))
  const failed = parts.filter((_, i) => ends[i]!.status === 'rejected')
  if (failed.length > 0) {
    const { reason } = ends.find((end) => end.status === 'rejected')!
    const names = failed.map(({ owner }) => owner.name)
    // The caller's mistake, said by an owner, is the caller's error.
    if (isPostgradError(reason, 'CONTEXT_RELEASED')) throw reason
    const clips = round === 'clip'
    const scaled = clips ? parts.filter((part) => !failed.includes(part)).map(({ owner }) => owner.name) : []
    throw new PostgradError('GRAD_CLIP_FAILED', {
      op,
      message: `the gradients on ${names.map((name) => `'${name}'`).join(', ')} could not be ${clips ? 'clipped' : 'measured'}: ${reason instanceof Error ? reason.message : String(reason)}`,
      remedy: clips
        ? 'See the cause. Other owners may have clipped theirs: do not step with this context.'
        : 'See the cause. No gradient was changed.',
      cause: reason,
      values: { owners: names, scaled },
    })
  }
  return ends.map((end) => (end as PromiseFulfilledResult<T>).value)
}

const LIMITS = ['timeoutMs', 'signal', 'ordered'] as const
export const NORM_OPTIONS = ['normType', 'errorIfNonfinite', ...LIMITS] as const

/** The options of a round's calls. @throws INVALID_ARGUMENT for names that are not known */
export function limitsOf(op: string, options: ClipNormOptions, known: readonly (keyof ClipNormOptions)[] = LIMITS): CallOptions {
  checkOptions(op, options, known)
  const { normType: _, errorIfNonfinite: __, ...limits } = options
  return limits
}

function partsOf(params: Iterable<RRef<Tensor>>, limits: CallOptions): ClipPart[] {
  const parts = new Map<number, { readonly owner: WorkerInfo; readonly places: number[]; readonly params: RRef<Tensor>[] }>()
  let place = 0
  for (const param of params) {
    const owner = param.owner()
    let part = parts.get(owner.id)
    if (part === undefined) {
      part = { owner, places: [], params: [] }
      parts.set(owner.id, part)
    }
    part.places.push(place++)
    part.params.push(param)
  }
  return [...parts.values()].map(({ owner, places, params: own }) => ({
    owner,
    places,
    shares: (contextId, normType) => call(owner, sharesThere, [own, contextId, normType], limits),
    scale: (contextId, factor) => call(owner, scaleThere, [own, contextId, factor], limits),
    clamp: (contextId, clipValue) => call(owner, clampThere, [own, contextId, clipValue], limits),
  }))
}

const here = (params: readonly RRef<Tensor>[]): Promise<Tensor[]> => Promise.all(params.map((param) => param.toHere()))
const sharesThere = async (params: RRef<Tensor>[], contextId: bigint, normType: number): Promise<(Tensor | null)[]> =>
  gradShares(await here(params), gradientsIn(contextId), normType)
const scaleThere = async (params: RRef<Tensor>[], contextId: bigint, factor: Tensor): Promise<void> =>
  scaleGrads(await here(params), gradientsIn(contextId), factor)
const clampThere = async (params: RRef<Tensor>[], contextId: bigint, clipValue: number): Promise<void> =>
  clampGrads(await here(params), gradientsIn(contextId), clipValue)

expose({ 'postgrad.gradShares': sharesThere, 'postgrad.scaleGrads': scaleThere, 'postgrad.clampGrads': clampThere })
