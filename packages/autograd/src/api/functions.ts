/**
 * The public operations, each behind the check of its arguments. Names, arguments and semantics are PyTorch's, listed with their shapes in
 * `tensor/src/ops/ops.ts`. Below: `operations.ts`, which records.
 */
import type { DType, Tensor } from '@postgrad/tensor'
import { checkedOperation, checkedOperations, raw, type Target } from '@postgrad/tensor/internal'
import type { TensorOps } from '../graph/formula.js'
import { operations as recorded } from './operations.js'

/** By name: what tensors' methods call. */
export const operations: TensorOps = checkedOperations(recorded)

// One by one, so that an editor shows what each is about.

/** The absolute value of each element; int32 stays, bool is refused. PyTorch: `torch.abs`. @throws DTYPE_MISMATCH */
export const abs = operations.abs
/** The arc cosine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.acos`. */
export const acos = operations.acos
/**
 * Means over `outputSize` windows of (nearly) equal size: [N, C, L] or [C, L] → […, outputSize]. PyTorch:
 * `torch.nn.functional.adaptive_avg_pool1d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const adaptiveAvgPool1d = operations.adaptiveAvgPool1d
/**
 * Means over oH × oW windows of (nearly) equal size: [N, C, H, W] or [C, H, W] → […, oH, oW]. `outputSize` is one number or [oH, oW]. PyTorch:
 * `torch.nn.functional.adaptive_avg_pool2d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const adaptiveAvgPool2d = operations.adaptiveAvgPool2d
/**
 * The sum of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.add`. @throws SHAPE_MISMATCH
 * @example const y = add(x, 1)
 */
export const add = operations.add
/**
 * Adds alpha · y (alpha: default 1) to the tensor in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.add_`. @throws
 * SHAPE_MISMATCH, INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF
 */
export const add_ = operations.add_
/** x + value · a / b, with value 1 by default; the three broadcast. PyTorch: `torch.addcdiv`. @throws SHAPE_MISMATCH */
export const addcdiv = operations.addcdiv
/** x + value · a · b, with value 1 by default; the three broadcast. PyTorch: `torch.addcmul`. @throws SHAPE_MISMATCH */
export const addcmul = operations.addcmul
/**
 * beta · x + alpha · (a b), both factors 1 by default: a [m, k], b [k, n], x broadcasts to [m, n]. With beta 0, NaN in x does not count. PyTorch:
 * `torch.addmm`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const addmm = operations.addmm
/**
 * Whether no element is 0, as bool: over all, or over `dims` (`keepdim`: default false). Over nothing: true. PyTorch: `torch.all`. @throws
 * DIM_OUT_OF_RANGE
 */
export const all = operations.all
/**
 * Whether |a − b| ≤ atol + rtol |b| everywhere; rtol 1e-5, atol 1e-8, NaN is close to nothing by default. Shapes broadcast. Reads at once, as
 * `itemSync` does. PyTorch: `torch.allclose`.
 */
export const allclose = operations.allclose
/**
 * The largest element over all or over `dims` (`keepdim`: default false); NaN is the largest. The gradient is shared equally by equals. PyTorch:
 * `torch.amax`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const amax = operations.amax
/**
 * The smallest element over all or over `dims` (`keepdim`: default false); NaN counts as the smallest. The gradient is shared equally by equals.
 * PyTorch: `torch.amin`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const amin = operations.amin
/**
 * Whether one element is not 0, as bool: over all, or over `dims` (`keepdim`: default false). NaN is not 0. Over nothing: false. PyTorch:
 * `torch.any`. @throws DIM_OUT_OF_RANGE
 */
export const any = operations.any
/**
 * int32: the index of the first of the largest elements, along `dim` or, left out, as if flattened. No gradient. PyTorch: `torch.argmax`. @throws
 * REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const argmax = operations.argmax
/**
 * int32: the index of the first of the smallest elements, along `dim` or, left out, as if flattened. No gradient. PyTorch: `torch.argmin`. @throws
 * REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const argmin = operations.argmin
/**
 * int32: the indices that sort along `dim` (default −1, the last), ascending unless `descending`. Equals keep their order, NaN is the greatest.
 * PyTorch: `torch.argsort`. @throws DIM_OUT_OF_RANGE
 */
export const argsort = operations.argsort
/** The arc sine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.asin`. */
export const asin = operations.asin
/** The arc tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.atan`. */
export const atan = operations.atan
/**
 * The angle of the point (b, a), from −π to π, element by element; the signs of both decide. Shapes broadcast, integers become float32. PyTorch:
 * `torch.atan2`. @throws SHAPE_MISMATCH
 */
export const atan2 = operations.atan2
/**
 * Means of windows: [N, C, L] or [C, L] → […, oL]. Defaults: stride = kernelSize, padding 0, which counts as zeros. PyTorch:
 * `torch.nn.functional.avg_pool1d`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const avgPool1d = operations.avgPool1d
/**
 * Means of windows: [N, C, H, W] or [C, H, W] → […, oH, oW]. Defaults: stride = kernelSize, padding 0, which counts as zeros. PyTorch:
 * `torch.nn.functional.avg_pool2d`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const avgPool2d = operations.avgPool2d
/**
 * beta · x + alpha · (a b) for each of a batch, both factors 1 by default: a [b, m, k], b [b, k, n], x broadcasts to [b, m, n]. PyTorch:
 * `torch.baddbmm`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const baddbmm = operations.baddbmm
/**
 * Normalizes each channel of x [N, C, …]; statistics, weight and bias are [C]. In training (default false) by the batch's own statistics, which go
 * into the running ones in place with momentum 0.1; eps is 1e-5. PyTorch: `torch.nn.functional.batch_norm`. @throws SHAPE_MISMATCH,
 * INVALID_ARGUMENT
 */
