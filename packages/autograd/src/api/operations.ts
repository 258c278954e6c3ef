/**
 * The recorded operations: every raw operation joined with its row of derivatives. Comparisons and argmax have no gradient and are the raw functions
 * themselves. Above: `functions.ts`, the same as users get them.
 */
import type { Device, DivOptions, DType, Tensor } from '@postgrad/tensor'
import {
  type DeviceLike,
  type PrimitiveOps,
  raw,
  rawOperations,
  rawTruncDivide,
  roundedDivision,
  type Target,
  withComposites,
} from '@postgrad/tensor/internal'
import { composedDerivatives } from '../derivatives/composed.js'
import { binary, lists, lookup, unary, where as whereRows } from '../derivatives/derivatives.js'
import type { TensorOps } from '../graph/formula.js'
import { indexingFunctions } from '../indexing/functions.js'
import { neuralFunctions } from '../neural/functions.js'
import { inPlace, overwriting } from '../record/in-place.js'
import { recordAttributed, recordBinary, recordList, recordLookup, recordUnary, recordWhere } from '../record/record.js'

/** For formulas under createGraph; late, since it is made of what follows. */
const recorded = (): TensorOps => operations

const neg = recordUnary('neg', raw.neg, unary.neg, recorded)
const exp = recordUnary('exp', raw.exp, unary.exp, recorded)
const log = recordUnary('log', raw.log, unary.log, recorded)
const sqrt = recordUnary('sqrt', raw.sqrt, unary.sqrt, recorded)
const sin = recordUnary('sin', raw.sin, unary.sin, recorded)
const cos = recordUnary('cos', raw.cos, unary.cos, recorded)
const tanh = recordUnary('tanh', raw.tanh, unary.tanh, recorded)
const sigmoid = recordUnary('sigmoid', raw.sigmoid, unary.sigmoid, recorded)
const relu = recordUnary('relu', raw.relu, unary.relu, recorded)
const abs = recordUnary('abs', raw.abs, unary.abs, recorded)
const sign = recordUnary('sign', raw.sign, unary.sign, recorded)
const clone = recordUnary('clone', raw.clone, unary.clone, recorded)
const contiguous = recordUnary('contiguous', raw.contiguous, unary.contiguous, recorded)
/** The formula asks where x was: the third attribute. */
const toFrom = recordAttributed(
  'to',
  raw.to as (x: Tensor, target: Target, dtype: DType | undefined, from: Device) => Tensor,
  unary.to as never,
  recorded,
)
const to = (x: Tensor, target: Target | string | DeviceLike, dtype?: DType): Tensor => toFrom(x, target as Target, dtype, x.device)
const arrivedFrom = recordAttributed(
  'to',
  (_x: Tensor, elements: Tensor, _dtype: undefined, _from: Device) => elements,
  unary.to as never,
  recorded,
)
/** What was read from x's device, as x in this process. */
export const arrived = (x: Tensor, elements: Tensor): Tensor => arrivedFrom(x, elements, undefined, x.device)
const powNumber = recordAttributed('pow', raw.pow as (x: Tensor, exponent: number) => Tensor, unary.pow, recorded)
const clamp = recordAttributed('clamp', raw.clamp, unary.clamp, recorded)

const floor = recordUnary('floor', raw.floor, unary.floor, recorded)
const ceil = recordUnary('ceil', raw.ceil, unary.ceil, recorded)
const round = recordUnary('round', raw.round, unary.round, recorded)
const trunc = recordUnary('trunc', raw.trunc, unary.trunc, recorded)
const reciprocal = recordUnary('reciprocal', raw.reciprocal, unary.reciprocal, recorded)
const rsqrt = recordUnary('rsqrt', raw.rsqrt, unary.rsqrt, recorded)
const square = recordUnary('square', raw.square, unary.square, recorded)
const log1p = recordUnary('log1p', raw.log1p, unary.log1p, recorded)
const expm1 = recordUnary('expm1', raw.expm1, unary.expm1, recorded)
const log2 = recordUnary('log2', raw.log2, unary.log2, recorded)
const log10 = recordUnary('log10', raw.log10, unary.log10, recorded)
const exp2 = recordUnary('exp2', raw.exp2, unary.exp2, recorded)
const tan = recordUnary('tan', raw.tan, unary.tan, recorded)
const sinh = recordUnary('sinh', raw.sinh, unary.sinh, recorded)
const cosh = recordUnary('cosh', raw.cosh, unary.cosh, recorded)
const asin = recordUnary('asin', raw.asin, unary.asin, recorded)
const acos = recordUnary('acos', raw.acos, unary.acos, recorded)
const atan = recordUnary('atan', raw.atan, unary.atan, recorded)
const erf = recordUnary('erf', raw.erf, unary.erf, recorded)
const silu = recordUnary('silu', raw.silu, unary.silu, recorded)
const leakyRelu = recordAttributed('leakyRelu', raw.leakyRelu, unary.leakyRelu, recorded)
const gelu = recordAttributed('gelu', raw.gelu, unary.gelu, recorded)
const softplus = recordAttributed('softplus', raw.softplus, unary.softplus, recorded)
const elu = recordAttributed('elu', raw.elu, unary.elu, recorded)

