/**
 * The public operations: every raw operation joined with its row of derivatives. Names, arguments and semantics are PyTorch's, listed with their
 * shapes in `tensor/src/ops.ts`. Comparisons, argmax and detach have no gradient and are the raw functions themselves.
 */
import type { DivOptions, Tensor } from '@postgrad/tensor'
import { type PrimitiveOps, raw, rawOperations, roundedDivision, withComposites } from '@postgrad/tensor/internal'
import { composedDerivatives } from './composed.js'
import { binary, lists, lookup, unary, where as whereRows } from './derivatives.js'
import type { TensorOps } from './formula.js'
import { inPlace, overwriting } from './in-place.js'
import { indexingFunctions } from './indexing/functions.js'
import { neuralFunctions } from './neural/functions.js'
import { recordAttributed, recordBinary, recordList, recordLookup, recordUnary, recordWhere } from './record.js'

/** For formulas under createGraph; late, since it is made of what follows. */
const recorded = (): TensorOps => operations

export const neg = recordUnary('neg', raw.neg, unary.neg, recorded)
export const exp = recordUnary('exp', raw.exp, unary.exp, recorded)
export const log = recordUnary('log', raw.log, unary.log, recorded)
export const sqrt = recordUnary('sqrt', raw.sqrt, unary.sqrt, recorded)
export const sin = recordUnary('sin', raw.sin, unary.sin, recorded)
export const cos = recordUnary('cos', raw.cos, unary.cos, recorded)
export const tanh = recordUnary('tanh', raw.tanh, unary.tanh, recorded)
export const sigmoid = recordUnary('sigmoid', raw.sigmoid, unary.sigmoid, recorded)
export const relu = recordUnary('relu', raw.relu, unary.relu, recorded)
export const abs = recordUnary('abs', raw.abs, unary.abs, recorded)
export const sign = recordUnary('sign', raw.sign, unary.sign, recorded)
export const clone = recordUnary('clone', raw.clone, unary.clone, recorded)
export const contiguous = recordUnary('contiguous', raw.contiguous, unary.contiguous, recorded)
export const to = recordAttributed('to', raw.to, unary.to, recorded)
const powNumber = recordAttributed('pow', raw.pow as (x: Tensor, exponent: number) => Tensor, unary.pow, recorded)
export const clamp = recordAttributed('clamp', raw.clamp, unary.clamp, recorded)

export const floor = recordUnary('floor', raw.floor, unary.floor, recorded)
export const ceil = recordUnary('ceil', raw.ceil, unary.ceil, recorded)
export const round = recordUnary('round', raw.round, unary.round, recorded)
export const trunc = recordUnary('trunc', raw.trunc, unary.trunc, recorded)
export const reciprocal = recordUnary('reciprocal', raw.reciprocal, unary.reciprocal, recorded)
export const rsqrt = recordUnary('rsqrt', raw.rsqrt, unary.rsqrt, recorded)
export const square = recordUnary('square', raw.square, unary.square, recorded)
export const log1p = recordUnary('log1p', raw.log1p, unary.log1p, recorded)
export const expm1 = recordUnary('expm1', raw.expm1, unary.expm1, recorded)
export const log2 = recordUnary('log2', raw.log2, unary.log2, recorded)
export const log10 = recordUnary('log10', raw.log10, unary.log10, recorded)
export const exp2 = recordUnary('exp2', raw.exp2, unary.exp2, recorded)
export const tan = recordUnary('tan', raw.tan, unary.tan, recorded)
export const sinh = recordUnary('sinh', raw.sinh, unary.sinh, recorded)
export const cosh = recordUnary('cosh', raw.cosh, unary.cosh, recorded)
export const asin = recordUnary('asin', raw.asin, unary.asin, recorded)
export const acos = recordUnary('acos', raw.acos, unary.acos, recorded)
export const atan = recordUnary('atan', raw.atan, unary.atan, recorded)
export const erf = recordUnary('erf', raw.erf, unary.erf, recorded)
export const silu = recordUnary('silu', raw.silu, unary.silu, recorded)
export const leakyRelu = recordAttributed('leakyRelu', raw.leakyRelu, unary.leakyRelu, recorded)
export const gelu = recordAttributed('gelu', raw.gelu, unary.gelu, recorded)
export const softplus = recordAttributed('softplus', raw.softplus, unary.softplus, recorded)
export const elu = recordAttributed('elu', raw.elu, unary.elu, recorded)