export const batchNorm = operations.batchNorm
/**
 * Binary cross entropy of probabilities in [0, 1]; logarithms are cut off at −100. Input and target have one shape; `reduction` is 'mean' by
 * default. PyTorch: `torch.nn.functional.binary_cross_entropy`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const bceLoss = operations.bceLoss
/**
 * Binary cross entropy of σ(logits), without overflow. Both have one shape; `reduction` is 'mean' by default, `posWeight` weighs the positives.
 * PyTorch: `torch.nn.functional.binary_cross_entropy_with_logits`. @throws SHAPE_MISMATCH
 */
export const bceWithLogits = operations.bceWithLogits
/** The bits that both have, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_and`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH */
export const bitwiseAnd = operations.bitwiseAnd
/** All bits the other way round; of bool: not. int32 and bool alone. PyTorch: `torch.bitwise_not`. @throws DTYPE_MISMATCH */
export const bitwiseNot = operations.bitwiseNot
/**
 * The bits that one of the two has, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_or`. @throws DTYPE_MISMATCH,
 * SHAPE_MISMATCH
 */
export const bitwiseOr = operations.bitwiseOr
/**
 * The bits that exactly one of the two has, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_xor`. @throws
 * DTYPE_MISMATCH, SHAPE_MISMATCH
 */
export const bitwiseXor = operations.bitwiseXor
/**
 * Matrix products of a batch: [b, m, k] · [b, k, n] → [b, m, n]. Nothing broadcasts: `matmul` does. PyTorch: `torch.bmm`. @throws SHAPE_MISMATCH,
 * DTYPE_MISMATCH
 */
export const bmm = operations.bmm
/** The tensors expanded to one shape, as views. PyTorch: `torch.broadcast_tensors`. @throws SHAPE_MISMATCH */
export const broadcastTensors = operations.broadcastTensors
/** The tensor expanded to a shape, as a view. PyTorch: `torch.broadcast_to`. @throws SHAPE_MISMATCH */
export const broadcastTo = operations.broadcastTo
/**
 * Tensors joined along `dim` (default 0); all other extents are equal, dtypes promote. PyTorch: `torch.cat`. @throws SHAPE_MISMATCH,
 * DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 * @example const y = cat([x, x], 1)
 */
export const cat = operations.cat
/** The next integer above each element; int32 stays. PyTorch: `torch.ceil`. @throws DTYPE_MISMATCH for bool */
export const ceil = operations.ceil
/**
 * At most `count` views of equal size along `dim` (default 0); the last may be shorter. PyTorch: `torch.chunk`. @throws INVALID_ARGUMENT,
 * DIM_OUT_OF_RANGE
 */
export const chunk = operations.chunk
/**
 * Each element kept within [min, max]; null or undefined is no bound, one is needed. The gradient at a bound is 1. PyTorch: `torch.clamp`. @throws
 * INVALID_ARGUMENT
 */
export const clamp = operations.clamp
/** A contiguous copy with a gradient of its own way back. PyTorch: `torch.clone`. */
export const clone = operations.clone
/** The tensor itself where its elements lie in row-major order, else a copy in which they do. PyTorch: `Tensor.contiguous`. */
export const contiguous = operations.contiguous
/**
 * Convolution: x [N, C, L] or [C, L], weight [O, C / groups, k], bias [O] → [N, O, oL] or [O, oL]. Defaults: stride 1, padding 0, dilation 1,
 * groups 1; padding may be 'same' or 'valid'. PyTorch: `torch.nn.functional.conv1d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INVALID_ARGUMENT
 */
export const conv1d = operations.conv1d
/**
 * Convolution: x [N, C, H, W] or [C, H, W], weight [O, C / groups, kH, kW], bias [O] → [N, O, oH, oW] or [O, oH, oW]. Defaults: stride 1, padding
 * 0, dilation 1, groups 1; padding may be 'same' or 'valid'. PyTorch: `torch.nn.functional.conv2d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH,
 * INVALID_ARGUMENT
 */
export const conv2d = operations.conv2d
/**
 * Transposed convolution, the gradient of conv1d for its input: x [N, C, L] or [C, L], weight [C, O / groups, k], bias [O] → [N, O, oL] or [O, oL].
 * PyTorch: `torch.nn.functional.conv_transpose1d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INVALID_ARGUMENT
 */
export const convTranspose1d = operations.convTranspose1d
/**
 * Transposed convolution, the gradient of conv2d for its input: x [N, C, H, W] or [C, H, W], weight [C, O / groups, kH, kW], bias [O] → [N, O, oH,
 * oW] or [O, oH, oW]. PyTorch: `torch.nn.functional.conv_transpose2d`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INVALID_ARGUMENT
 */
export const convTranspose2d = operations.convTranspose2d
/**
 * Writes src, broadcast and converted to the tensor's dtype, over its elements and returns it. PyTorch: `Tensor.copy_`. @throws SHAPE_MISMATCH,
 * INPLACE_OVERLAP, INPLACE_ON_LEAF
 */
