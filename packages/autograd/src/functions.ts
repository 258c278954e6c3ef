/**
 * The public operations, each behind the check of its arguments. Names, arguments and semantics are PyTorch's, listed with their shapes in
 * `tensor/src/ops.ts`. Below: `operations.ts`, which records.
 */
import type { Tensor } from '@postgrad/tensor'
import { checkedOperation, checkedOperations, raw } from '@postgrad/tensor/internal'
import type { TensorOps } from './formula.js'
import { operations as recorded } from './operations.js'

/** By name: what tensors' methods call. */
export const operations: TensorOps = checkedOperations(recorded)

export const { abs, acos, adaptiveAvgPool1d, adaptiveAvgPool2d, add, add_, addcdiv, addcmul, addmm, all, allclose, amax, amin } = operations
export const { any, argmax, argmin, argsort, asin, atan, atan2, avgPool1d, avgPool2d, baddbmm, batchNorm, bceLoss } = operations
export const { bceWithLogits, bitwiseAnd, bitwiseNot, bitwiseOr, bitwiseXor, bmm, broadcastTensors, broadcastTo, cat, ceil } = operations
export const { chunk, clamp, clone, contiguous, conv1d, conv2d, convTranspose1d, convTranspose2d, copy_, cos, cosh } = operations
export const { cosineSimilarity, countNonzero, crossEntropy, cumprod, cumsum, diag, diagEmbed, diagonal, div, div_, dot } = operations
export const { dropout, einsum, elu, embedding, embeddingBag, eq, equal, erf, exp, exp2, expand, expm1, fill_, flatten, flip } = operations
export const { floor, floorDivide, fmod, gather, gaussianNllLoss, ge, gelu, groupNorm, gt, hardtanh, hstack, huberLoss } = operations
export const { indexAdd, indexFill, indexSelect, instanceNorm, isclose, klDiv, l1Loss, layerNorm, le, leakyRelu, lerp, linear } = operations
export const { log, log1p, log2, log10, logicalAnd, logicalNot, logicalOr, logicalXor, logSigmoid, logSoftmax, logSumExp, lt } = operations
export const { maskedFill, maskedSelect, matmul, max, maximum, maxPool1d, maxPool2d, maxPool2dWithIndices, mean, meshgrid } = operations
export const { min, minimum, mish, mm, movedim, mseLoss, mul, mul_, mv, nanToNum, narrow, ne, neg, nllLoss, nonzero, norm } = operations
export const { oneHot, outer, pad, pairwiseDistance, permute, pow, prod, ravel, reciprocal, relu, relu6, remainder } = operations
export const { repeatInterleave, reshape, roll, round, rsqrt, scaledDotProductAttention, scatter, scatterAdd, select, sigmoid } = operations
export const { sign, silu, sin, sinh, slice, smoothL1Loss, softmax, softplus, softsign, sort, split, sqrt, square, squeeze } = operations
export const { stack, std, sub, sub_, sum, swapaxes, take, takeAlongDim, tan, tanh, tanhshrink, tensordot, tensorSplit, tile } = operations
export const { to, topk, trace, transpose, tril, triu, trunc, unbind, unflatten, unsqueeze, varMean, view, vstack, where } = operations
export const { zero_ } = operations
export const { index, indexPut, repeat } = operations
export const { var: variance } = operations
// Names of globals, since they are PyTorch's.
// biome-ignore lint/suspicious/noShadowRestrictedNames: as above.
export const { isNaN, isInf, isFinite } = operations
/** Has no gradient, so it is the raw one. */
export const detach: (x: Tensor) => Tensor = checkedOperation('detach', raw.detach, ['tensor'])

export { variance as var }
