/**
 * Autograd's record of a view: its base tensor, and the operation that made it. A write into either must show in the other's history, as its
 * values show in the other's elements. Used by `in-place.ts`; made by `record.ts`, for tensors that need no gradient too, because one may be
 * written into them later (`zeros(…).select(0, i).copy_(h)`).
 *
 * Note [Views and writes]
 * A base does not know its views. A write raises the storage's version. When a view is asked for its history and finds a new version, it asks
 * its parent again, with the operation that made it. So a write has only to put the base's history right:
 *
 *     base ──narrow──▶ view        view.mul_(w):   out  = view · w                    (an ordinary operation, recorded)
 *       ▲                                          base = CopySlices(base, out)       (gradient of the old base: 0 where the view lies)
 *       └── written, gets the history ◀────────    view = narrow(base)                (when next asked)
 *
 * Chains are kept parent by parent; the base is the tensor at their beginning. A view that was given `requiresGrad_()` is a leaf in its own right
 * and not a view any more. Some views have no way back: a custom function returned them, or they were made under noGrad. Neither they nor their own
 * views may be written to, and after a recorded write into the base their history may not be asked for: it would be that of the old value. A write
 * under noGrad changes no history, nor does one to a detached alias of the base, so both leave theirs valid (PyTorch refuses there, too). PyTorch:
 * `DifferentiableViewMeta`, `CreationMeta`, `rebase_history`, `VariableHooks::grad_fn`.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, withScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import type { AutogradMeta } from '@postgrad/tensor/internal'
import type { AccumulateGrad } from './accumulate-grad.js'
import type { Node } from './node.js'
import { moveRetained } from './retain-grad.js'
import { metaOf } from './variable.js'

/** A recorded view operation; arguments that it does not have are undefined. */
export type ViewOp = (x: Tensor, p: unknown, q: unknown, r: unknown) => Tensor

/** One view after the other. */
export type ViewPath = readonly ((x: Tensor) => Tensor)[]

/** The same view of another tensor of the base's shape, recorded if grad mode is on. */
export function viewAlong(path: ViewPath, base: Tensor): Tensor {
  return path.reduce((x, step) => step(x), base)
}

/** Why a view has no way back: its base would not learn of a write into the view, nor the view of one into its base. */
export type Untracked =
  | 'made under noGrad'
  | 'returned by a custom function or by a module with a backward hook'
  | 'the last of a very long chain of views'

/** A longer chain of views of one plain tensor is not followed: `x = x.T` in a loop must not grow. */
const LONGEST_CHAIN = 100

/** Fills a view's `autograd` slot, as `VariableMeta` fills that of others. */
export class ViewMeta implements AutogradMeta {
  grad: Tensor | null = null
  isGradUnseen = false
  accumulateGrad: AccumulateGrad | null = null
  /** The beginning of the chain of views; not a view. */
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
    const isTooLong = fn === null && this.depth > LONGEST_CHAIN
    this.untracked = untracked ?? above?.untracked ?? (isTooLong ? 'the last of a very long chain of views' : null)
    // An untracked view needs no way back to its parent, only to the base for the error.
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

  /** Throws nothing, so values can be read under noGrad; who records asks for `gradFn` next. */
  get requiresGrad(): boolean {
    if (this.untracked !== null) return this.fn !== null || this.isOutdated
    this.refresh()
    return this.fn !== null
  }

  /** The way from the base to this view. It holds on to no tensor. */
  get path(): ViewPath {
    return this.chain(() => true).map(
      ({ op, p, q, r }) =>
        (x) =>
          op!(x, p, q, r),
    )
  }

  /** As the output of a custom function's node, whose history is its own affair. */
  static ofCustomFunction(parent: Tensor, fn: Node, outputNr: number): ViewMeta {
    const meta = new ViewMeta(
      parent,
      null,
      undefined,
      undefined,
      undefined,
      fn,
      'returned by a custom function or by a module with a backward hook',
    )
    meta.output = outputNr
    return meta
  }

  /** Whether a recorded write has changed what this view shows since its history was right, and nothing can put that right. */
  private get isOutdated(): boolean {
    return (metaOf(this.base)?.recordedAt ?? 0) > this.version && (this.fn !== null || this.base.requiresGrad)
  }

  private refresh(): void {
    const { version } = this.base.storage
    if (version === this.version) return
    if (this.untracked === null) for (const view of this.chain((each) => each.version !== version)) view.replay(version)
    else if (this.isOutdated) throw this.outdated(this.untracked)
  }

  /** This view and those above it, as far as `wanted` says so, the one next to the base first. A loop, since a chain may be longer than a stack. */
  private chain(wanted: (view: ViewMeta) => boolean): ViewMeta[] {
    const views: ViewMeta[] = []
    let view = viewMetaOf(this.parent)
    if (wanted(this)) views.push(this)
    for (; view !== null && wanted(view); view = viewMetaOf(view.parent)) views.push(view)
    return views.reverse()
  }

  private replay(version: number): void {
    this.version = version
    if (!this.parent.requiresGrad) {
      this.fn = null
      return
    }
    const run = () => this.op!(this.parent, this.p, this.q, this.r)
    const again = currentScope().gradEnabled ? run() : withScope({ gradEnabled: true }, run)
    const before = this.fn
    this.fn = again.gradFn as Node | null
    if (this.fn !== null) moveRetained(before, this.output, this.fn, this.output)
  }

  private outdated(why: Untracked): PostgradError {
    return new PostgradError('INPLACE_ON_VIEW', {
      op: this.fn?.name ?? 'gradFn',
      expected: 'a view whose base was not written to since the view was made',
      got: `a view that was ${why}, of a base that an in-place operation has written to while recording`,
      remedy: 'Use the view before the write, write to a clone(), or make the view again after the write.',
      values: { base: [...this.base.shape] },
    })
  }
}

export function viewMetaOf(t: Tensor): ViewMeta | null {
  return t.autograd instanceof ViewMeta ? t.autograd : null
}
