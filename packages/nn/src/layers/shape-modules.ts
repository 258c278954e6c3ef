/** Modules that compute nothing: they give back what they get, or give it another shape. PyTorch: `torch.nn.Identity`, `Flatten`, `Unflatten`. */
import { flatten, unflatten } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

/** Gives back what it gets: a place that another module may take. PyTorch: `torch.nn.Identity`. */
export class Identity extends Module {
  /** x as it is. */
  forward(x: Tensor): Tensor {
    return x
  }
}

/** Dimensions startDim … endDim as one; by default all but the first, which counts samples. PyTorch: `torch.nn.Flatten`. */
export class Flatten extends Module {
  /** The first of the dimensions that become one. */
  readonly startDim: number
  /** The last of them. */
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

/** Dimension `dim` as several, of which one may be −1. PyTorch: `torch.nn.Unflatten`. */
export class Unflatten extends Module {
  /** The dimension that becomes several. */
  readonly dim: number
  /** What it becomes; one may be −1. */
  readonly sizes: readonly number[]

  constructor(dim: number, sizes: readonly number[]) {
    super()
    this.dim = dim
    this.sizes = [...sizes]
  }

  /** x with dimension `dim` as `sizes`. @throws SHAPE_MISMATCH */
  forward(x: Tensor): Tensor {
    return unflatten(x, this.dim, this.sizes)
  }

  override extraRepr(): string {
    return extraRepr({ dim: this.dim, sizes: this.sizes })
  }
}
