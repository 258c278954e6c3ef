/**
 * Losses, dropout and attention, as `torch.nn.functional` has them. `nllLoss` and `crossEntropy` of rows and classes without further options are
 * operations of their own; everything else about them is here.
 */

import type { Ops, PrimitiveOps } from '../ops/ops.js'
import type {
  BceOptions,
  BceWithLogitsOptions,
  CrossEntropyOptions,
  HuberOptions,
  LossArg,
  LossCompositeOps,
  LossOptions,
  NllLossOptions,
  Reduction,
  SmoothL1Options,
} from '../ops/ops-neural.js'
import { checkReduction } from '../raw/indexing.js'
import { checkedIndices, wholeIndices } from '../raw/indices.js'
import { promoteAll } from '../raw/promotion.js'
import { amax } from '../raw/reduce.js'
import { detach } from '../raw/views.js'
import { elementsOf, isReadable, reportIf } from '../tensor/bytes.js'
import { arange, rand } from '../tensor/create.js'
import type { Device } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { numelOf, sameShape } from '../values/shape.js'
import { SOFTPLUS_EXACT } from './activation.js'
import { atLeast } from './arithmetic.js'

/** PyTorch's default. */
const IGNORED = -100

export function lossComposites(ops: Ops<Tensor>, plain: Pick<PrimitiveOps<Tensor>, 'nllLoss' | 'crossEntropy'>): LossCompositeOps<Tensor> {
  return {
    mseLoss: (input, target, options) => pairwise('mseLoss', input, target, options, (d) => ops.mul(d, d)),
    l1Loss: (input, target, options) => pairwise('l1Loss', input, target, options, (d) => ops.abs(d)),

    smoothL1Loss(input, target, options) {
      const beta = (typeof options === 'object' ? (options as SmoothL1Options).beta : undefined) ?? 1
      if (!(beta >= 0)) throw invalidArgument('smoothL1Loss', 'beta ≥ 0', beta)
      return pairwise('smoothL1Loss', input, target, options, (d) => {
        const size = ops.abs(d)
        if (beta === 0) return size
        const { near, small } = within(d, size, beta)
        return ops.where(near, ops.div(ops.mul(small, small), 2 * beta), ops.sub(size, beta / 2))
      })
    },

    huberLoss(input, target, options) {
      const delta = (typeof options === 'object' ? (options as HuberOptions).delta : undefined) ?? 1
      if (!(delta > 0)) throw invalidArgument('huberLoss', 'delta > 0', delta)
      return pairwise('huberLoss', input, target, options, (d) => {
        if (delta === Number.POSITIVE_INFINITY) return ops.mul(ops.mul(d, d), 0.5)
        const size = ops.abs(d)
        const { near, small } = within(d, size, delta)
        return ops.where(near, ops.mul(ops.mul(small, small), 0.5), ops.mul(ops.sub(size, delta / 2), delta))
      })
    },

    bceLoss(input, target, options) {
      checkShapes('bceLoss', input, target)
      const { weight, reduction } = settings<BceOptions<Tensor>>('bceLoss', options)
      checkElements(
        'bceLoss',
        input,
        (p) => p >= 0 && p <= 1,
        (p) => ops.logicalNot(ops.logicalAnd(ops.ge(p, 0), ops.le(p, 1))),
        'probabilities from 0 to 1',
        'Apply sigmoid() first, or use bceWithLogits.',
      )
      const promoted = promoteAll([input, target])
      const dtype = isFloating(promoted) ? promoted : 'float32'
      return reduce(weighted(ops.binaryCrossEntropy(ops.to(input, dtype), ops.to(target, dtype)), weight), reduction)
    },

    bceWithLogits(logits, target, options) {
      checkShapes('bceWithLogits', logits, target)
      const { weight, posWeight, reduction } = settings<BceWithLogitsOptions<Tensor>>('bceWithLogits', options)
      // −t w log σ(x) − (1 − t) log σ(−x), with −log σ(x) = softplus(−x) and −log σ(−x) = x + softplus(−x)
      const soft = ops.softplus(ops.neg(logits), { threshold: SOFTPLUS_EXACT })
      const share = posWeight == null ? soft : ops.mul(soft, ops.add(ops.mul(ops.sub(posWeight, 1), target), 1))
      return reduce(weighted(ops.add(ops.mul(ops.sub(1, target), logits), share), weight), reduction)
    },

    klDiv(input, target, options) {
      checkShapes('klDiv', input, target)
      const { logTarget = false, reduction } = typeof options === 'object' ? options : { reduction: options }
      // A target of 0 adds nothing, whatever the input; the logarithm's gradient there is kept finite.
      const each = logTarget ? ops.mul(ops.exp(target), ops.sub(target, input)) : ops.sub(xlogx(target), ops.mul(target, input))
      if (reduction === 'batchmean') return ops.div(ops.sum(each), input.ndim === 0 ? 1 : input.shape[0]!)
      checkReduction('klDiv', reduction ?? 'mean')
      return reduce(each, reduction ?? 'mean')
    },

    gaussianNllLoss(input, target, variance, options = {}) {
      checkShapes('gaussianNllLoss', input, target)
      const { full = false, eps = 1e-6, reduction = 'mean' } = options
      checkReduction('gaussianNllLoss', reduction)
      checkElements(
        'gaussianNllLoss',
        variance,
        (v) => !(v < 0),
        (v) => ops.lt(v, 0),
        'variances ≥ 0',
        'Apply softplus() or exp() to what the model gives.',
      )
      const bounded = atLeast(ops, variance, eps)
      const d = ops.sub(input, target)
      const each = ops.mul(ops.add(ops.log(bounded), ops.div(ops.mul(d, d), bounded)), 0.5)
      return reduce(full ? ops.add(each, 0.5 * Math.log(2 * Math.PI)) : each, reduction)
    },

    nllLoss(logp, given, options) {
      const target = classesOf('nllLoss', logp, given)
      if (isPlain(logp, target, options)) return plain.nllLoss(logp, target, reductionOf(options))
      const { weight, ignoreIndex = IGNORED, reduction } = settings<NllLossOptions<Tensor>>('nllLoss', options)
      const rows = asRows('nllLoss', logp, target)
      return shaped(pickedLoss('nllLoss', rows.x, rows.target, weight, ignoreIndex, reduction, plain.nllLoss), target, reduction)
    },

    crossEntropy(logits, given, options) {
      const target = isProbabilities(logits, given) ? given : classesOf('crossEntropy', logits, given)
      if (isPlain(logits, target, options)) return plain.crossEntropy(logits, target, reductionOf(options))
      const {
        weight,
        ignoreIndex = IGNORED,
        labelSmoothing = 0,
        reduction,
      } = settings<CrossEntropyOptions<Tensor>>('crossEntropy', options)
      if (!(labelSmoothing >= 0 && labelSmoothing <= 1)) throw invalidArgument('crossEntropy', 'labelSmoothing from 0 to 1', labelSmoothing)
      if (isFloating(target.dtype)) return ofProbabilities(logits, target, weight, labelSmoothing, reduction)
      const { x, target: classes } = asRows('crossEntropy', logits, target)
      if (labelSmoothing === 0) {
        return shaped(pickedLoss('crossEntropy', x, classes, weight, ignoreIndex, reduction, plain.crossEntropy), target, reduction)
      }
      const logp = ops.logSoftmax(x, 1)
      const picked = pickedLoss('crossEntropy', logp, classes, weight, ignoreIndex, reduction, plain.nllLoss)
      const ignored = ops.eq(classes, ignoreIndex)
      const spread = ops.where(ignored, 0, ops.neg(ops.sum(weight == null ? logp : ops.mul(logp, weight), 1)))
      const each = reduction === 'none' ? spread : ops.sum(spread)
      const smooth = reduction === 'mean' ? ops.div(each, ops.sum(rowWeights(classes, ignored, weight, logp))) : each
      const loss = ops.add(ops.mul(picked, 1 - labelSmoothing), ops.mul(smooth, labelSmoothing / x.shape[1]!))
      return shaped(loss, target, reduction)
    },

    dropout(x, p = 0.5, options = {}) {
      if (!(p >= 0 && p <= 1))
        throw invalidArgument('dropout', 'a probability from 0 to 1', p, 'Pass the share of elements to zero: 0.5 is one half.')
      const { training = true, generator } = options
      if (!training || p === 0) return x
      if (p === 1) return ops.mul(x, 0)
      const kept = ops.ge(rand(x.shape, { device: x.device, ...(generator === undefined ? {} : { generator }) }), p)
      return ops.mul(x, ops.div(ops.to(kept, x.dtype), 1 - p))
    },

    scaledDotProductAttention(query, key, value, options = {}) {
      const op = 'scaledDotProductAttention'
      const { attnMask = null, isCausal = false, dropoutP = 0, scale, generator } = options
      if (query.ndim < 2 || key.ndim < 2 || value.ndim < 2) {
        throw shapeMismatch(
          op,
          'query […, L, E], key […, S, E] and value […, S, V]',
          [query, key, value].map((t) => shapeText(t.shape)).join(', '),
          'Insert the dimension of positions with unsqueeze(-2).',
        )
      }
      if (isCausal && attnMask !== null) throw invalidArgument(op, 'isCausal or an attnMask', 'both', 'Combine them in one mask.')
      const scores = ops.mul(ops.matmul(query, ops.transpose(key, -2, -1)), scale ?? 1 / Math.sqrt(query.shape.at(-1)!))
      const mask = isCausal ? causal(query.shape.at(-2)!, key.shape.at(-2)!, query.device) : attnMask
      const masked =
        mask === null ? scores : mask.dtype === 'bool' ? ops.where(mask, scores, Number.NEGATIVE_INFINITY) : ops.add(scores, mask)
      const shares = ops.dropout(ops.softmax(masked, -1), dropoutP, generator === undefined ? {} : { generator })
      return ops.matmul(shares, value)
    },
  }

  /** Position i sees positions up to i. */
  function causal(queries: number, keys: number, device: Device): Tensor {
    // In float32, which every device compares.
    return ops.ge(ops.unsqueeze(arange(queries, { device }), 1), arange(keys, { device }))
  }

  function reduce(each: Tensor, reduction: Reduction): Tensor {
    return reduction === 'none' ? each : reduction === 'sum' ? ops.sum(each) : ops.mean(each)
  }

  function weighted(each: Tensor, weight: Tensor | null | undefined): Tensor {
    return weight == null ? each : ops.mul(each, weight)
  }

  function pairwise(
    op: string,
    input: Tensor,
    target: Tensor,
    options: LossArg<LossOptions> | undefined,
    of: (difference: Tensor) => Tensor,
  ): Tensor {
    checkShapes(op, input, target)
    const { reduction } = settings(op, options)
    return reduce(of(ops.sub(input, target)), reduction)
  }

  /** x log x, and 0 at 0. */
  function xlogx(x: Tensor): Tensor {
    const zero = ops.eq(x, 0)
    return ops.mul(x, ops.log(ops.where(zero, 1, x)))
  }

  /** Where |d| < bound, or NaN; and d there, elsewhere 0, so that no infinity reaches the square, whose gradient would be NaN. */
  function within(d: Tensor, size: Tensor, bound: number): { readonly near: Tensor; readonly small: Tensor } {
    const near = ops.logicalNot(ops.ge(size, bound))
    return { near, small: ops.where(near, d, 0) }
  }

  /** [C], [N, C], [N, C, d, …] as [rows, C], and the target as [rows]. */
  function asRows(op: string, x: Tensor, target: Tensor): { x: Tensor; target: Tensor } {
    checkClassShapes(op, x, target)
    if (x.ndim === 2) return { x, target }
    if (x.ndim === 1) return { x: ops.unsqueeze(x, 0), target: ops.reshape(target, [1]) }
    const classes = x.shape[1]!
    const last = ops.permute(x, [0, ...x.shape.slice(2).map((_, i) => i + 2), 1])
    return { x: ops.reshape(last, [target.numel, classes]), target: ops.reshape(target, [target.numel]) }
  }

  /** The loss of each row, back in the target's shape, or what it was reduced to. */
  function shaped(loss: Tensor, target: Tensor, reduction: Reduction): Tensor {
    return reduction === 'none' ? ops.reshape(loss, target.shape) : loss
  }

  /** The weight of each row: its class's, 0 where it is ignored. */
  function rowWeights(target: Tensor, ignored: Tensor, weight: Tensor | null | undefined, like: Tensor): Tensor {
    if (weight == null) return ops.to(ops.logicalNot(ignored), like.dtype)
    const safe = ops.where(ignored, 0, target)
    return ops.where(ignored, 0, ops.reshape(ops.embedding(ops.reshape(weight, [weight.numel, 1]), safe), target.shape))
  }

  /** x [rows, C] with classes [rows]: `each` of them without weights, else weighted, and the mean taken over the weights. */
  function pickedLoss(
    op: string,
    x: Tensor,
    target: Tensor,
    weight: Tensor | null | undefined,
    ignoreIndex: number,
    reduction: Reduction,
    each: (x: Tensor, target: Tensor, reduction: Reduction) => Tensor,
  ): Tensor {
    if (weight != null && (weight.ndim !== 1 || weight.shape[0] !== x.shape[1])) {
      throw shapeMismatch(op, `a weight [${x.shape[1]}], one for each class`, shapeText(weight.shape), 'Pass a vector of class weights.')
    }
    const ignored = occurs(target, ignoreIndex) ? ops.eq(target, ignoreIndex) : null
    // Here, where the name of the operation is known; below it would be that of a part.
    checkedIndices(op, ignored === null ? target : ops.where(ignored, 0, target), x.shape[1]!)
    if (weight == null && ignored === null) return each(x, target, reduction)
    return weightedLoss(x, target, ignored ?? ops.eq(target, ignoreIndex), weight, reduction, each)
  }

  /** As pickedLoss, with weights or with rows that are ignored. */
  function weightedLoss(
    x: Tensor,
    target: Tensor,
    ignored: Tensor,
    weight: Tensor | null | undefined,
    reduction: Reduction,
    each: (x: Tensor, target: Tensor, reduction: Reduction) => Tensor,
  ): Tensor {
    const weights = rowWeights(target, ignored, weight, x)
    const losses = ops.where(ignored, 0, ops.mul(each(x, ops.where(ignored, 0, target), 'none'), weights))
    if (reduction === 'none') return losses
    return reduction === 'sum' ? ops.sum(losses) : ops.div(ops.sum(losses), ops.sum(weights))
  }

  /** logits [N, C, …] with probabilities of the same shape. */
  function ofProbabilities(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | null | undefined,
    smoothing: number,
    reduction: Reduction,
  ): Tensor {
    checkProbabilityShapes(logits, target)
    const dim = logits.ndim === 1 ? 0 : 1
    const classes = logits.shape[dim]!
    const smoothed = smoothing === 0 ? target : ops.add(ops.mul(target, 1 - smoothing), smoothing / classes)
    const column = weight == null ? null : ops.reshape(weight, [classes, ...new Array<number>(logits.ndim - 1 - dim).fill(1)])
    const each = ops.neg(ops.sum(weighted(ops.mul(ops.logSoftmax(logits, dim), smoothed), column), dim))
    if (reduction === 'none') return each
    return reduction === 'sum' ? ops.sum(each) : ops.div(ops.sum(each), numelOf(each.shape))
  }
}