export const add = recordBinary('add', raw.add, binary.add, recorded)
export const sub = recordBinary('sub', raw.sub, binary.sub, recorded)
export const mul = recordBinary('mul', raw.mul, binary.mul, recorded)
const trueDivision = recordBinary<Operand>('div', raw.div, binary.div, recorded)
export function div(a: Operand, b: Operand, options?: DivOptions): Tensor {
  return options === undefined ? trueDivision(a, b) : roundedDivision({ div: trueDivision, floorDivide, trunc, to }, a, b, options)
}
const powTensor = recordBinary<Operand>('pow', raw.pow, binary.pow, recorded)
export function pow(a: Operand, b: Operand): Tensor {
  return typeof a === 'object' && typeof b === 'number' ? powNumber(a, b) : powTensor(a, b)
}
export const floorDivide = recordBinary<Operand>('floorDivide', raw.floorDivide, binary.floorDivide, recorded)
export const remainder = recordBinary<Operand>('remainder', raw.remainder, binary.remainder, recorded)
export const fmod = recordBinary<Operand>('fmod', raw.fmod, binary.fmod, recorded)
export const atan2 = recordBinary<Tensor>('atan2', raw.atan2, binary.atan2, recorded)
export const maximum = recordBinary('maximum', raw.maximum, binary.maximum, recorded)
export const minimum = recordBinary('minimum', raw.minimum, binary.minimum, recorded)
export const matmul = recordBinary<Tensor>('matmul', raw.matmul, binary.matmul, recorded)
export const bmm = recordBinary<Tensor>('bmm', raw.bmm, binary.bmm, recorded)

export const { eq, ne, lt, le, gt, ge, argmax, argmin, argsort, detach, bitwiseAnd, bitwiseOr, bitwiseXor } = raw

export const sum = recordAttributed('sum', raw.sum, unary.sum, recorded)
export const mean = recordAttributed('mean', raw.mean, unary.mean, recorded)
export const amax = recordAttributed('amax', raw.amax, unary.amax, recorded)
export const prod = recordAttributed('prod', raw.prod, unary.prod, recorded)
export const amin = recordAttributed('amin', raw.amin, unary.amin, recorded)
const variance = recordAttributed('var', raw.var, unary.var, recorded)
export const std = recordAttributed('std', raw.std, unary.std, recorded)
export const logSumExp = recordAttributed('logSumExp', raw.logSumExp, unary.logSumExp, recorded)
export const norm = recordAttributed('norm', raw.norm, unary.norm, recorded)
export const cumsum = recordAttributed('cumsum', raw.cumsum, unary.cumsum, recorded)
export const cumprod = recordAttributed('cumprod', raw.cumprod, unary.cumprod, recorded)
const reverseCumsum = recordAttributed('reverseCumsum', raw.reverseCumsum, unary.reverseCumsum, recorded)

export const view = recordAttributed('view', raw.view, unary.view, recorded)
export const reshape = recordAttributed('reshape', raw.reshape, unary.reshape, recorded)
export const transpose = recordAttributed('transpose', raw.transpose, unary.transpose, recorded)
export const permute = recordAttributed('permute', raw.permute, unary.permute, recorded)
export const expand = recordAttributed('expand', raw.expand, unary.expand, recorded)
export const squeeze = recordAttributed('squeeze', raw.squeeze, unary.squeeze, recorded)
export const unsqueeze = recordAttributed('unsqueeze', raw.unsqueeze, unary.unsqueeze, recorded)
export const everyNth = recordAttributed('everyNth', raw.everyNth, unary.everyNth, recorded)
export const diagonal = recordAttributed('diagonal', raw.diagonal, unary.diagonal, recorded)
export const narrow = recordAttributed('narrow', raw.narrow, unary.narrow, recorded)
export const select = recordAttributed('select', raw.select, unary.select, recorded)

export const cat = recordList('cat', raw.cat, lists.cat, recorded)
export const stack = recordList('stack', raw.stack, lists.stack, recorded)

export const where = recordWhere('where', raw.where, whereRows.where, recorded)
const plainEmbedding = recordLookup('embedding', raw.embedding, lookup.embedding, recorded)
export const embeddingBackward = recordLookup('embeddingBackward', raw.embeddingBackward, lookup.embeddingBackward, recorded)

export const softmax = recordAttributed('softmax', raw.softmax, unary.softmax, recorded)
export const logSoftmax = recordAttributed('logSoftmax', raw.logSoftmax, unary.logSoftmax, recorded)
const plainNllLoss = recordLookup('nllLoss', raw.nllLoss, lookup.nllLoss, recorded)
const plainCrossEntropy = recordLookup('crossEntropy', raw.crossEntropy, lookup.crossEntropy, recorded)