export const copy_ = operations.copy_
/** The cosine of each element, in radians. int32 and bool become float32. PyTorch: `torch.cos`. */
export const cos = operations.cos
/** The hyperbolic cosine of each element. int32 and bool become float32. PyTorch: `torch.cosh`. */
export const cosh = operations.cosh
/**
 * Σ ab / (|a| |b|) along `dim` (default 1), with norms of at least `eps` (1e-8); a and b broadcast. PyTorch:
 * `torch.nn.functional.cosine_similarity`. @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE
 */
export const cosineSimilarity = operations.cosineSimilarity
/** int32: how many elements are not 0, of all or over `dims`. No gradient. PyTorch: `torch.count_nonzero`. @throws DIM_OUT_OF_RANGE */
export const countNonzero = operations.countNonzero
/**
 * Cross entropy of unnormalized logits [N, C], [C] or [N, C, d, …]. The target holds class indices (int32, or whole numbers; [N], [] or [N, d, …]) or probabilities of
 * the logits' shape. Defaults: reduction 'mean', ignoreIndex −100, labelSmoothing 0. PyTorch: `torch.nn.functional.cross_entropy`. @throws
 * SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
 * @example const loss = crossEntropy(randn([2, 3]), tensor([0, 2], { dtype: 'int32' }))
 */
export const crossEntropy = operations.crossEntropy
/** Element i is the product of the elements 0 … i along `dim`; int32 and bool multiply to int32. PyTorch: `torch.cumprod`. @throws DIM_OUT_OF_RANGE */
export const cumprod = operations.cumprod
/** Element i is the sum of the elements 0 … i along `dim`; int32 and bool sum to int32. PyTorch: `torch.cumsum`. @throws DIM_OUT_OF_RANGE */
export const cumsum = operations.cumsum
/** Of a vector the matrix that has it on diagonal number `diagonal` (default 0), of a matrix that diagonal. PyTorch: `torch.diag`. @throws SHAPE_MISMATCH */
export const diag = operations.diag
/**
 * The last dimension as the diagonal of planes dim1 × dim2 (default −2, −1), shifted by `offset` (0), zeros elsewhere. PyTorch: `torch.diag_embed`.
 * @throws DIM_OUT_OF_RANGE
 */
export const diagEmbed = operations.diagEmbed
/**
 * A view of the diagonal of planes dim1 × dim2 (default 0, 1), shifted by `offset` (0), as the last dimension. PyTorch: `torch.diagonal`. @throws
 * DIM_OUT_OF_RANGE
 */
export const diagonal = operations.diagonal
/**
 * The quotient of each two elements: of integers too it is float32, unless `roundingMode` is 'floor' or 'trunc'. Shapes broadcast, one of the two
 * may be a number. PyTorch: `torch.div`. @throws SHAPE_MISMATCH
 */
export const div = operations.div
/**
 * Divides the tensor by y in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.div_`. @throws SHAPE_MISMATCH, INPLACE_DTYPE for
 * integers, INPLACE_OVERLAP, INPLACE_ON_LEAF
 */
export const div_ = operations.div_
/** Σ ab of two vectors: [k], [k] → []. PyTorch: `torch.dot`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export const dot = operations.dot
/**
 * Each element 0 with probability p (default 0.5), else x / (1 − p); with `training: false` the tensor itself. Random numbers are the scope's, or
 * those of `generator`. PyTorch: `torch.nn.functional.dropout`. @throws INVALID_ARGUMENT
 */
export const dropout = operations.dropout
/**
 * Sums of products by Einstein's convention: einsum('ij,jk->ik', a, b). Without '->' letters that come once are kept; '...' broadcasts; a letter
 * twice in one operand takes its diagonal. PyTorch: `torch.einsum`. @throws INVALID_ARGUMENT, SHAPE_MISMATCH
 */
export const einsum = operations.einsum
/** x where positive, else alpha (eˣ − 1); alpha is 1 by default. PyTorch: `torch.nn.functional.elu`. @throws DTYPE_MISMATCH */
export const elu = operations.elu
/**
 * Rows of a table: weight [V, D], indices (int32, or whole numbers) of any shape → […indices, D]. With `sparse` the weight's gradient is a SparseTensor. PyTorch:
 * `torch.nn.functional.embedding`. @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
 */
export const embedding = operations.embedding
/**
 * Sums, means (the default) or maxima of rows: weight [V, D], indices (int32, or whole numbers) [bags, length], or [n] with `offsets` → [bags, D]. A bag of nothing is
 * 0. PyTorch: `torch.nn.functional.embedding_bag`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const embeddingBag = operations.embeddingBag
/**
 * Whether each two elements are equal, as bool. Shapes broadcast, one of the two may be a number. NaN equals nothing. PyTorch: `torch.eq`. @throws
 * SHAPE_MISMATCH
 */
export const eq = operations.eq
/** Whether shapes and all elements are equal (NaN is not). Reads at once, as `itemSync` does. PyTorch: `torch.equal`. */
export const equal = operations.equal
/** The error function of each element. int32 and bool become float32. PyTorch: `torch.erf`. */
export const erf = operations.erf
/** eˣ of each element. int32 and bool become float32. PyTorch: `torch.exp`. */
export const exp = operations.exp
/** 2ˣ of each element. int32 and bool become float32. PyTorch: `torch.exp2`. */
export const exp2 = operations.exp2
/** A view in which extents of 1 are repeated to `shape`; −1 keeps an extent. PyTorch: `Tensor.expand`. @throws SHAPE_MISMATCH */
export const expand = operations.expand
/** eˣ − 1 of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.expm1`. */
export const expm1 = operations.expm1
/**
 * Writes one number or boolean into every element and returns the tensor. PyTorch: `Tensor.fill_`. @throws INVALID_ARGUMENT for what its dtype cannot hold,
 * INPLACE_ON_LEAF
 */
