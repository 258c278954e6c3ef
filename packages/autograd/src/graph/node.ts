/**
 * Node and Edge: the graph that a forward pass records, and the engine walks backwards. A node represents one executed operation; its
 * `nextEdges` lead to the nodes that made the operation's inputs. Subclasses: `OpNode` (from an operation's row), `AccumulateGrad` (leaves),
 * `CustomNode` (users' functions), `GraphRoot` (where a pass begins), and SendRpcBackward / RecvRpcBackward of `dist-autograd`.
 * PyTorch: `torch/csrc/autograd/function.h`.
 */
import type { DType, GradFunction, RemovableHandle, Tensor } from '@postgrad/tensor'
import type { Memory } from '@postgrad/tensor/internal'
import { anomalySeen, noteOrigin } from './anomaly.js'
import { NodeHooks, type NodePostHook, type NodePreHook, type TensorHook } from './hooks.js'

/** An edge of the graph: it leads a gradient to a node, as the gradient of one of the node's forward outputs. */
export interface Edge {
  /** The node that receives the gradient. */
  readonly node: Node
  /** The number of the node's forward output to which the gradient belongs. */
  readonly inputNr: number
}

/** The facts about a pass that its nodes may use. */
export interface PassView {
  /** The nodes that the pass visits; null: all. */
  readonly needed: { has(node: Node): boolean } | null
  /** Objects that identify the pass: look them up by identity. Usually there is one. The second part of a two-part pass has those of the first parts. */
  readonly passes: readonly object[]
}

/** Shape and dtype of one forward output. If no gradient arrives, the engine makes zeros from it; if one arrives, the engine checks it. */
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

/**
 * A node of the graph through which backward passes run, as `tensor.gradFn` returns it. PyTorch: `torch.autograd.graph.Node`.
 * @example tensor([1], { requiresGrad: true }).mul(2).gradFn?.name // 'MulBackward'
 */
export abstract class Node implements GradFunction<Tensor> {
  // Declared, not defined: defining the fields of a base class costs more than the rest of a node (each subclass is a shape of its own).

  /** The place of the operation in the order of forward. Of two ready nodes, the one with the higher number runs first. */
  declare readonly sequenceNr: number
  /** One entry for each input of the forward operation; null if that input needs no gradient. */
  declare nextEdges: readonly (Edge | null)[]
  /** One entry for each output of the forward operation. */
  declare readonly inputMeta: readonly InputMeta[]
  /**
   * The number of operations between the leaves and this node: 0 for a leaf, else 1 + the largest depth of its inputs. It is the same on every run, in whatever
   * order concurrent calls run, unlike `sequenceNr` (Note [Causal order] in `input-order.ts`). RecvRpcBackward has the depth of the SendRpcBackward at its
   * other end.
   */
  declare depth: number
  /** The messages that this node's graph came from, as distributed autograd noted them; they do not change. Null until distributed autograd reads it (`lineage-walk.ts` there). */
  declare lineage: object | null
  /** The hooks of the node; null until the first one is registered. */
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
    if (anomalySeen) noteOrigin(this)
  }

  /** The name of the node, as in PyTorch: `AddBackward`, `AccumulateGrad`, `SendRpcBackward`. */
  abstract get name(): string

  /** For each input of the operation: the node that receives its gradient, and to which output of that node the gradient belongs. PyTorch: `next_functions`. */
  get nextFunctions(): readonly (readonly [fn: Node | null, outputNr: number])[] {
    return this.nextEdges.map((edge) => (edge === null ? [null, 0] : [edge.node, edge.inputNr]))
  }

  /**
   * Computes the gradients of the inputs from the gradients of the outputs (null: none arrived). The result has an entry for each of `nextEdges` (null: no
   * gradient), and may be shorter. `apply` must not write into `grads`: other code may hold them. `pass` describes the pass that runs the node: a hook may run
   * another pass through the node in the middle of this one.
   */
  abstract apply(grads: readonly (Tensor | null)[], pass: PassView): readonly (Tensor | null)[]

  /** Whether `apply` computes only the gradients of inputs that the pass visits, each as if it were the only one. */
  get computesApart(): boolean {
    return false
  }

  /**
   * Whether every tensor that `apply` returns is new and held by nobody else, or shares its storage with one of `grads`. The engine may then keep new tensors,
   * or add to them, without a copy.
   */
  get returnsFresh(): boolean {
    return false
  }

  /** Drops the saved variables. The engine calls it after `apply`, unless the pass keeps the graph. */
  release(): void {}

  /** Calls `fn` before `apply`, with the gradients of all outputs. `fn` may return other gradients. */
  registerPreHook(fn: NodePreHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addPreHook(fn)
  }

  /** Calls `fn` after `apply`, with the results and the arguments of `apply`. `fn` may return other gradients of the inputs. */
  registerHook(fn: NodePostHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addPostHook(fn)
  }

  /** Calls `fn` with the gradient of forward output number `slot`, before the pre-hooks of the node. `Tensor.registerHook` uses it. */
  registerTensorHook(slot: number, fn: TensorHook): RemovableHandle {
    this.hooks ??= new NodeHooks()
    return this.hooks.addTensorHook(slot, fn)
  }
}

/** Whether the gradient along `edge` is wanted. */
export function isWanted(edge: Edge | null | undefined, { needed }: PassView): boolean {
  return edge !== null && edge !== undefined && (needed === null || needed.has(edge.node))
}
