/** Losses. A string as the third argument is the reduction. Input and target have one shape: neither broadcasts. */

import { detach as rawDetach } from '../raw/copy.js'
import { checkedIndices, wholeIndices } from '../raw/indices.js'
import { promoteAll } from '../raw/promotion.js'
import { elementsOf, isReadable, reportIf } from '../tensor/bytes.js'
import type { Tensor } from '../tensor/tensor.js'
import { isFloating } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type {
  BceOptions,
  BceWithLogitsOptions,
  CrossEntropyOptions,
  GaussianNllOptions,
  HuberOptions,
  KlDivOptions,
  LossArg,
  LossOptions,
  NllLossOptions,
  Reduction,
  SmoothL1Options,
} from '../values/options-neural.js'
import { sameShape } from '../values/shape.js'
import { composite, type Functional, type Ops, rawOperations } from './define/define.js'
import { checkReduction } from './parts/classes.js'
import { atLeast, SOFTPLUS_EXACT } from './parts/common.js'
import { floatingOnly } from './parts/fibres.js'

/**
 * (input − target)². Input and target have one shape and do not broadcast. The third argument is the reduction (default 'mean') or all options. PyTorch:
 * `torch.nn.functional.mse_loss`.
 * @throws SHAPE_MISMATCH if the shapes differ; DTYPE_MISMATCH if both are int32 and the reduction is 'mean'
 * @example mseLoss(tensor([1, 2]), tensor([1, 4]), 'none') // [0, 4]
 */
export const mseLoss: Functional<(input: Tensor, target: Tensor, options?: LossArg) => Tensor> = composite('mseLoss', {
  args: ['tensor', 'tensor', 'named or options?'],
  options: { reduction: true },
  isFunctional: true,
  of: (ops) => (input, target, options) => pairwise(ops, 'mseLoss', input, target, options, (d) => ops.mul(d, d)),
})

/**
 * |input − target|. Input and target have one shape and do not broadcast. The third argument is the reduction (default 'mean') or all options. PyTorch:
 * `torch.nn.functional.l1_loss`.
 * @throws SHAPE_MISMATCH if the shapes differ; DTYPE_MISMATCH if both are int32 and the reduction is 'mean'
 * @example l1Loss(tensor([1, 2]), tensor([1, 4])) // 1
 */
export const l1Loss: Functional<(input: Tensor, target: Tensor, options?: LossArg) => Tensor> = composite('l1Loss', {
  args: ['tensor', 'tensor', 'named or options?'],
  options: { reduction: true },
  isFunctional: true,
  of: (ops) => (input, target, options) => pairwise(ops, 'l1Loss', input, target, options, (d) => ops.abs(d)),
})

/**
 * ½ d² / beta where |d| < beta (default 1), else |d| − ½ beta, with d = input − target. The reduction is 'mean' by default. PyTorch:
 * `torch.nn.functional.smooth_l1_loss`.
 * @throws SHAPE_MISMATCH if the shapes differ; INVALID_ARGUMENT if beta is negative
 * @example smoothL1Loss(tensor([0, 0]), tensor([0.5, 3]), 'none') // [0.125, 2.5]
 */
export const smoothL1Loss: Functional<(input: Tensor, target: Tensor, options?: LossArg<SmoothL1Options>) => Tensor> = composite(
  'smoothL1Loss',
  {
    args: ['tensor', 'tensor', 'named or options?'],
    options: { reduction: true, beta: true },
    isFunctional: true,
    of: (ops) => (input, target, options) => {
      const beta = (typeof options === 'object' ? (options as SmoothL1Options).beta : undefined) ?? 1
      if (!(beta >= 0)) throw invalidArgument('smoothL1Loss', 'beta ≥ 0', beta)
      return pairwise(ops, 'smoothL1Loss', input, target, options, (d) => {
        const size = ops.abs(d)
        if (beta === 0) return size
        const { near, small } = within(ops, d, size, beta)
        return ops.where(near, ops.div(ops.mul(small, small), 2 * beta), ops.sub(size, beta / 2))
      })
    },
  },
)

/**
 * ½ d² where |d| ≤ delta (default 1), else delta · (|d| − ½ delta), with d = input − target. The reduction is 'mean' by default. PyTorch:
 * `torch.nn.functional.huber_loss`.
 * @throws SHAPE_MISMATCH if the shapes differ; INVALID_ARGUMENT if delta is not positive
 * @example huberLoss(tensor([0, 0]), tensor([0.5, 3]), { delta: 2, reduction: 'none' }) // [0.125, 4]
 */