export const fill_ = operations.fill_
/**
 * Dimensions startDim … endDim (default all of them) as one; a view where it can be. A 0-d tensor becomes [1]. PyTorch: `torch.flatten`. @throws
 * DIM_OUT_OF_RANGE
 */
export const flatten = operations.flatten
/** A copy in which the named dimensions run backwards. PyTorch: `torch.flip`. @throws DIM_OUT_OF_RANGE */
export const flip = operations.flip
/** The next integer below each element; int32 stays. PyTorch: `torch.floor`. @throws DTYPE_MISMATCH for bool */
export const floor = operations.floor
/**
 * The quotient of each two elements, rounded towards −∞; integers stay integers, and by 0 give 0 (PyTorch throws). Shapes broadcast. PyTorch:
 * `torch.floor_divide`. @throws SHAPE_MISMATCH
 */
export const floorDivide = operations.floorDivide
/** The remainder of a / b with the sign of a; of integers by 0 it is 0 (PyTorch throws). Shapes broadcast. PyTorch: `torch.fmod`. @throws SHAPE_MISMATCH */
export const fmod = operations.fmod
/**
 * Elements picked along `dim`: out[i, j, k] = x[i, index[i, j, k], k] for dim 1. The result has the shape of `index` (int32 or whole numbers, none negative).
 * PyTorch: `torch.gather`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const gather = operations.gather
/**
 * Negative log likelihood of a normal distribution: ½ (log v + (input − target)² / v), with a variance of at least `eps` (1e-6). `full` adds ½ log
 * 2π; `reduction` is 'mean' by default. PyTorch: `torch.nn.functional.gaussian_nll_loss`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const gaussianNllLoss = operations.gaussianNllLoss
/** Whether a ≥ b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.ge`. @throws SHAPE_MISMATCH */
export const ge = operations.ge
/** x Φ(x), or its approximation by tanh with `approximate: 'tanh'`. PyTorch: `torch.nn.functional.gelu`. @throws DTYPE_MISMATCH */
export const gelu = operations.gelu
/**
 * Normalizes each image's groups of channels of x [N, C, …], whose number divides C; weight and bias [C], eps 1e-5. PyTorch:
 * `torch.nn.functional.group_norm`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const groupNorm = operations.groupNorm
/** Whether a > b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.gt`. @throws SHAPE_MISMATCH */
export const gt = operations.gt
/** Each element kept within its bounds (default −1 and 1); the gradient at a bound is 0, where clamp's is 1. PyTorch: `torch.nn.functional.hardtanh`. */
export const hardtanh = operations.hardtanh
/** Tensors joined along dimension 1, vectors along 0. PyTorch: `torch.hstack`. @throws SHAPE_MISMATCH */
export const hstack = operations.hstack
/**
 * ½ d² where |d| ≤ delta (default 1), else delta (|d| − ½ delta), of d = input − target. `reduction` is 'mean' by default. PyTorch:
 * `torch.nn.functional.huber_loss`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const huberLoss = operations.huberLoss
/**
 * A copy with src's slices added along `dim` at the places in `index` (int32 or whole numbers, [n]), in their order. PyTorch: `torch.index_add`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const indexAdd = operations.indexAdd
/**
 * A copy whose slices along `dim` at `index` (int32 or whole numbers, [n]) are a number, a boolean or a 0-d tensor. PyTorch: `torch.index_fill`. @throws INDEX_OUT_OF_RANGE,
 * DIM_OUT_OF_RANGE
 */
export const indexFill = operations.indexFill
/**
 * The slices along `dim` whose numbers are in `index` (int32 or whole numbers, [n], none negative): […, extent, …] → […, n, …]. PyTorch: `torch.index_select`.
 * @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
 */
export const indexSelect = operations.indexSelect
/**
 * Normalizes each channel of each image of x [N, C, …]; weight and bias [C], eps 1e-5. PyTorch: `torch.nn.functional.instance_norm`. @throws
 * SHAPE_MISMATCH
 */
export const instanceNorm = operations.instanceNorm
/** Whether |a − b| ≤ atol + rtol |b|, element by element, as bool; rtol 1e-5, atol 1e-8. PyTorch: `torch.isclose`. @throws SHAPE_MISMATCH */
export const isclose = operations.isclose
/**
 * Kullback-Leibler divergence: target · (log target − input), of log-probabilities and probabilities (with `logTarget` of two logarithms).
 * `reduction` is 'mean' by default; 'batchmean' is the mathematical one. PyTorch: `torch.nn.functional.kl_div`. @throws SHAPE_MISMATCH
 */
export const klDiv = operations.klDiv
/**
 * |input − target| of two tensors of one shape. The third argument is the reduction, 'mean' by default. PyTorch: `torch.nn.functional.l1_loss`.
 * @throws SHAPE_MISMATCH
 */
export const l1Loss = operations.l1Loss
/**
 * Normalizes over the last dimensions, whose shape is normalizedShape; weight and bias have that shape, eps is 1e-5. PyTorch:
 * `torch.nn.functional.layer_norm`. @throws SHAPE_MISMATCH
 */