type Operand = Tensor | number
/** alpha · y, for the operations that have an alpha. */
const scaled = (y: Operand, alpha: number): Operand => (alpha === 1 ? y : typeof y === 'number' ? y * alpha : mul(y, alpha))

export const add_ = inPlace('add_', raw.add_, (x: Tensor, y: Operand, alpha = 1) => add(x, scaled(y, alpha)))
export const sub_ = inPlace('sub_', raw.sub_, (x: Tensor, y: Operand, alpha = 1) => sub(x, scaled(y, alpha)))
export const mul_ = inPlace<[y: Operand]>('mul_', raw.mul_, mul)
export const div_ = inPlace<[y: Operand]>('div_', raw.div_, div)
export const { copy_, fill_, zero_ } = overwriting(recorded)

/** By name. A missing one does not compile. */
const primitives: PrimitiveOps<Tensor> = {
  ...{ neg, exp, log, sqrt, sin, cos, tanh, sigmoid, relu, abs, sign, clone, contiguous, to, pow, clamp },
  ...{ floor, ceil, round, trunc, reciprocal, rsqrt, square, log1p, expm1, log2, log10, exp2 },
  ...{ tan, sinh, cosh, asin, acos, atan, erf, leakyRelu, gelu, silu, softplus, elu },
  ...{ add, sub, mul, div, maximum, minimum, eq, ne, lt, le, gt, ge, sum, mean, amax, argmax, matmul, bmm },
  ...{ view, reshape, transpose, permute, expand, squeeze, unsqueeze, narrow, everyNth, diagonal, select, cat, stack },
  ...{ where, embedding: plainEmbedding, embeddingBackward, softmax, logSoftmax, nllLoss: plainNllLoss, crossEntropy: plainCrossEntropy },
  ...{ add_, sub_, mul_, div_, copy_, fill_, zero_ },
  ...{ prod, amin, argmin, argsort, var: variance, std, logSumExp, norm, cumsum, cumprod, reverseCumsum },
  ...{ floorDivide, remainder, fmod, atan2, bitwiseAnd, bitwiseOr, bitwiseXor },
  ...composedDerivatives(recorded),
  ...indexingFunctions(recorded),
  ...neuralFunctions(recorded),
}

/** These, what is composed of them, and the in-place forms: what tensors' methods call, and derivatives under createGraph. */
export const operations: TensorOps = withComposites(primitives, (op, compute) =>
  inPlace(op, rawOperations[op] as unknown as typeof compute, compute),
)

export const { flatten, split, slice, chunk, unbind, tensorSplit, unflatten, ravel, movedim, swapaxes } = operations
export const { broadcastTo, broadcastTensors, diag, diagEmbed, repeatInterleave, roll, flip, tile, pad, meshgrid, hstack, vstack } =
  operations
export const { indexSelect, gather, indexAdd, scatterAdd, scatter, nonzero, oneHot } = operations
export const { dot, outer, mv, mm, addmm, baddbmm, tensordot, einsum, trace, cosineSimilarity, pairwiseDistance } = operations
export const { take, takeAlongDim, indexFill, maskedFill, maskedSelect, tril, triu } = operations
export const { linear, conv1d, conv2d, convTranspose1d, convTranspose2d } = operations
export const { lerp, addcmul, addcdiv, bitwiseNot, isclose, allclose, equal } = operations
export const { max, min, sort, topk } = operations
export const { varMean, any, all, countNonzero } = operations
export const { mseLoss, l1Loss, smoothL1Loss, huberLoss, bceLoss, bceWithLogits, klDiv, gaussianNllLoss, nllLoss, crossEntropy } =
  operations
export const { dropout, scaledDotProductAttention, embedding, embeddingBag } = operations
export const { maxPool1d, maxPool2d, maxPool2dWithIndices, avgPool1d, avgPool2d, adaptiveAvgPool1d, adaptiveAvgPool2d } = operations
export const { layerNorm, batchNorm, groupNorm, instanceNorm } = operations
export const { hardtanh, relu6, logSigmoid, mish, softsign, tanhshrink } = operations
// Names of globals, since they are PyTorch's.
// biome-ignore lint/suspicious/noShadowRestrictedNames: as above.
export const { isNaN, isInf, isFinite, nanToNum, logicalNot, logicalAnd, logicalOr, logicalXor } = operations

export { variance as var }