export const huberLoss: Functional<(input: Tensor, target: Tensor, options?: LossArg<HuberOptions>) => Tensor> = composite('huberLoss', {
  args: ['tensor', 'tensor', 'named or options?'],
  options: { reduction: true, delta: true },
  isFunctional: true,
  of: (ops) => (input, target, options) => {
    const delta = (typeof options === 'object' ? (options as HuberOptions).delta : undefined) ?? 1
    if (!(delta > 0)) throw invalidArgument('huberLoss', 'delta > 0', delta)
    return pairwise(ops, 'huberLoss', input, target, options, (d) => {
      if (delta === Number.POSITIVE_INFINITY) return ops.mul(ops.mul(d, d), 0.5)
      const size = ops.abs(d)
      const { near, small } = within(ops, d, size, delta)
      return ops.where(near, ops.mul(ops.mul(small, small), 0.5), ops.mul(ops.sub(size, delta / 2), delta))
    })
  },
})

/**
 * Binary cross entropy of probabilities from 0 to 1. Logarithms below −100 count as −100. Input and target have one shape; the reduction is 'mean' by default.
 * PyTorch: `torch.nn.functional.binary_cross_entropy`.
 * @throws SHAPE_MISMATCH if the shapes differ; INVALID_ARGUMENT if a probability is not from 0 to 1
 * @example bceLoss(tensor([0.9, 0.2]), tensor([1, 0])) // 0.1643
 */
export const bceLoss: Functional<(input: Tensor, target: Tensor, options?: LossArg<BceOptions<Tensor>>) => Tensor> = composite('bceLoss', {
  args: ['tensor', 'tensor', 'named or options?'],
  options: { reduction: true, weight: true },
  isFunctional: true,
  of: (ops) => (input, target, options) => {
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
    return reduce(ops, weighted(ops, ops.binaryCrossEntropy(ops.to(input, dtype), ops.to(target, dtype)), weight), reduction)
  },
})

/**
 * Binary cross entropy of σ(logits), without overflow. Logits and target have one shape; the reduction is 'mean' by default. `posWeight` is a factor for
 * elements whose target is 1. PyTorch: `torch.nn.functional.binary_cross_entropy_with_logits`.
 * @throws SHAPE_MISMATCH if the shapes differ
 * @example bceWithLogits(tensor([2, -1]), tensor([1, 0])) // 0.2201
 */
export const bceWithLogits: Functional<(logits: Tensor, target: Tensor, options?: LossArg<BceWithLogitsOptions<Tensor>>) => Tensor> =
  composite('bceWithLogits', {
    args: ['tensor', 'tensor', 'named or options?'],
    options: { reduction: true, weight: true, posWeight: true },
    isFunctional: true,
    of: (ops) => (logits, target, options) => {
      checkShapes('bceWithLogits', logits, target)
      const { weight, posWeight, reduction } = settings<BceWithLogitsOptions<Tensor>>('bceWithLogits', options)
      floatingOnly('bceWithLogits', logits)
      // −t w log σ(x) − (1 − t) log σ(−x), with −log σ(x) = softplus(−x) and −log σ(−x) = x + softplus(−x)
      const soft = ops.softplus(ops.neg(logits), { threshold: SOFTPLUS_EXACT })
      const share = posWeight == null ? soft : ops.mul(soft, ops.add(ops.mul(ops.sub(posWeight, 1), target), 1))
      return reduce(ops, weighted(ops, ops.add(ops.mul(ops.sub(1, target), logits), share), weight), reduction)
    },
  })

/**
 * Kullback-Leibler divergence: target · (log target − input). The input holds log-probabilities; the target holds probabilities, or with `logTarget`
 * log-probabilities. The reduction is 'mean' by default; 'batchmean' divides the sum by N, as the mathematical definition does. PyTorch:
 * `torch.nn.functional.kl_div`.
 * @throws SHAPE_MISMATCH if the shapes differ
 * @example klDiv(tensor([[0.5, 0.5]]).log(), tensor([[0.9, 0.1]]), 'batchmean') // 0.3681
 */
export const klDiv: Functional<(input: Tensor, target: Tensor, options?: Reduction | 'batchmean' | KlDivOptions) => Tensor> = composite(
  'klDiv',
  {
    args: ['tensor', 'tensor', 'named or options?'],
    options: { reduction: true, logTarget: true },
    isFunctional: true,
    of: (ops) => (input, target, options) => {
      checkShapes('klDiv', input, target)
      const { logTarget = false, reduction } = typeof options === 'object' ? options : { reduction: options }
      // A target of 0 adds nothing, whatever the input; the logarithm's gradient there is kept finite.
      const each = logTarget ? ops.mul(ops.exp(target), ops.sub(target, input)) : ops.sub(xlogx(ops, target), ops.mul(target, input))
      if (reduction === 'batchmean') return ops.div(ops.sum(each), input.ndim === 0 ? 1 : input.shape[0]!)
      checkReduction('klDiv', reduction ?? 'mean')
      return reduce(ops, each, reduction ?? 'mean')
    },
  },
)