function reductionOf(options: LossArg<LossOptions> | undefined): Reduction {
  return (typeof options === 'object' ? options.reduction : options) ?? 'mean'
}

/** @throws INVALID_ARGUMENT */
function settings<O extends LossOptions>(op: string, options: LossArg<O> | undefined): O & { readonly reduction: Reduction } {
  const reduction = reductionOf(options)
  checkReduction(op, reduction)
  return { ...(typeof options === 'object' ? options : {}), reduction } as O & { readonly reduction: Reduction }
}

/** Rows and classes, nothing ignored, no options but the reduction: what has an operation of its own. */
function isPlain(x: Tensor, target: Tensor, options: LossArg<CrossEntropyOptions<Tensor>> | undefined): boolean {
  if (x.ndim !== 2 || target.ndim !== 1 || target.dtype !== 'int32') return false
  if (typeof options !== 'object') return !occurs(target, IGNORED)
  return options.weight == null && !options.labelSmoothing && !occurs(target, options.ignoreIndex ?? IGNORED)
}

/** Of a target that the device has yet to compute it may. */
function occurs(target: Tensor, index: number): boolean {
  if (!isReadable(target)) return true
  return elementsOf(target).includes(index as never)
}

/** On a device with a memory of its own `wrong` computes it, and the next read there reports it. @throws INVALID_ARGUMENT */
function checkElements(
  op: string,
  given: Tensor,
  fits: (v: number) => boolean,
  wrong: (x: Tensor) => Tensor,
  expected: string,
  remedy: string,
): void {
  const x = detach(given)
  if (x.numel === 0) return
  if (!isReadable(x)) reportIf(amax(wrong(x)), invalidArgument(op, expected, 'others', remedy))
  else for (const each of elementsOf(x)) if (!fits(each)) throw invalidArgument(op, expected, each, remedy)
}