const add = recordBinary('add', raw.add, binary.add, recorded)
const sub = recordBinary('sub', raw.sub, binary.sub, recorded)
const mul = recordBinary('mul', raw.mul, binary.mul, recorded)
const trueDivision = recordBinary<Operand>('div', raw.div, binary.div, recorded)
function div(a: Operand, b: Operand, options?: DivOptions): Tensor {
  return options === undefined ? trueDivision(a, b) : roundedDivision({ div: trueDivision, floorDivide, truncDivide, to }, a, b, options)
}
const powTensor = recordBinary<Operand>('pow', raw.pow, binary.pow, recorded)
function pow(a: Operand, b: Operand): Tensor {
  return typeof a === 'object' && typeof b === 'number' ? powNumber(a, b) : powTensor(a, b)
}
const floorDivide = recordBinary<Operand>('floorDivide', raw.floorDivide, binary.floorDivide, recorded)
// As flat as floorDivide: through div and trunc the gradient of a quotient by 0 would be 0 · ∞.
const truncDivide = recordBinary<Operand>('truncDivide', rawTruncDivide, binary.floorDivide, recorded)
const remainder = recordBinary<Operand>('remainder', raw.remainder, binary.remainder, recorded)
const fmod = recordBinary<Operand>('fmod', raw.fmod, binary.fmod, recorded)
const atan2 = recordBinary<Tensor>('atan2', raw.atan2, binary.atan2, recorded)
const maximum = recordBinary('maximum', raw.maximum, binary.maximum, recorded)
const minimum = recordBinary('minimum', raw.minimum, binary.minimum, recorded)
const matmul = recordBinary<Tensor>('matmul', raw.matmul, binary.matmul, recorded)
const bmm = recordBinary<Tensor>('bmm', raw.bmm, binary.bmm, recorded)

const { eq, ne, lt, le, gt, ge, argmax, argmin, argsort, bitwiseAnd, bitwiseOr, bitwiseXor } = raw

const sum = recordAttributed('sum', raw.sum, unary.sum, recorded)
const mean = recordAttributed('mean', raw.mean, unary.mean, recorded)
const amax = recordAttributed('amax', raw.amax, unary.amax, recorded)
const prod = recordAttributed('prod', raw.prod, unary.prod, recorded)
const amin = recordAttributed('amin', raw.amin, unary.amin, recorded)
const variance = recordAttributed('var', raw.var, unary.var, recorded)
const std = recordAttributed('std', raw.std, unary.std, recorded)
const logSumExp = recordAttributed('logSumExp', raw.logSumExp, unary.logSumExp, recorded)
const norm = recordAttributed('norm', raw.norm, unary.norm, recorded)
const cumsum = recordAttributed('cumsum', raw.cumsum, unary.cumsum, recorded)
const cumprod = recordAttributed('cumprod', raw.cumprod, unary.cumprod, recorded)
const reverseCumsum = recordAttributed('reverseCumsum', raw.reverseCumsum, unary.reverseCumsum, recorded)

const view = recordAttributed('view', raw.view, unary.view, recorded)
const reshape = recordAttributed('reshape', raw.reshape, unary.reshape, recorded)
const transpose = recordAttributed('transpose', raw.transpose, unary.transpose, recorded)
const permute = recordAttributed('permute', raw.permute, unary.permute, recorded)
const expand = recordAttributed('expand', raw.expand, unary.expand, recorded)
const squeeze = recordAttributed('squeeze', raw.squeeze, unary.squeeze, recorded)
const unsqueeze = recordAttributed('unsqueeze', raw.unsqueeze, unary.unsqueeze, recorded)
const everyNth = recordAttributed('everyNth', raw.everyNth, unary.everyNth, recorded)
const diagonal = recordAttributed('diagonal', raw.diagonal, unary.diagonal, recorded)
const narrow = recordAttributed('narrow', raw.narrow, unary.narrow, recorded)
const select = recordAttributed('select', raw.select, unary.select, recorded)

const cat = recordList('cat', raw.cat, lists.cat, recorded)
const stack = recordList('stack', raw.stack, lists.stack, recorded)

const where = recordWhere('where', raw.where, whereRows.where, recorded)
const plainEmbedding = recordLookup('embedding', raw.embedding, lookup.embedding, recorded)
const embeddingBackward = recordLookup('embeddingBackward', raw.embeddingBackward, lookup.embeddingBackward, recorded)

const softmax = recordAttributed('softmax', raw.softmax, unary.softmax, recorded)
const logSoftmax = recordAttributed('logSoftmax', raw.logSoftmax, unary.logSoftmax, recorded)
const plainNllLoss = recordLookup('nllLoss', raw.nllLoss, lookup.nllLoss, recorded)
const plainCrossEntropy = recordLookup('crossEntropy', raw.crossEntropy, lookup.crossEntropy, recorded)

type Operand = Tensor | number
/** alpha · y, for the operations that have an alpha. */
const scaled = (y: Operand, alpha: number): Operand => (alpha === 1 ? y : typeof y === 'number' ? y * alpha : mul(y, alpha))

const add_ = inPlace('add_', raw.add_, (x: Tensor, y: Operand, alpha = 1) => add(x, scaled(y, alpha)))
const sub_ = inPlace('sub_', raw.sub_, (x: Tensor, y: Operand, alpha = 1) => sub(x, scaled(y, alpha)))
const mul_ = inPlace<[y: Operand]>('mul_', raw.mul_, mul)
const div_ = inPlace<[y: Operand]>('div_', raw.div_, div)
const { copy_: copyHere, fill_, zero_ } = overwriting(recorded)
/** From another device by `to`, so that the gradient goes back there. */
const copy_ = (x: Tensor, src: Tensor): Tensor => copyHere(x, src.storage.memory === x.storage.memory ? src : to(src, x.device))

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

/** These, what is composed of them, and the in-place forms: what derivatives compute with under createGraph. */
export const operations: TensorOps = withComposites(primitives, (op, compute) =>
  inPlace(op, rawOperations[op] as unknown as typeof compute, compute),
)
