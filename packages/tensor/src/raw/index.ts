/** All raw operations by name: what autograd wraps. They know shapes, dtypes and kernels, and nothing of gradients. */
export { atan2, bitwiseAnd, bitwiseOr, bitwiseXor, div, floorDivide, fmod, pow, remainder } from './arithmetic.js'
export { clone, contiguous, to } from './copy.js'
export {
  cumprodBackward,
  eluBackward,
  geluBackward,
  leakyReluBackward,
  logSoftmaxBackward,
  prodBackward,
  reluBackward,
  sigmoidBackward,
  siluBackward,
  softmaxBackward,
  softplusBackward,
  tanhBackward,
} from './derivative.js'
export {
  abs,
  add,
  clamp,
  cos,
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
  relu,
  sigmoid,
  sign,
  sin,
  sqrt,
  sub,
  tanh,
  where,
} from './elementwise.js'
export { gather, indexAdd, indexSelect, nonzero, oneHot, scatter, scatterAdd } from './gather.js'
export { crossEntropy, embedding, embeddingBackward, nllLoss, nllLossBackward } from './indexing.js'
export { add_, copy_, div_, fill_, mul_, sub_, zero_ } from './inplace.js'
export { cat, constantPad, stack } from './join.js'
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
export {
  amax,
  amin,
  argmax,
  argmin,
  logSoftmax,
  logSumExp,
  mean,
  norm,
  prod,
  softmax,
  std,
  sum,
  sumToShape,
  variance as var,
} from './reduce.js'
export { cumprod, cumsum, reverseCumsum } from './scan.js'
export { argsort } from './sort.js'
export { detach, diagonal, everyNth, expand, narrow, permute, reshape, select, squeeze, transpose, unsqueeze, view } from './views.js'