function checkShapes(op: string, input: Tensor, target: Tensor): void {
  if (sameShape(input.shape, target.shape)) return
  throw shapeMismatch(
    op,
    `a target of the input's shape ${shapeText(input.shape)}`,
    shapeText(target.shape),
    'A target that would broadcast is nearly always a mistake: use reshape() or expand() so that both have one shape.',
    { input: [...input.shape], target: [...target.shape] },
  )
}

/** A floating target of as many dimensions as the logits; with one fewer it names classes. */
function isProbabilities(logits: Tensor, target: Tensor): boolean {
  return isFloating(target.dtype) && target.ndim >= logits.ndim
}

/** @throws SHAPE_MISMATCH */
function checkProbabilityShapes(logits: Tensor, target: Tensor): void {
  if (sameShape(logits.shape, target.shape)) return
  const classes = classShape(logits)
  throw shapeMismatch(
    'crossEntropy',
    `classes of shape ${shapeText(classes)}, or probabilities of the logits' shape ${shapeText(logits.shape)}`,
    `a ${target.dtype} target ${shapeText(target.shape)}`,
    target.shape[1] === 1 && sameShape(classes, target.shape.toSpliced(1, 1))
      ? 'Take the classes out of their column with squeeze(1).'
      : 'Look at how the target was made.',
    { input: [...logits.shape], target: [...target.shape] },
  )
}

