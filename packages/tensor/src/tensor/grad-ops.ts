/** Autograd's methods of tensors that are not operations. Generic in the tensor type, so that it does not import `tensor.ts`. */

/** Options of a backward pass: what it keeps, and whether it is recorded. */
export interface BackwardOptions {
  /** Whether to keep the tensors that the graph saved, so that another pass can run over it; default: the value of `createGraph`. */
  readonly retainGraph?: boolean
  /** Whether to record the pass itself, so that its gradients have gradients; default false. */
  readonly createGraph?: boolean
}

/** Options of `tensor.backward` and `backward`: what the pass keeps, whether it is recorded, and which tensors get gradients. */
export interface BackwardPassOptions<T> extends BackwardOptions {
  /**
   * The only tensors, leaves or not, that get a gradient in `.grad`. Only nodes that lead to one of them run. Default: every leaf. A tensor that the roots do
   * not depend on gets nothing.
   */
  readonly inputs?: readonly T[]
}

/** The result of registering a hook. */
export interface RemovableHandle {
  /** Removes the hook. A second call does nothing. */
  remove(): void
}

/** A node of the graph: a tensor's `gradFn`. PyTorch: `torch.autograd.graph.Node`. */
export interface GradFunction<T> {
  /** The name of the node, such as `AddBackward` or `AccumulateGrad`. */
  readonly name: string
  /** For each input of the operation: the node that receives its gradient, and to which output of that node the gradient belongs; null if no gradient is needed. */
  readonly nextFunctions: readonly (readonly [fn: GradFunction<T> | null, outputNr: number])[]
  /**
   * Calls `hook` after the node ran, with the gradients of the inputs and of the outputs. The hook may return other gradients of the inputs, or write into
   * them. Other nodes that hold the same gradient do not see what the hook writes.
   */
  registerHook(
    hook: (gradInputs: readonly (T | null)[], gradOutputs: readonly (T | null)[]) => readonly (T | null)[] | undefined,
  ): RemovableHandle
  /** Calls `hook` before the node runs, with the gradients of its outputs. The hook may return others, or write into them. Other nodes do not see what it writes. */
  registerPreHook(hook: (gradOutputs: readonly (T | null)[]) => readonly (T | null)[] | undefined): RemovableHandle
}

export interface GradOps<T> {
  requiresGrad_(x: T, flag: boolean): T
  backward(x: T, gradient: T | null | undefined, options: BackwardPassOptions<T> | undefined): void
  /** Shares the storage, has no history. */
  detach(x: T): T
  /** `elements`, which were read from x, with x's history. */
  arrived(x: T, elements: T): T
  /** Takes x's history away. */
  detach_(x: T): T
  /** Lets the gradient of a non-leaf be kept in its `.grad`. */
  retainGrad(x: T): void
  retainsGrad(x: T): boolean
  /** Called with each gradient of x; may return another in its place. */
  registerHook(x: T, hook: (grad: T) => T | undefined): RemovableHandle
  /** Called with a leaf each time that its `.grad` was added to. */
  registerPostAccumulateGradHook(x: T, hook: (x: T) => void): RemovableHandle
}
