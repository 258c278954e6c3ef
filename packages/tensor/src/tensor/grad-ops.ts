/** What only autograd can do with a tensor, in addition to operations. Generic in the tensor type, so that it imports nothing above it. */

/** `retainGraph` (default: createGraph) keeps what the graph saved, for another pass; `createGraph` (default false) records this one. */
export interface BackwardOptions {
  /** Keeps what the graph saved, for another pass; default `createGraph`. */
  readonly retainGraph?: boolean
  /** Records the pass itself, for gradients of gradients; default false. */
  readonly createGraph?: boolean
}

/** Of `tensor.backward` and `backward`: what is kept, recorded, and which leaves get gradients. */
export interface BackwardPassOptions<T> extends BackwardOptions {
  /**
   * The only tensors whose `.grad` is added to, leaves or not; nothing is run that does not lead to one of them. Default: every leaf. One that the
   * roots do not depend on gets nothing.
   */
  readonly inputs?: readonly T[]
}

/** What registering a hook gives. */
export interface RemovableHandle {
  /** Takes the hook off; idempotent. */
  remove(): void
}

/** A node of the graph, as a tensor's `gradFn` shows it. PyTorch: `torch.autograd.graph.Node`. */
export interface GradFunction<T> {
  /** `AddBackward`, `AccumulateGrad`. */
  readonly name: string
  /** For each input of the operation: the node that its gradient goes to and which of that node's outputs it is; null where none is needed. */
  readonly nextFunctions: readonly (readonly [fn: GradFunction<T> | null, outputNr: number])[]
  /**
   * Called after the node ran, with the gradients of its inputs and of its outputs; may return others of the inputs, or write into those. What a hook writes reaches no
   * other node that has the same gradient.
   */
  registerHook(
    hook: (gradInputs: readonly (T | null)[], gradOutputs: readonly (T | null)[]) => readonly (T | null)[] | undefined,
  ): RemovableHandle
  /** Called before the node runs, with the gradients of its outputs; may return others, or write into those: no other node gets that. */
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