/**
 * Negative log likelihood of a normal distribution: ½ (log v + (input − target)² / v), where v is the variance, but at least `eps` (default 1e-6). `full` adds
 * ½ log 2π. The reduction is 'mean' by default. PyTorch: `torch.nn.functional.gaussian_nll_loss`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; INVALID_ARGUMENT if a variance is negative
 * @example gaussianNllLoss(tensor([0, 0]), tensor([0, 2]), tensor([1, 4]), { reduction: 'none' }) // [0, 1.1931]
 */
export const gaussianNllLoss: Functional<(input: Tensor, target: Tensor, variance: Tensor, options?: GaussianNllOptions) => Tensor> =
  composite('gaussianNllLoss', {
    args: ['tensor', 'tensor', 'tensor', 'options?'],
    options: { reduction: true, full: true, eps: true },
    isFunctional: true,
    of:
      (ops) =>
      (input, target, variance, options = {}) => {
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
        return reduce(ops, full ? ops.add(each, 0.5 * Math.log(2 * Math.PI)) : each, reduction)
      },
  })

/**
 * Negative log likelihood of log-probabilities [N, C], [C] or [N, C, d, …]. The target holds classes (int32 or whole numbers) [N], [] or [N, d, …]. Defaults:
 * reduction 'mean', ignoreIndex −100. PyTorch: `torch.nn.functional.nll_loss`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if a class is not a whole number; INDEX_OUT_OF_RANGE if a class is not from 0 to C−1
 * @example nllLoss(tensor([[0.2, 0.8], [0.5, 0.5]]).log(), tensor([1, 0])) // 0.4581
 */
export const nllLoss: (logp: Tensor, target: Tensor, options?: LossArg<NllLossOptions<Tensor>>) => Tensor = composite('nllLoss', {
  args: ['tensor', 'tensor', 'named or options?'],
  options: { reduction: true, weight: true, ignoreIndex: true },
  of: (ops) => (logp, given, options) => {
    const target = classesOf('nllLoss', logp, given)
    if (isPlain(logp, target, options)) return ops.nllLossRows(logp, target, reductionOf(options))
    const { weight, ignoreIndex = IGNORED, reduction } = settings<NllLossOptions<Tensor>>('nllLoss', options)
    const rows = asRows(ops, 'nllLoss', logp, target)
    return shaped(ops, pickedLoss(ops, 'nllLoss', rows.x, rows.target, weight, ignoreIndex, reduction, ops.nllLossRows), target, reduction)
  },
})

/**
 * Cross entropy of unnormalized logits [N, C], [C] or [N, C, d, …]. The target holds classes (int32 or whole numbers) [N], [] or [N, d, …], or probabilities in
 * the shape of the logits. Defaults: reduction 'mean', ignoreIndex −100, labelSmoothing 0. PyTorch: `torch.nn.functional.cross_entropy`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if a class is not a whole number; INDEX_OUT_OF_RANGE if a class is not from 0 to C−1
 * @example crossEntropy(tensor([[2, 0, 0], [0, 0, 3]]), tensor([0, 2])) // 0.1672
 */
