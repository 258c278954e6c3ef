/**
 * The names and argument lists of the operations of neural networks, once, as `ops.ts` has them for all others. Semantics are those of the functions
 * of the same name in PyTorch's `torch.nn.functional` unless a line says otherwise; shapes are written in its letters: N images (rows), C channels
 * (classes), H height, W width.
 */

/** Ops with a node of their own. Tensors come first (null: left out), then attributes, all of them given: composites fill in what users leave out. */
export interface NeuralOps<T> {
  /** x […, in], weight [out, in], bias [out] → […, out]: x · weightᵀ + bias. */
  linear(x: T, weight: T, bias?: T | null): T
}
