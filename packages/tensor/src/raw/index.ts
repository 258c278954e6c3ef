/** All raw operations by name: what autograd wraps. They know shapes, dtypes and kernels, and nothing of gradients. */
export { clone, contiguous, to } from './copy.js'
export {
  abs,
  add,
  clamp,
  cos,
  div,
  eq,
  exp,
  ge,
  gt,
  le,
  log,
  lt,
  maximum,
  minimum,
  mul,
  ne,
  neg,
  pow,
  relu,
  sigmoid,
  sign,
  sin,
  sqrt,
  sub,
  tanh,
  where,
} from './elementwise.js'
export { crossEntropy, embedding, embeddingBackward, nllLoss, nllLossBackward } from './indexing.js'
export { add_, copy_, div_, fill_, mul_, sub_, zero_ } from './inplace.js'
export { cat, stack } from './join.js'
export {
  acos,
  asin,
  atan,
  ceil,
  cosh,
  elu,
  erf,
  exp2,
  expm1,
  floor,
  gelu,
  leakyRelu,
  log1p,
  log2,
  log10,
  reciprocal,
  round,
  rsqrt,
  silu,
  sinh,
  softplus,
  square,
  tan,
  trunc,
} from './math.js'
export { bmm, matmul } from './matmul.js'
export { amax, argmax, logSoftmax, mean, softmax, sum, sumToShape } from './reduce.js'
export { detach, expand, narrow, permute, reshape, select, squeeze, transpose, unsqueeze, view } from './views.js'