/** The shape of the classes that belong to scores [C], [N, C] or [N, C, d, …]. */
function classShape(x: Tensor): readonly number[] {
  return x.ndim <= 1 ? [] : [x.shape[0]!, ...x.shape.slice(2)]
}

/** The target as int32, behind the check of its shape. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, as wholeIndices */
function classesOf(op: string, x: Tensor, target: Tensor): Tensor {
  if (target.dtype === 'int32') return target
  checkClassShapes(op, x, target)
  return wholeIndices(op, target, 'classes')
}

function checkClassShapes(op: string, x: Tensor, target: Tensor): void {
  const expected = classShape(x)
  if (x.ndim > 0 && sameShape(expected, target.shape)) return
  const column = x.ndim > 1 && target.shape[1] === 1 && sameShape(expected, target.shape.toSpliced(1, 1))
  throw shapeMismatch(
    op,
    'scores [C], [N, C] or [N, C, d, …] and a target [], [N] or [N, d, …]',
    `${shapeText(x.shape)} and ${shapeText(target.shape)}`,
    sameShape(x.shape, target.shape)
      ? "Probabilities of the classes are floating point: convert with to('float32'). Otherwise pass one class for each row: argmax(1)."
      : column
        ? 'Take the classes out of their column with squeeze(1).'
        : 'The classes are dimension 1 of the scores; the target has all the others.',
    { input: [...x.shape], target: [...target.shape] },
  )
}
