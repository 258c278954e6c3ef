/** Modules one after the other. PyTorch: `torch.nn.Sequential`. */
import { isThenable } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkedAt, checkedModule } from './containers.js'
import { Module } from './module.js'

/** A module whose forward takes one tensor and returns one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor }

/**
 * Modules that run one after the other, each from one tensor to one tensor. PyTorch: `torch.nn.Sequential`.
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

  /** The number of modules. */
  get length(): number {
    return this.layers.length
  }

  [Symbol.iterator](): IterableIterator<Layer> {
    return this.layers[Symbol.iterator]()
  }

  /** The module at place `index`; −1 is the last. @throws INDEX_OUT_OF_RANGE if that place does not exist */
  at(index: number): Layer {
    return checkedAt('Sequential', this.layers, index)
  }

  /** Adds a module at the end, and returns the Sequential. @throws INVALID_ARGUMENT if it is not a module */
  append(layer: Layer): this {
    this.layers.push(checkedModule('Sequential', layer))
    return this
  }

  /** The name of a field in paths. Layers are named by their places, as in PyTorch: parameters are `0.weight`, `2.bias`. */
  override fieldName(field: string): string {
    return field === 'layers' ? '' : super.fieldName(field)
  }

  /** Runs the modules one after the other, and returns the last output. If a module returns a promise, as a SyncBatchNorm does, the result is a promise, too. */
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
