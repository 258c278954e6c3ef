/**
 * Kernels that do the work of several operations in one pass. A device may lack them. Then a function here answers false, having done nothing, and its caller
 * runs the operations. They check no mistakes of users: shapes and dtypes are the caller's own.
 */
import type { Operand, StepNumbers } from '../kernels/table/operands.js'
import type { OpsOf } from '../kernels/table/ops.js'
import { fusedKernel } from '../tensor/device.js'
import type { Tensor } from '../tensor/tensor.js'
import { contiguous } from './copy.js'
import { wrote } from './inplace.js'

/**
 * One step of an optimizer, as `Step` in `kernels/table/operands.ts` defines it: writes p and its states, which have the bits that the operations would give them.
 * False as well where a tensor is sparse, of another dtype, in p's place, or not dense (but grad).
 */
export function stepInto(op: OpsOf<'step'>, p: Tensor, grad: Tensor, states: readonly (Tensor | null)[], numbers: StepNumbers): boolean {
  const kernel = fusedKernel(op, p)
  if (kernel === null || !p.isContiguous || grad.isSparse || grad.dtype !== p.dtype || grad.storage === p.storage) return false
  for (const state of states) if (state !== null && !(state.isContiguous && state.dtype === p.dtype)) return false
  for (const state of states) state?.storage.prepareWrite()
  p.storage.prepareWrite()
  const [first = null, second = null, third = null] = states as readonly (Operand | null)[]
  kernel(contiguous(grad), first, second, third, p, numbers)
  for (const state of states) if (state !== null) wrote(op, state)
  wrote(op, p)
  return true
}

/** A step of a recurrent layer, or back through one, as `kernels/table/operands.ts` defines it. False as well where a tensor is not dense. */
export function cellInto(
  op: OpsOf<'lstmCell' | 'lstmCellBackward' | 'gruCell' | 'gruCellBackward'>,
  ...operands: readonly Tensor[]
): boolean {
  const kernel = fusedKernel(op, operands[0]!)
  if (kernel === null) return false
  for (const x of operands) if (!x.isContiguous) return false
  ;(kernel as (...operands: readonly Operand[]) => void)(...operands)
  return true
}
