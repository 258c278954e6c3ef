/** Modules one after the other. PyTorch: `torch.nn.Sequential`. */
import type { Tensor } from '@postgrad/tensor'
import { Module } from './module.js'

/** A module from one tensor to one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor }

export class Sequential extends Module {
  readonly layers: readonly Layer[]

  constructor(...layers: readonly Layer[]) {
    super()
    this.layers = layers
  }

  /** Named by their places, as in PyTorch: parameters are `0.weight`, `2.bias`. */
  override *namedChildren(): IterableIterator<[name: string, child: Module]> {
    for (const [place, layer] of this.layers.entries()) yield [String(place), layer]
  }

  forward(x: Tensor): Tensor {
    return this.layers.reduce((y, layer) => layer.forward(y), x)
  }
}
