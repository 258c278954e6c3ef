/**
 * What autograd knows of a view: of which tensor it is one, and by which operation. A write into either must show in the other's history, as its
 * values show in the other's elements. Used by `in-place.ts`; made by `record.ts`, for tensors that need no gradient too, because one may be
 * written into them later (`zeros(…).select(0, i).copy_(h)`).
 *
 * Note [Views and writes]
 * A base never hears of its views. A write raises the storage's version; a view that is asked for its history and finds another version than it
 * knows asks its parent again, with the operation that made it. So a write has only to put the base's history right:
 *
 *     base ──narrow──▶ view        view.mul_(w):   out  = view · w                    (an ordinary operation, recorded)
 *       ▲                                          base = CopySlices(base, out)       (gradient of the old base: 0 where the view lies)
 *       └── written, gets the history ◀────────    view = narrow(base)                (when next asked)
 *
 * Chains are kept parent by parent; the base is the tensor at their beginning. A view that was given `requiresGrad_()` is a leaf in its own right
 * and no view any more. PyTorch: `DifferentiableViewMeta`, `rebase_history`, `VariableHooks::grad_fn`.
 */
import { currentScope, withScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import type { AutogradMeta } from '@postgrad/tensor/internal'
import type { AccumulateGrad } from './accumulate-grad.js'
import type { Node } from './node.js'

/** A recorded view operation; arguments that it does not have are undefined. */
export type ViewOp = (x: Tensor, p: unknown, q: unknown, r: unknown) => Tensor

/** One view after the other. */
export type ViewPath = readonly ((x: Tensor) => Tensor)[]

/** The same view of another tensor of the base's shape, recorded if grad mode is on. */
export function viewAlong(path: ViewPath, base: Tensor): Tensor {
  return path.reduce((x, step) => step(x), base)
}

/** Why a view must not be written to while recording: its base would not learn of it. */
export type Untracked = 'made under noGrad' | 'returned by a custom function' | 'the last of a very long chain of views'

/** A longer chain of views of one plain tensor is not followed: `x = x.T` in a loop must not grow. */
const LONGEST_CHAIN = 100

/** Stands in a tensor's `autograd` slot where `VariableMeta` stands in others'. */
export class ViewMeta implements AutogradMeta {
  grad: Tensor | null = null
  accumulateGrad: AccumulateGrad | null = null
  /** Where the chain of views begins; it is no view itself. */
  readonly base: Tensor
  readonly untracked: Untracked | null
  private readonly parent: Tensor
  private readonly op: ViewOp | null
  private readonly p: unknown
  private readonly q: unknown
  private readonly r: unknown
  private readonly depth: number
  private fn: Node | null
  private output: number
  /** Of the storage when `fn` was right. */
  private version: number

  constructor(parent: Tensor, op: ViewOp | null, p: unknown, q: unknown, r: unknown, fn: Node | null, untracked: Untracked | null) {
    const above = viewMetaOf(parent)
    this.base = above === null ? parent : above.base
    this.depth = above === null ? 1 : above.depth + 1
    this.untracked = untracked ?? (fn === null && this.depth > LONGEST_CHAIN ? 'the last of a very long chain of views' : null)
    // What is not followed needs no way back to its parent, only to the base for the error.
    this.parent = this.untracked === null ? parent : this.base
    this.op = this.untracked === null ? op : null
    this.p = p
    this.q = q
    this.r = r
    this.fn = fn
    this.output = 0
    this.version = parent.storage.version
  }

  get gradFn(): Node | null {
    this.refresh()
    return this.fn
  }

  get outputNr(): number {
    this.refresh()
    return this.output
  }

  get requiresGrad(): boolean {
    this.refresh()
    return this.fn !== null
  }

  /** The way from the base to this view. It holds on to no tensor. */
  get path(): ViewPath {
    const { op, p, q, r } = this
    const above = viewMetaOf(this.parent)
    return [...(above === null ? [] : above.path), (x) => op!(x, p, q, r)]
  }

  /** As the output of a custom function's node, whose history is its own affair. */
  static ofCustomFunction(parent: Tensor, fn: Node, outputNr: number): ViewMeta {
    const meta = new ViewMeta(parent, null, undefined, undefined, undefined, fn, 'returned by a custom function')
    meta.output = outputNr
    return meta
  }

  private refresh(): void {
    const { version } = this.parent.storage
    if (version === this.version || this.op === null) return
    this.version = version
    if (!this.parent.requiresGrad) {
      this.fn = null
      return
    }
    const replay = () => this.op!(this.parent, this.p, this.q, this.r)
    const again = currentScope().gradEnabled ? replay() : withScope({ gradEnabled: true }, replay)
    this.fn = again.gradFn as Node | null
  }
}

export function viewMetaOf(t: Tensor): ViewMeta | null {
  return t.autograd instanceof ViewMeta ? t.autograd : null
}
