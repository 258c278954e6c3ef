/** Families of element-wise operations, whose entries have only a name and a derivative. */
import type { BinaryOp, CompareOp, UnaryOp } from '../../kernels/table/table.js'
import { clone } from '../../raw/copy.js'
import { binary, notOnBool, numericUnary, realUnary, unaryKernel } from '../../raw/elementwise.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../../values/errors.js'
import { primitive, type WithInPlace } from './define.js'
import { type Formula, formula, type OfTensor, ofTensor, type Readable } from './formula.js'

type GradOfEach<R extends Readable> = OfTensor<R, []>
export type OfEach = WithInPlace<(x: Tensor) => Tensor>
export type OfTwo = (a: Tensor | number, b: Tensor | number) => Tensor

/** The derivative of what is constant wherever it is differentiable: 0, in g's shape. */
export const constant = formula([], (g) => Tensor.empty(g.dtype, g.shape, g.storage.memory))

const ofEach = (name: UnaryOp, raw: (name: UnaryOp, x: Tensor) => Tensor, grad: Formula<[]>): OfEach =>
  primitive<OfEach>(name, { args: ['tensor'], inPlace: true, raw: (x) => raw(name, x), grad })

/** A function of real numbers, its derivative as in `formula`: int32 and bool become float32. */
export const real = <R extends Readable>(name: UnaryOp, reads: readonly R[], grad: GradOfEach<R>): OfEach =>
  ofEach(name, realUnary, ofTensor(reads, grad))

/** A function of all numbers; bool is refused. */
export const numeric = <R extends Readable>(name: UnaryOp, reads: readonly R[], grad: GradOfEach<R>): OfEach =>
  ofEach(name, numericUnary, ofTensor(reads, grad))

/** A rounding: int32 is what it rounds to, bool is refused. */
export const rounding = (name: UnaryOp): OfEach => ofEach(name, roundedUnary, constant)

function roundedUnary(name: UnaryOp, x: Tensor): Tensor {
  notOnBool(name, x)
  return isFloating(x.dtype) ? unaryKernel(name, x, 0, 0) : clone(x)
}

/** A comparison: bool, without a gradient. */
export const comparison = (name: CompareOp): OfTwo =>
  primitive<OfTwo>(name, { args: ['operand', 'operand'], raw: (a, b) => binary(name, a, b, true, false), grad: null })

/** Of the bits of int32 and bool, without a gradient. */
export const bitwise = (name: BinaryOp): OfTwo =>
  primitive<OfTwo>(name, {
    args: ['operand', 'operand'],
    raw: (a, b) => {
      for (const x of [a, b]) {
        if (typeof x === 'object' && isFloating(x.dtype)) {
          throw dtypeMismatch(name, 'int32 or bool', x.dtype, "Convert with to('int32') first.")
        }
        if (typeof x === 'number' && !Number.isInteger(x)) throw invalidArgument(name, 'an integer', x)
      }
      return binary(name, a, b, false, false)
    },
    grad: null,
  })
