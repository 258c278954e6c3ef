/** Modules that compute nothing: they return their input as it is, or reshaped. PyTorch: `torch.nn.Identity`, `Flatten`, `Unflatten`. */
import { flatten, unflatten } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

/**
 * Returns its input unchanged; it can take the place of another module. PyTorch: `torch.nn.Identity`.
 * @example new Identity().forward(tensor([1, 2])) // [1, 2]
 */
export class Identity extends Module {
  /** x of any shape → x itself. */
  forward(x: Tensor): Tensor {
    return x
  }
}

/**
 * Joins the dimensions startDim (default 1) … endDim (default −1) into one. PyTorch: `torch.nn.Flatten`.
 * @example new Flatten().forward(randn([8, 16, 4, 4])).shape // [8, 256]
 */
export class Flatten extends Module {
  /** The first of the dimensions that are joined. */
  readonly startDim: number
  /** The last of the dimensions that are joined. */
  readonly endDim: number

  constructor(startDim = 1, endDim = -1) {
    super()
    this.startDim = startDim
    this.endDim = endDim
  }

  /** x [N, …] → [N, rest] by default. @throws DIM_OUT_OF_RANGE if x does not have the dimensions startDim and endDim; INVALID_ARGUMENT if startDim comes after endDim */
  forward(x: Tensor): Tensor {
    return flatten(x, this.startDim, this.endDim)
  }

  override extraRepr(): string {
    return extraRepr({ startDim: this.startDim, endDim: this.endDim })
  }
}

/**
 * Splits dimension `dim` into several. One size may be −1; it then follows from the others. PyTorch: `torch.nn.Unflatten`.
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

  /**
   * x → x with dimension `dim` split into `sizes`.
   * @throws SHAPE_MISMATCH if the sizes do not multiply to the extent of `dim`; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
   */
  forward(x: Tensor): Tensor {
    return unflatten(x, this.dim, this.sizes)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim, sizes: this.sizes })
  }
}
