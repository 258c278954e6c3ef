/** Modules one after the other. PyTorch: `torch.nn.Sequential`. */
import { isThenable } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkedAt, checkedModule } from './containers.js'
import { Module } from './module.js'

/** A module from one tensor to one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor }

/**
 * Modules one after the other, each from one tensor to one tensor: `new Sequential(new Linear(4, 8), new ReLU())`. PyTorch: `torch.nn.Sequential`.
 * @example
 * const model = new Sequential(new Linear(2, 4), new ReLU(), new Linear(4, 1))
 * model.forward(randn([8, 2])).shape // [8, 1]
 */
export class Sequential extends Module implements Iterable<Layer> {
  /** The modules in order. */
  readonly layers: Layer[]

  constructor(...layers: readonly Layer[]) {
    super()
    this.layers = layers.map((layer) => checkedModule('Sequential', layer))
  }

  /** How many there are. */
  get length(): number {
    return this.layers.length
  }

  [Symbol.iterator](): IterableIterator<Layer> {
    return this.layers[Symbol.iterator]()
  }

  /** The layer at this place; −1 is the last. @throws INDEX_OUT_OF_RANGE */
  at(index: number): Layer {
    return checkedAt('Sequential', this.layers, index)
  }

  /** Adds a module at the end. @throws INVALID_ARGUMENT for what is none */
  append(layer: Layer): this {
    this.layers.push(checkedModule('Sequential', layer))
    return this
  }

  /** Layers are named by their places, as in PyTorch: parameters are `0.weight`, `2.bias`. */
  override fieldName(field: string): string {
    return field === 'layers' ? '' : super.fieldName(field)
  }

  /** Runs the modules one after the other and returns the last output; a promise of it if a module returns promises, as a SyncBatchNorm does. */
  forward(x: Tensor): Tensor {
    let y = x
    for (let i = 0; i < this.layers.length; i++) {
      y = this.layers[i]!.forward(y)
      if (isThenable(y as Tensor | PromiseLike<Tensor>)) return this.forwardFrom(i + 1, y) as unknown as Tensor
    }
    return y
  }

  private async forwardFrom(place: number, x: Tensor | PromiseLike<Tensor>): Promise<Tensor> {
    let y = await x
    for (let i = place; i < this.layers.length; i++) y = await this.layers[i]!.forward(y)
    return y
  }
}