export const layerNorm = operations.layerNorm
/** Whether a ≤ b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.le`. @throws SHAPE_MISMATCH */
export const le = operations.le
/** x where positive, else x · negativeSlope (default 0.01). PyTorch: `torch.nn.functional.leaky_relu`. */
export const leakyRelu = operations.leakyRelu
/** a + weight (b − a); the three broadcast, weight may be a number. PyTorch: `torch.lerp`. @throws SHAPE_MISMATCH */
export const lerp = operations.lerp
/** x · weightᵀ + bias: x […, in], weight [out, in], bias [out] → […, out]. PyTorch: `torch.nn.functional.linear`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export const linear = operations.linear
/** The natural logarithm of each element. int32 and bool become float32. PyTorch: `torch.log`. */
export const log = operations.log
/** log(1 + x) of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.log1p`. */
export const log1p = operations.log1p
/** The logarithm to base 2 of each element. int32 and bool become float32. PyTorch: `torch.log2`. */
export const log2 = operations.log2
/** The logarithm to base 10 of each element. int32 and bool become float32. PyTorch: `torch.log10`. */
export const log10 = operations.log10
/** Whether both are not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_and`. @throws SHAPE_MISMATCH */
export const logicalAnd = operations.logicalAnd
/** Whether each element is 0, as bool. PyTorch: `torch.logical_not`. */
export const logicalNot = operations.logicalNot
/** Whether one of both is not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_or`. @throws SHAPE_MISMATCH */
export const logicalOr = operations.logicalOr
/** Whether exactly one of both is not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_xor`. @throws SHAPE_MISMATCH */
export const logicalXor = operations.logicalXor
/** log σ(x), without overflow. PyTorch: `torch.nn.functional.logsigmoid`. @throws DTYPE_MISMATCH */
export const logSigmoid = operations.logSigmoid
/** log of softmax along `dim`, without overflow. PyTorch: `torch.nn.functional.log_softmax`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
export const logSoftmax = operations.logSoftmax
/** log Σ eˣ over all or over `dims`, without overflow. PyTorch: `torch.logsumexp`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
export const logSumExp = operations.logSumExp
/** Whether a < b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.lt`. @throws SHAPE_MISMATCH */
export const lt = operations.lt
/**
 * A copy with a number, a boolean or a 0-d tensor where mask (bool) is true; both broadcast, the dtype stays. PyTorch: `torch.masked_fill`. @throws
 * DTYPE_MISMATCH, SHAPE_MISMATCH
 */
export const maskedFill = operations.maskedFill
/** The elements where mask (bool) is true, as [count]; both broadcast. PyTorch: `torch.masked_select`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH */
export const maskedSelect = operations.maskedSelect
/**
 * Matrix product: [k]·[k] → [], [m, k]·[k] → [m], [m, k]·[k, n] → [m, n], with leading batch dimensions that broadcast. Both have one dtype.
 * PyTorch: `torch.matmul`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 * @example const y = matmul(x, x.T)
 */
export const matmul = operations.matmul
/**
 * The largest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the largest, which gets the
 * gradient. NaN is the largest. PyTorch: `torch.max`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const max = operations.max
/** The larger of each two elements. Shapes broadcast, one of the two may be a number; NaN wins. PyTorch: `torch.maximum`. @throws SHAPE_MISMATCH */
export const maximum = operations.maximum
/**
 * Maxima of windows: [N, C, L] or [C, L] → […, oL]. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch:
 * `torch.nn.functional.max_pool1d`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const maxPool1d = operations.maxPool1d
/**
 * Maxima of windows: [N, C, H, W] or [C, H, W] → […, oH, oW]. Defaults: stride = kernelSize, padding 0, dilation 1. PyTorch:
 * `torch.nn.functional.max_pool2d`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const maxPool2d = operations.maxPool2d
/**
 * maxPool2d, and where in its plane each maximum stands (int32, y · W + x). PyTorch: `torch.nn.functional.max_pool2d(return_indices=True)`. @throws
 * SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const maxPool2dWithIndices = operations.maxPool2dWithIndices
/**
 * The mean of all elements or over `dims` (`keepdim`: default false); floating point only, convert by `{ dtype }`. PyTorch: `torch.mean`. @throws
 * DTYPE_MISMATCH, DIM_OUT_OF_RANGE
 */
export const mean = operations.mean
/**
 * Grids of coordinates from vectors: with 'ij' (the default) the i-th result varies along dimension i, with 'xy' the first two are exchanged.
 * PyTorch: `torch.meshgrid`. @throws SHAPE_MISMATCH
 */
export const meshgrid = operations.meshgrid
/**
 * The smallest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the smallest, which gets
 * the gradient. PyTorch: `torch.min`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
 */
export const min = operations.min
/** The smaller of each two elements. Shapes broadcast, one of the two may be a number; NaN wins. PyTorch: `torch.minimum`. @throws SHAPE_MISMATCH */
export const minimum = operations.minimum
/** x tanh(softplus x). PyTorch: `torch.nn.functional.mish`. @throws DTYPE_MISMATCH */
export const mish = operations.mish
/** Product of two matrices: [m, k], [k, n] → [m, n]. PyTorch: `torch.mm`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export const mm = operations.mm
/**
 * A view with dimensions `source` at the places `destination`; the others keep their order. PyTorch: `torch.movedim`. @throws DIM_OUT_OF_RANGE,
 * INVALID_ARGUMENT
 */