export const crossEntropy: (logits: Tensor, target: Tensor, options?: LossArg<CrossEntropyOptions<Tensor>>) => Tensor = composite(
  'crossEntropy',
  {
    args: ['tensor', 'tensor', 'named or options?'],
    options: { reduction: true, weight: true, ignoreIndex: true, labelSmoothing: true },
    of: (ops) => (logits, named, options) => {
      const target = isProbabilities(logits, named) ? named : classesOf('crossEntropy', logits, named)
      if (isPlain(logits, target, options)) return ops.crossEntropyRows(logits, target, reductionOf(options))
      const given = settings<CrossEntropyOptions<Tensor>>('crossEntropy', options)
      const { weight, ignoreIndex = IGNORED, labelSmoothing = 0, reduction } = given
      if (!(labelSmoothing >= 0 && labelSmoothing <= 1)) throw invalidArgument('crossEntropy', 'labelSmoothing from 0 to 1', labelSmoothing)
      if (isFloating(target.dtype)) return ofProbabilities(ops, logits, target, weight, labelSmoothing, reduction)
      const { x, target: classes } = asRows(ops, 'crossEntropy', logits, target)
      if (labelSmoothing === 0) {
        const loss = pickedLoss(ops, 'crossEntropy', x, classes, weight, ignoreIndex, reduction, ops.crossEntropyRows)
        return shaped(ops, loss, target, reduction)
      }
      const logp = ops.logSoftmax(x, 1)
      const picked = pickedLoss(ops, 'crossEntropy', logp, classes, weight, ignoreIndex, reduction, ops.nllLossRows)
      const ignored = ops.eq(classes, ignoreIndex)
      const spread = ops.where(ignored, 0, ops.neg(ops.sum(weight == null ? logp : ops.mul(logp, weight), 1)))
      const each = reduction === 'none' ? spread : ops.sum(spread)
      const smooth = reduction === 'mean' ? ops.div(each, ops.sum(rowWeights(ops, classes, ignored, weight, logp))) : each
      const loss = ops.add(ops.mul(picked, 1 - labelSmoothing), ops.mul(smooth, labelSmoothing / x.shape[1]!))
      return shaped(ops, loss, target, reduction)
    },
  },
)

/** PyTorch's default. */
const IGNORED = -100

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
  const x = rawDetach(given)
  if (x.numel === 0) return
  if (!isReadable(x)) reportIf(rawOperations.amax(wrong(x)), invalidArgument(op, expected, 'others', remedy))
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

/** The target as int32, after the check of its shape. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, as wholeIndices */
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

function reduce(ops: Ops, each: Tensor, reduction: Reduction): Tensor {
  return reduction === 'none' ? each : ops[reduction](each)
}

function weighted(ops: Ops, each: Tensor, weight: Tensor | null | undefined): Tensor {
  return weight == null ? each : ops.mul(each, weight)
}

function pairwise(
  ops: Ops,
  op: string,
  input: Tensor,
  target: Tensor,
  options: LossArg<LossOptions> | undefined,
  of: (difference: Tensor) => Tensor,
): Tensor {
  checkShapes(op, input, target)
  const { reduction } = settings(op, options)
  const difference = ops.sub(input, target)
  if (reduction === 'mean') floatingOnly(op, difference)
  return reduce(ops, of(difference), reduction)
}

function xlogx(ops: Ops, x: Tensor): Tensor {
  const zero = ops.eq(x, 0)
  return ops.mul(x, ops.log(ops.where(zero, 1, x)))
}

function within(ops: Ops, d: Tensor, size: Tensor, bound: number): { readonly near: Tensor; readonly small: Tensor } {
  const near = ops.logicalNot(ops.ge(size, bound))
  return { near, small: ops.where(near, d, 0) }
}

function asRows(ops: Ops, op: string, x: Tensor, target: Tensor): { x: Tensor; target: Tensor } {
  checkClassShapes(op, x, target)
  if (x.ndim === 2) return { x, target }
  if (x.ndim === 1) return { x: ops.unsqueeze(x, 0), target: ops.reshape(target, [1]) }
  const classes = x.shape[1]!
  const last = ops.permute(x, [0, ...x.shape.slice(2).map((_, i) => i + 2), 1])
  return { x: ops.reshape(last, [target.numel, classes]), target: ops.reshape(target, [target.numel]) }
}

function shaped(ops: Ops, loss: Tensor, target: Tensor, reduction: Reduction): Tensor {
  return reduction === 'none' ? ops.reshape(loss, target.shape) : loss
}

function rowWeights(ops: Ops, target: Tensor, ignored: Tensor, weight: Tensor | null | undefined, like: Tensor): Tensor {
  if (weight == null) return ops.to(ops.logicalNot(ignored), like.dtype)
  const safe = ops.where(ignored, 0, target)
  return ops.where(ignored, 0, ops.reshape(ops.embedding(ops.reshape(weight, [weight.numel, 1]), safe), target.shape))
}

function pickedLoss(
  ops: Ops,
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
  const without = ignored ?? ops.eq(target, ignoreIndex)
  const weights = rowWeights(ops, target, without, weight, x)
  const losses = ops.where(without, 0, ops.mul(each(x, ops.where(without, 0, target), 'none'), weights))
  return reduction === 'mean' ? ops.div(ops.sum(losses), ops.sum(weights)) : reduce(ops, losses, reduction)
}

function ofProbabilities(
  ops: Ops,
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
  const each = ops.neg(ops.sum(weighted(ops, ops.mul(ops.logSoftmax(logits, dim), smoothed), column), dim))
  return reduce(ops, each, reduction)
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
