/**
 * Node and Edge: the graph that a forward pass leaves behind, walked backwards by the engine. A node stands for one executed operation; its
 * `nextEdges` lead to the nodes that made the operation's inputs. Subclasses: `OpNode` (from an operation's row), `AccumulateGrad` (leaves),
 * `CustomNode` (users' functions), `GraphRoot` (where a pass begins), and SendRpcBackward / RecvRpcBackward of `dist-autograd`.
 * PyTorch: `torch/csrc/autograd/function.h`.
 */
import type { DType, GradFunction, RemovableHandle, Tensor } from '@postgrad/tensor'
import type { Memory } from '@postgrad/tensor/internal'
import { noteOrigin } from './anomaly.js'
import { NodeHooks, type NodePostHook, type NodePreHook, type TensorHook } from './hooks.js'

/** Into which node, and to the gradient of which of its forward outputs. */
export interface Edge {
  /** Where the gradient goes. */
  readonly node: Node
  /** Which of the node's outputs in forward it is the gradient of. */
  readonly inputNr: number
}

/** What a node may know of the pass that runs it. */
export interface PassView {
  /** The nodes that the pass goes to; null: to all. */
  readonly needed: { has(node: Node): boolean } | null
  /** Which pass it is: objects to look up by identity. One, or in the second part of passes of two parts those of the first parts. */
  readonly passes: readonly object[]
}

/** What is known of one forward output: a missing gradient is made from it (zeros), an arriving one is checked against it. */
export interface InputMeta {
  /** The output's shape. */
  readonly shape: readonly number[]
  /** The output's dtype. */
  readonly dtype: DType
  /** @internal Where the output is. */
  readonly memory: Memory
}

export const metaOfOutput = ({ shape, dtype, storage }: Tensor): InputMeta => ({ shape, dtype, memory: storage.memory })

/** Sequence number of nodes that run before all others (PyTorch: UINT64_MAX): a leaf's gradient is wanted as soon as it is complete. */
export const HIGHEST_PRIORITY = Number.MAX_SAFE_INTEGER

/**
 * One counter per thread, as in PyTorch. It may be shared by all workers of a thread, because only the order of two numbers on the same
 * graph is ever used, never a number itself.
 */
let nextSequenceNr = 0

/** A node of the graph that backward passes run through, as `tensor.gradFn` shows it. PyTorch: `torch.autograd.graph.Node`. */
export abstract class Node implements GradFunction<Tensor> {
  // Declared, not defined: defining the fields of a base class costs more than the rest of a node (each subclass is a shape of its own).

  /** Of two ready nodes the higher number runs first: the later an operation ran in forward, the earlier in backward. */
  declare readonly sequenceNr: number
  /** One entry per input of the forward operation; null where the input needs no gradient. */
  declare nextEdges: readonly (Edge | null)[]
  /** One entry per output of the forward operation. */
  declare readonly inputMeta: readonly InputMeta[]
  /**
   * How many operations lie between the leaves and this one: 1 + the largest depth of what it was computed from, of a leaf 0. Other than
   * `sequenceNr` it is a fact of the dataflow and not of time: the same on every run, however concurrent calls came to interleave
   * (Note [Causal order] in `input-order.ts`). RecvRpcBackward has that of the SendRpcBackward at its other end.
   */
  declare depth: number
  /**
   * What distributed autograd has noted of the graph behind this node, which does not change: the messages that it came from. Null until somebody looks
   * (`lineage-walk.ts` there).
   */
  declare lineage: object | null
  /** Null until the first hook; `registerHook` and its siblings fill it. */
  declare hooks: NodeHooks | null

  constructor(nextEdges: readonly (Edge | null)[], inputMeta: readonly InputMeta[], sequenceNr: number = nextSequenceNr++) {
    this.sequenceNr = sequenceNr
    this.nextEdges = nextEdges
    this.inputMeta = inputMeta
    let depth = 0
    for (let i = 0; i < nextEdges.length; i++) {
      const edge = nextEdges[i]
      if (edge !== null && edge !== undefined && edge.node.depth >= depth) depth = edge.node.depth + 1
    }
    this.depth = depth
    this.lineage = null
    this.hooks = null
    noteOrigin(this)
  }

  /** PyTorch's name of the node: `AddBackward`, `AccumulateGrad`, `SendRpcBackward`. */
  abstract get name(): string

  /** `nextEdges` as users see them. */
  get nextFunctions(): readonly (readonly [fn: Node | null, outputNr: number])[] {
    return this.nextEdges.map((edge) => (edge === null ? [null, 0] : [edge.node, edge.inputNr]))
  }

  /**
   * Gradients of the outputs (null where none arrived) → gradients of the inputs, aligned with `nextEdges` (null for "none"; the array may be
   * shorter). Must not write into what it is given: others may hold it. `pass` is the GraphTask of the pass that runs the node: a hook may run a
   * pass of its own through it in the middle of another.
   */
  abstract apply(grads: readonly (Tensor | null)[], pass: PassView): readonly (Tensor | null)[]

  /** True where `apply` computes just the gradients of inputs that the pass goes to, each as if it were computed alone. */
  get computesApart(): boolean {
    return false
  }

  /**
   * True where every tensor that `apply` returns is either a new one that nobody else holds, or shares its storage with one of `grads`. The
   * engine then may keep or add to the new ones without a copy.
   */
  get returnsFresh(): boolean {
    return false
  }

  /** Drops saved variables. Called by the engine after `apply`, unless the task keeps the graph. */
  release(): void {}

  /** Called with the gradients of all outputs before `apply`; may return others. */
  registerPreHook(fn: NodePreHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addPreHook(fn)
  }

  /** Called after `apply` with what it returned and what it was given; may return other gradients of the inputs. */
  registerHook(fn: NodePostHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addPostHook(fn)
  }

  /** Called with the gradient of forward output `slot`, before node pre-hooks; what `Tensor.registerHook` uses. */
  registerTensorHook(slot: number, fn: TensorHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addTensorHook(slot, fn)
  }
}

/** Whether the gradient along `edge` is wanted. */
export function isWanted(edge: Edge | null | undefined, { needed }: PassView): boolean {
  return edge !== null && edge !== undefined && (needed === null || needed.has(edge.node))
}