export const movedim = operations.movedim
/**
 * (input − target)² of two tensors of one shape, which do not broadcast. The third argument is the reduction, 'mean' by default. PyTorch:
 * `torch.nn.functional.mse_loss`. @throws SHAPE_MISMATCH
 * @example const loss = mseLoss(x, zeros([2, 2]))
 */
export const mseLoss = operations.mseLoss
/** The product of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.mul`. @throws SHAPE_MISMATCH */
export const mul = operations.mul
/**
 * Multiplies the tensor by y in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.mul_`. @throws SHAPE_MISMATCH, INPLACE_DTYPE,
 * INPLACE_OVERLAP, INPLACE_ON_LEAF
 */
export const mul_ = operations.mul_
/** A matrix times a vector: [m, k], [k] → [m]. PyTorch: `torch.mv`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export const mv = operations.mv
/** NaN replaced by 0, ±∞ by the largest finite numbers of the dtype, or by what `options` say. PyTorch: `torch.nan_to_num`. */
export const nanToNum = operations.nanToNum
/** A view of `length` elements along `dim` from `start` on. PyTorch: `torch.narrow`. @throws INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
export const narrow = operations.narrow
/**
 * Whether each two elements differ, as bool. Shapes broadcast, one of the two may be a number. NaN differs from itself. PyTorch: `torch.ne`.
 * @throws SHAPE_MISMATCH
 */
export const ne = operations.ne
/** −x of each element. PyTorch: `torch.neg`. @throws DTYPE_MISMATCH for bool */
export const neg = operations.neg
/**
 * Negative log likelihood: log-probabilities [N, C], [C] or [N, C, d, …], target classes (int32, or whole numbers) [N], [] or [N, d, …]. Defaults: reduction 'mean',
 * ignoreIndex −100. PyTorch: `torch.nn.functional.nll_loss`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
 */
export const nllLoss = operations.nllLoss
/** int32 [count, ndim]: the places where elements are not 0, in row-major order. No gradient. PyTorch: `torch.nonzero`. */
export const nonzero = operations.nonzero
/**
 * (Σ |x|ᵖ)^(1/p) over all or over `dims`; p is 2 by default, ±Infinity gives the extreme |x|, 0 counts what is not 0. PyTorch: `torch.norm`.
 * @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE
 */
export const norm = operations.norm
/**
 * Classes (int32, or whole numbers) of any shape → int32 […, numClasses]; left out, one more than the largest class. No gradient. PyTorch:
 * `torch.nn.functional.one_hot`. @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
 */
export const oneHot = operations.oneHot
/** All products of two vectors: [m], [n] → [m, n]. PyTorch: `torch.outer`. @throws SHAPE_MISMATCH */
export const outer = operations.outer
/**
 * A padded copy: `pads` are before and after, two numbers for each dimension from the last one on. Mode 'constant' (the default, with value 0;
 * negative pads cut), 'reflect', 'replicate' or 'circular'. PyTorch: `torch.nn.functional.pad`. @throws INVALID_ARGUMENT
 */
export const pad = operations.pad
/**
 * The p-norm (default 2) of a − b + eps (1e-6) over the last dimension; a and b broadcast. PyTorch: `torch.nn.functional.pairwise_distance`.
 * @throws SHAPE_MISMATCH
 */
export const pairwiseDistance = operations.pairwiseDistance
/** A view with the dimensions in the order of `dims`, which names each once. PyTorch: `torch.permute`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE */
export const permute = operations.permute
/**
 * aᵇ, element by element; shapes broadcast, one of the two may be a number. int32 wraps around. PyTorch: `torch.pow`. @throws SHAPE_MISMATCH,
 * INVALID_ARGUMENT for a negative exponent of integers
 */
export const pow = operations.pow
/** The product of all elements or along `dim`; int32 and bool multiply to int32, nothing gives 1. PyTorch: `torch.prod`. @throws DIM_OUT_OF_RANGE */
export const prod = operations.prod
/** All elements as one dimension; a view where it can be. PyTorch: `torch.ravel`. */
export const ravel = operations.ravel
/** 1 / x of each element. int32 and bool become float32. PyTorch: `torch.reciprocal`. */
export const reciprocal = operations.reciprocal
/** x where positive, else 0; int32 stays. PyTorch: `torch.nn.functional.relu`. @throws DTYPE_MISMATCH for bool */
export const relu = operations.relu
/** Each element kept within 0 and 6. PyTorch: `torch.nn.functional.relu6`. */
export const relu6 = operations.relu6
/**
 * The remainder of a / b with the sign of b; of integers by 0 it is 0 (PyTorch throws). Shapes broadcast. PyTorch: `torch.remainder`. @throws
 * SHAPE_MISMATCH
 */
export const remainder = operations.remainder
/**
 * Each element (or slice along `dim`) several times in a row; a tensor gives a count for each. Without `dim` flattened. PyTorch:
 * `torch.repeat_interleave`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE
 */
export const repeatInterleave = operations.repeatInterleave
/**
 * The same elements in another shape, of which one extent may be −1; a view where it can be, else a copy. PyTorch: `torch.reshape`. @throws
 * SHAPE_MISMATCH
 */
export const reshape = operations.reshape
/**
 * A copy whose elements are shifted along `dims`, around the end; without `dims` as if flattened. PyTorch: `torch.roll`. @throws DIM_OUT_OF_RANGE,
 * INVALID_ARGUMENT
 */
