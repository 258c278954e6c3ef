/** How element-wise operations compute, of one tensor and of two: they broadcast and promote, then call one kernel. */

import { chainsFrom, recorded, records } from '../chains/record.js'
import { CPU, type Memory } from '../heap/memory.js'
import { Storage } from '../heap/storage.js'
import type { BinaryOp, CompareOp, UnaryOp } from '../kernels/table/table.js'
import { filledAt } from '../tensor/create.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate, type DType, elementOf, isFloating } from '../values/dtype.js'
import { checkHolds, dtypeMismatch, invalidArgument } from '../values/errors.js'
import { broadcastShapes, numelOf, SCALAR_SHAPE, type Shape, sameShape } from '../values/shape.js'
import { to } from './copy.js'
import { promoteNumber, promoteTensors, toFloating } from './promotion.js'

// --- unary ---

export function unaryKernel(op: UnaryOp, x: Tensor, p0: number, p1: number): Tensor {
  if (records && x.numel >= chainsFrom) {
    const step = recorded('unary', op, x.dtype, x.dtype, x.shape, [x], p0, p1)
    if (step !== null) return step
  }
  const out = x.isContiguous
    ? new Tensor(Storage.uninitialized(x.dtype, x.numel, x.storage.memory), x.shape, x.strides, 0, x.numel, true)
    : Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  kernelsFor(x)[op][x.dtype](x, out, p0, p1)
  return out
}

/** For functions of real numbers: int32 and bool are computed in float32. */
export function realUnary(op: UnaryOp, x: Tensor): Tensor {
  return unaryKernel(op, isFloating(x.dtype) ? x : to(x, 'float32'), 0, 0)
}

export function notOnBool(op: string, x: Tensor): void {
  if (x.dtype === 'bool') throw dtypeMismatch(op, 'numbers', 'bool', "Convert with to('int32') or to('float32') first.")
}

export function numericUnary(op: UnaryOp, x: Tensor): Tensor {
  notOnBool(op, x)
  return unaryKernel(op, x, 0, 0)
}

// --- binary ---

export type Operand = Tensor | number

/** `compare` makes bool of it; `floating` computes integers in float32. */
export function binary(op: BinaryOp | CompareOp, a: Tensor | number, b: Tensor | number, compare: boolean, floating: boolean): Tensor {
  if (a === null || b === null) throw invalidArgument(op, 'a tensor or a number', 'null')
  if (typeof a === 'object' && typeof b === 'object') {
    // The fast path: nothing to broadcast, promote or walk.
    if (a.dtype === b.dtype && a.isContiguous && b.isContiguous && sameShape(a.shape, b.shape) && !(floating && !isFloating(a.dtype))) {
      if (records && a.numel >= chainsFrom) {
        const step = recordedBinary(op, a, b, a.shape, compare)
        if (step !== null) return step
      }
      const storage = Storage.uninitialized(compare ? 'bool' : a.dtype, a.numel, a.storage.memory)
      const out = new Tensor(storage, a.shape, a.strides, 0, a.numel, true)
      kernelsFor(a)[op][a.dtype](a, b, out)
      return out
    }
    const dtype = floating ? toFloating(promoteTensors(a, b)) : promoteTensors(a, b)
    return tensorBinary(op, to(a, dtype), to(b, dtype), compare)
  }
  if (typeof a === 'object') {
    const scalar = asScalar(op, b as number, a, floating)
    return givingBack(scalar, tensorBinary(op, asOperand(op, a, b as number, floating), scalar, compare))
  }
  if (typeof b === 'object') {
    const scalar = asScalar(op, a, b, floating)
    return givingBack(scalar, tensorBinary(op, scalar, asOperand(op, b, a, floating), compare))
  }
  throw invalidArgument(op, 'at least one tensor', `${typeof a} and ${typeof b}`, 'Wrap one side: tensor(value).')
}

