/** Modules that compute nothing: they return their input as it is, or reshaped. PyTorch: `torch.nn.Identity`, `Flatten`, `Unflatten`. */
import { flatten, unflatten } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

/**
 * Returns its argument unchanged: a placeholder for another module. PyTorch: `torch.nn.Identity`.
 * @example new Identity().forward(tensor([1, 2])) // [1, 2]
 */
export class Identity extends Module {
  /** Returns x. */
  forward(x: Tensor): Tensor {
    return x
  }
}

/**
 * Joins the dimensions startDim … endDim into one; by default all but the first, the batch dimension. PyTorch: `torch.nn.Flatten`.
 * @example new Flatten().forward(randn([8, 16, 4, 4])).shape // [8, 256]
 */
export class Flatten extends Module {
  /** The first of the joined dimensions. */
  readonly startDim: number
  /** The last of the joined dimensions. */
  readonly endDim: number

  constructor(startDim = 1, endDim = -1) {
    super()
    this.startDim = startDim
    this.endDim = endDim
  }

  /** x [N, …] → [N, rest], unless the constructor says otherwise. @throws INVALID_ARGUMENT, INDEX_OUT_OF_RANGE */
  forward(x: Tensor): Tensor {
    return flatten(x, this.startDim, this.endDim)
  }

  override extraRepr(): string {
    return extraRepr({ startDim: this.startDim, endDim: this.endDim })
  }
}

/**
 * Splits dimension `dim` into several. One size may be −1: it follows from the others. PyTorch: `torch.nn.Unflatten`.
 * @example new Unflatten(1, [3, -1]).forward(randn([8, 12])).shape // [8, 3, 4]
 */
export class Unflatten extends Module {
  /** The dimension that is split. */
  readonly dim: number
  /** The sizes of the new dimensions; one may be −1. */
  readonly sizes: readonly number[]

  constructor(dim: number, sizes: readonly number[]) {
    super()
    this.dim = dim
    this.sizes = [...sizes]
  }

  /** x with dimension `dim` split into `sizes`. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return unflatten(x, this.dim, this.sizes)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim, sizes: this.sizes })
  }
}