export const roll = operations.roll
/** The nearest integer of each element, halves to the even one; int32 stays. PyTorch: `torch.round`. @throws DTYPE_MISMATCH for bool */
export const round = operations.round
/** 1 / √x of each element. int32 and bool become float32. PyTorch: `torch.rsqrt`. */
export const rsqrt = operations.rsqrt
/**
 * softmax(Q Kᵀ · scale) V: query [..., L, E], key [..., S, E], value [..., S, V] → [..., L, V]. scale is 1 / √E by default; a bool mask is true
 * where a position takes part. PyTorch: `torch.nn.functional.scaled_dot_product_attention`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
 */
export const scaledDotProductAttention = operations.scaledDotProductAttention
/**
 * A copy with out[i, index[i, j, k], k] = src[i, j, k] for dim 1; src may be a number or a boolean, the last write wins. PyTorch: `torch.scatter`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const scatter = operations.scatter
/**
 * A copy with out[i, index[i, j, k], k] += src[i, j, k] for dim 1, summed in the order of `dim`. PyTorch: `torch.scatter_add`. @throws
 * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const scatterAdd = operations.scatterAdd
/**
 * A view of one slice along `dim`, without that dimension; negative indices count from the end. PyTorch: `torch.select`. @throws
 * INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE
 */
export const select = operations.select
/** 1 / (1 + e⁻ˣ) of each element. int32 and bool become float32. PyTorch: `torch.sigmoid`. */
export const sigmoid = operations.sigmoid
/** −1, 0 or 1 for each element; int32 and bool stay. PyTorch: `torch.sign`. */
export const sign = operations.sign
/** x σ(x). PyTorch: `torch.nn.functional.silu`. @throws DTYPE_MISMATCH */
export const silu = operations.silu
/** The sine of each element, in radians. int32 and bool become float32. PyTorch: `torch.sin`. */
export const sin = operations.sin
/** The hyperbolic sine of each element. int32 and bool become float32. PyTorch: `torch.sinh`. */
export const sinh = operations.sinh
/**
 * A view of every step-th element along `dim` from start up to (without) end; both may be negative and are cut to what is there, step ≥ 1. PyTorch:
 * `x[start:end:step]`. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const slice = operations.slice
/**
 * ½ d² / beta where |d| < beta (default 1), else |d| − ½ beta, of d = input − target. `reduction` is 'mean' by default. PyTorch:
 * `torch.nn.functional.smooth_l1_loss`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const smoothL1Loss = operations.smoothL1Loss
/**
 * eˣ / Σ eˣ along `dim`, without overflow. PyTorch: `torch.nn.functional.softmax`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE
 * @example const shares = softmax(x, -1)
 */
export const softmax = operations.softmax
/**
 * log(1 + exp(beta x)) / beta, with beta 1 by default; x itself where beta x is above `threshold` (20). PyTorch: `torch.nn.functional.softplus`.
 * @throws DTYPE_MISMATCH
 */
export const softplus = operations.softplus
/** x / (1 + |x|). PyTorch: `torch.nn.functional.softsign`. */
export const softsign = operations.softsign
/**
 * { values, indices } along `dim` (default the last), ascending unless `descending`. Equals keep their order, NaN is the greatest. PyTorch:
 * `torch.sort`. @throws DIM_OUT_OF_RANGE
 */
export const sort = operations.sort
/**
 * Views of `size` along `dim` (default 0), the last may be shorter; or of the sizes given, which add up to the extent. PyTorch: `torch.split`.
 * @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const split = operations.split
/** The square root of each element, NaN of negative ones. int32 and bool become float32. PyTorch: `torch.sqrt`. */
export const sqrt = operations.sqrt
/** x² of each element; int32 stays, bool becomes int32. PyTorch: `torch.square`. */
export const square = operations.square
/** A view without dimensions of extent 1: all of them, or those named that have it. PyTorch: `torch.squeeze`. @throws DIM_OUT_OF_RANGE */
export const squeeze = operations.squeeze
/**
 * Tensors of one shape joined along a new dimension `dim` (default 0); dtypes promote. PyTorch: `torch.stack`. @throws SHAPE_MISMATCH,
 * DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const stack = operations.stack
/** The standard deviation over all or over `dims`; divides by n − correction (default 1). PyTorch: `torch.std`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
export const std = operations.std
/**
 * The difference of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.sub`. @throws
 * SHAPE_MISMATCH, DTYPE_MISMATCH for bool
 */
export const sub = operations.sub
/**
 * Subtracts alpha · y (alpha: default 1) from the tensor in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.sub_`. @throws
 * SHAPE_MISMATCH, INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF
 */
export const sub_ = operations.sub_
/**
 * The sum of all elements or over `dims` (`keepdim`: default false); int32 and bool sum to int32 (PyTorch: int64). PyTorch: `torch.sum`. @throws
 * DIM_OUT_OF_RANGE
 */
export const sum = operations.sum
/** A view with two dimensions exchanged. PyTorch: `torch.swapaxes`. @throws DIM_OUT_OF_RANGE */
export const swapaxes = operations.swapaxes
/**
 * Elements as if flattened, at indices (int32, or whole numbers) of any shape; negative ones count from the end. PyTorch: `torch.take`. @throws INDEX_OUT_OF_RANGE,
 * DTYPE_MISMATCH
 */