/** @throws DTYPE_MISMATCH when both sides are bool: PyTorch has no such function of it */
export function numericBinary(op: BinaryOp, name: string, a: Operand, b: Operand): Tensor {
  if (typeof a === 'object' && typeof b === 'object' && a?.dtype === 'bool' && b?.dtype === 'bool') notOnBool(name, a)
  return binary(op, a, b, false, false)
}

/** A number takes a buffer on a device with a memory of its own, which goes back after the kernel. */
function givingBack(scalar: Tensor, result: Tensor): Tensor {
  if (scalar.storage.memory !== CPU) scalar.close()
  return result
}

/** The dtype in which a tensor and a number meet. */
function dtypeWith(x: Tensor, value: number, floating: boolean): DType {
  const dtype = promoteNumber(x.dtype, value)
  return floating ? toFloating(dtype) : dtype
}

function asOperand(op: string, x: Tensor, value: number, floating: boolean): Tensor {
  if (typeof value !== 'number') throw invalidArgument(op, 'a tensor or a number', typeof value)
  return to(x, dtypeWith(x, value, floating))
}

/** The number as a 0-d tensor, which the kernels repeat with step 0. */
function asScalar(op: string, value: number, beside: Tensor, floating: boolean): Tensor {
  if (typeof value !== 'number') throw invalidArgument(op, 'a tensor or a number', typeof value)
  return scalarTensor(value, dtypeWith(beside, value, floating), beside.storage.memory)
}

/** A value that a user gives for elements of `x`. @throws INVALID_ARGUMENT for a number that the dtype cannot hold */
export function scalarOf(op: string, value: number | boolean, { dtype, storage }: Tensor): Tensor {
  checkHolds(op, dtype, Number(value))
  return scalarTensor(Number(value), dtype, storage.memory)
}

export function scalarTensor(value: number, dtype: DType, memory: Memory): Tensor {
  if (memory !== CPU) return filledAt(memory, dtype, SCALAR_SHAPE, value)
  const array = allocate(dtype, 1)
  array[0] = elementOf(dtype, value)
  return new Tensor(new Storage(dtype, array), SCALAR_SHAPE, SCALAR_SHAPE, 0, 1, true)
}

/** Both have the dtype in which to compute. */
function tensorBinary(op: BinaryOp | CompareOp, a: Tensor, b: Tensor, compare: boolean): Tensor {
  const shape = broadcastShapes(op, a.shape, b.shape)
  if (records && numelOf(shape) >= chainsFrom) {
    const step = recordedBinary(op, a, b, shape, compare)
    if (step !== null) return step
  }
  const out = Tensor.uninitialized(compare ? 'bool' : a.dtype, shape, a.storage.memory)
  kernelsFor(a)[op][a.dtype](a, b, out)
  return out
}

function recordedBinary(op: BinaryOp | CompareOp, a: Tensor, b: Tensor, shape: Shape, compare: boolean): Tensor | null {
  return recorded(compare ? 'compare' : 'binary', op, a.dtype, compare ? 'bool' : a.dtype, shape, [a, b])
}

/** Both as tensors of their common dtype; two numbers meet in float32 unless both are integers, and lie in `memory`. */
export function operands(op: string, a: Tensor | number, b: Tensor | number, memory: Memory): [Tensor, Tensor] {
  if (a === null || b === null) throw invalidArgument(op, 'tensors or numbers', 'null')
  if (typeof a === 'object' && typeof b === 'object') {
    const dtype = promoteTensors(a, b)
    return [to(a, dtype), to(b, dtype)]
  }
  if (typeof a === 'object') return [asOperand(op, a, b as number, false), asScalar(op, b as number, a, false)]
  if (typeof b === 'object') return [asScalar(op, a, b, false), asOperand(op, b, a, false)]
  if (typeof a !== 'number' || typeof b !== 'number') throw invalidArgument(op, 'tensors or numbers', `${typeof a} and ${typeof b}`)
  const dtype = promoteNumber(promoteNumber('bool', a), b)
  return [scalarTensor(a, dtype, memory), scalarTensor(b, dtype, memory)]
}
