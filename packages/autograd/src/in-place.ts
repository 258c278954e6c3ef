/**
 * In-place operations as autograd sees them: allowed where nothing is recorded (optimizers use them under noGrad), refused where the write would
 * have to become part of a graph. Reads of what was overwritten are caught by the saved variable's version.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { needsGrad } from './record.js'

/** @throws INPLACE_ON_LEAF, INPLACE_NOT_RECORDED */
function check(op: string, x: Tensor, y: Tensor | number = 0): void {
  const onX = needsGrad(x)
  if (!(onX || needsGrad(y)) || !currentScope().gradEnabled) return
  if (onX && x.isLeaf) {
    throw new PostgradError('INPLACE_ON_LEAF', {
      op,
      message: 'a leaf that requires grad is used in an in-place operation',
      remedy: `Write it under noGrad(() => …), or use ${op.slice(0, -1)}, which makes a new tensor.`,
      values: { shape: [...x.shape] },
    })
  }
  throw new PostgradError('INPLACE_NOT_RECORDED', {
    op,
    message: 'in-place operations on, or with, tensors that require grad are not recorded',
    remedy: `Use the operation that makes a new tensor, detach() the arguments, or write under noGrad(() => …).`,
    values: { shape: [...x.shape] },
  })
}

/** x += alpha · y. @throws INPLACE_ON_LEAF, INPLACE_NOT_RECORDED; all functions of this file */
export function add_(x: Tensor, y: Tensor | number, alpha?: number): Tensor {
  check('add_', x, y)
  return raw.add_(x, y, alpha)
}

/** x −= alpha · y */
export function sub_(x: Tensor, y: Tensor | number, alpha?: number): Tensor {
  check('sub_', x, y)
  return raw.sub_(x, y, alpha)
}

export function mul_(x: Tensor, y: Tensor | number): Tensor {
  check('mul_', x, y)
  return raw.mul_(x, y)
}

export function div_(x: Tensor, y: Tensor | number): Tensor {
  check('div_', x, y)
  return raw.div_(x, y)
}

export function copy_(x: Tensor, src: Tensor): Tensor {
  check('copy_', x, src)
  return raw.copy_(x, src)
}

export function fill_(x: Tensor, value: number): Tensor {
  check('fill_', x)
  return raw.fill_(x, value)
}

export function zero_(x: Tensor): Tensor {
  check('zero_', x)
  return raw.zero_(x)
}