export const take = operations.take
/**
 * As gather, with tensor and indices broadcast against each other except in `dim`; without `dim` flattened. PyTorch: `torch.take_along_dim`.
 * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const takeAlongDim = operations.takeAlongDim
/** The tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.tan`. */
export const tan = operations.tan
/** The hyperbolic tangent of each element. int32 and bool become float32. PyTorch: `torch.tanh`. */
export const tanh = operations.tanh
/** x − tanh x. PyTorch: `torch.nn.functional.tanhshrink`. */
export const tanhshrink = operations.tanhshrink
/**
 * Sums of products over the last `dims` dimensions of a and the first of b (default 2), or over dims[0] of a with dims[1] of b. PyTorch:
 * `torch.tensordot`. @throws SHAPE_MISMATCH, INVALID_ARGUMENT
 */
export const tensordot = operations.tensordot
/**
 * Views along `dim` (default 0): into so many parts, the first ones longer by 1 where it does not divide, or cut at the indices given. PyTorch:
 * `torch.tensor_split`. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const tensorSplit = operations.tensorSplit
/** As repeat, but counts may be fewer than dimensions. PyTorch: `torch.tile`. @throws INVALID_ARGUMENT */
export const tile = operations.tile
/**
 * The tensor itself where it has that dtype and lies on that device, else a copy; to int32 truncates. From a device back to this process: `await x.cpu()`.
 * PyTorch: `Tensor.to`. @throws DTYPE_MISMATCH, DEVICE_UNKNOWN, READ_NOT_SYNCHRONOUS from a device that computes asynchronously
 */
export const to: (x: Tensor, target: Target, dtype?: DType) => Tensor = operations.to
/**
 * { values, indices } of the k largest along `dim` (default the last), from the largest down; with `largest: false` the smallest. PyTorch:
 * `torch.topk`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE
 */
export const topk = operations.topk
/** The sum of a matrix's diagonal. PyTorch: `torch.trace`. @throws SHAPE_MISMATCH */
export const trace = operations.trace
/** A view with two dimensions exchanged. PyTorch: `torch.transpose`. @throws DIM_OUT_OF_RANGE */
export const transpose = operations.transpose
/** The lower triangle of the last two dimensions, 0 above diagonal number `diagonal` (default 0). PyTorch: `torch.tril`. @throws SHAPE_MISMATCH */
export const tril = operations.tril
/** The upper triangle of the last two dimensions, 0 below diagonal number `diagonal` (default 0). PyTorch: `torch.triu`. @throws SHAPE_MISMATCH */
export const triu = operations.triu
/** Each element without its fraction; int32 stays. PyTorch: `torch.trunc`. @throws DTYPE_MISMATCH for bool */
export const trunc = operations.trunc
/** Views of all slices along `dim` (default 0), without it. PyTorch: `torch.unbind`. @throws DIM_OUT_OF_RANGE */
export const unbind = operations.unbind
/** A view with dimension `dim` as several, of which one may be −1. PyTorch: `torch.unflatten`. @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE */
export const unflatten = operations.unflatten
/** A view with a new dimension of extent 1 at `dim`. PyTorch: `torch.unsqueeze`. @throws DIM_OUT_OF_RANGE */
export const unsqueeze = operations.unsqueeze
/** [variance, mean] over all or over `dims`; divides by n − correction (default 1). PyTorch: `torch.var_mean`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
export const varMean = operations.varMean
/** The same storage in another shape, of which one extent may be −1. PyTorch: `Tensor.view`. @throws SHAPE_MISMATCH, VIEW_NOT_CONTIGUOUS */
export const view = operations.view
/** Tensors joined along dimension 0, vectors as rows. PyTorch: `torch.vstack`. @throws SHAPE_MISMATCH */
export const vstack = operations.vstack
/**
 * a where cond (bool) is true, else b; the three broadcast, a and b may be numbers. PyTorch: `torch.where`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH
 * @example const y = where(x.gt(0), x, 0)
 */
export const where = operations.where
/** Writes 0 into every element and returns the tensor. PyTorch: `Tensor.zero_`. @throws INPLACE_ON_LEAF */
export const zero_ = operations.zero_
/**
 * What Python writes as x[spec, spec, …]: numbers, ranges ('1:3', '::2'), '...', null for a new dimension, tensors of indices or of bool. A view unless a
 * tensor is among them. PyTorch: `x[…]`. @throws INDEX_OUT_OF_RANGE, INVALID_ARGUMENT
 */
export const index = operations.index
/**
 * A copy with x[specs] = values, or += with `accumulate` (default false); values broadcast. Of equal indices the last wins, and
 * has the gradient. PyTorch: `torch.index_put`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
 */
export const indexPut = operations.indexPut
/** A copy with each dimension repeated so often; further counts add dimensions in front. PyTorch: `Tensor.repeat`. @throws INVALID_ARGUMENT */
export const repeat = operations.repeat
/** The variance over all or over `dims`; divides by n − correction (default 1). PyTorch: `torch.var`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
const variance = operations.var
/** Whether each element is NaN, as bool. PyTorch: `torch.isnan`. */
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch's name, which is also a global's.
export const isNaN = operations.isNaN
/** Whether each element is ∞ or −∞, as bool. PyTorch: `torch.isinf`. */
export const isInf = operations.isInf
/** Whether each element is neither NaN nor infinite, as bool. PyTorch: `torch.isfinite`. */
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch's name, which is also a global's.
export const isFinite = operations.isFinite
/** The same elements without history: shares the storage, requires no grad. PyTorch: `Tensor.detach`. */
export const detach: (x: Tensor) => Tensor = checkedOperation('detach', raw.detach, ['tensor'])

export { variance as var }
