/**
 * The gradients that a context's passes gave one worker's leaves, and their sums. `context-passes.ts` says which count.
 *
 * Note [Sums over passes]
 * ~~~~~~~~~~~~~~~~~~~~~~~
 * Floating-point sums depend on their order, and no order of the passes is the same on every run: passes that are begun without awaiting each other overlap
 * or not, a worker learns of the passes of two roots in either order, and two functions that are served at once begin theirs as messages arrive. So
 * **the gradients that all passes left at a leaf are added element by element, in the order of their bits** (`orderedSum`), as contributions of equal depth are within a pass
 * (autograd's Note [Causal order]). When a pass began or ended, and which worker was its root, is nowhere in that.
 *
 * The program may write to the sum in place: clipping, a hook. The sum is then a value of the program's own. It comes first, and gradients of other passes
 * are added to it, again in the order of their bits.
 *
 *     passes gave          a, b          a, b, c                       a, b, c, d
 *     the sum              a + b         written w, then w + c         (w + c) written v, then v + d
 *
 * The price: each pass's gradient is kept until somebody has written to the sum, or the context is released. n passes cost n gradients of each leaf.
 */
import { operations } from '@postgrad/autograd/internal'
import { withScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { records, settle } from '@postgrad/tensor/internal'

/** Of one pass: a gradient for each leaf that it reached. */
export type PassGradients = ReadonlyMap<Tensor, Tensor>

/** A sum, and the gradients of passes that are in it. */
interface Sum {
  readonly value: Tensor
  of: readonly Tensor[]
}

export class GradientSums {
  /** Null until somebody asks, as few workers do. */
  private leaves: Map<Tensor, LeafSum> | null = null
  /** Of passes that have ended. They are only looked at when somebody asks. */
  private ended: PassGradients[] = []

  /** The pass has ended: what it gave stays. */
  add(gradients: PassGradients): void {
    if (records) settle(gradients.values())
    if (gradients.size > 0) this.ended.push(gradients)
  }

  /** The sums of what has ended and of `running`, passes that may still be aborted. Sums stay the same tensors while nothing is added. */
  over(running: readonly PassGradients[]): Map<Tensor, Tensor> {
    for (const gradients of this.ended) for (const [leaf, grad] of gradients) this.leaf(leaf).ended.push(grad)
    this.ended = []
    const parts = running.length === 0 ? null : new Map<Tensor, Tensor[]>()
    for (const gradients of running) {
      for (const [leaf, grad] of gradients) {
        this.leaf(leaf)
        const list = parts!.get(leaf)
        if (list === undefined) parts!.set(leaf, [grad])
        else list.push(grad)
      }
    }
    const sums = new Map<Tensor, Tensor>()
    for (const [leaf, of] of this.leaves ?? NO_LEAVES) {
      const sum = of.with(parts?.get(leaf) ?? NONE)
      if (sum !== null) sums.set(leaf, sum)
    }
    return sums
  }

  private leaf(leaf: Tensor): LeafSum {
    this.leaves ??= new Map()
    let sum = this.leaves.get(leaf)
    if (sum === undefined) {
      sum = new LeafSum()
      this.leaves.set(leaf, sum)
    }
    return sum
  }

  clear(): void {
    this.leaves = null
    this.ended = []
  }
}

const NONE: readonly Tensor[] = Object.freeze([])
const NO_LEAVES: readonly (readonly [Tensor, LeafSum])[] = Object.freeze([])

class LeafSum {
  /** Gradients of passes that have ended, unless they are part of `written` for good. */
  ended: Tensor[] = []
  /** The last sum that somebody wrote to. */
  private written: Sum | null = null
  /** The sum that was asked for last, and its version then. */
  private shown: (Sum & { readonly version: number }) | null = null

  /** Null where nothing is left: the only pass was aborted. */
  with(running: readonly Tensor[]): Tensor | null {
    const parts = [...this.ended, ...running]
    if (parts.length === 1 && this.shown === null && this.written === null) {
      // Nearly always: of one pass, asked for the first time. The rest of this method would do the same in more steps.
      const value = parts[0] as Tensor
      this.shown = { value, of: parts, version: value.storage.version }
      return value
    }
    const present = new Set(parts)
    const isPresent = (part: Tensor) => present.has(part)
    if (this.shown !== null && this.shown.value.storage.version !== this.shown.version) this.written = this.shown
    // The written sum has a pass in it that was aborted since: the others count as if nobody had written.
    if (this.written?.of.every(isPresent) === false) this.written = null
    if (this.shown === null || this.shown.of.length !== parts.length || !this.shown.of.every(isPresent)) {
      const value = this.sum(parts)
      if (value === null) {
        this.shown = null
        return null
      }
      this.shown = { value, of: parts, version: value.storage.version }
    }
    this.letGo()
    return this.shown.value
  }

  private sum(parts: readonly Tensor[]): Tensor | null {
    const { written } = this
    const inside = new Set(written?.of)
    const others = parts.filter((part) => !inside.has(part))
    const terms = written === null ? others : [written.value, ...others]
    if (terms.length <= 1) return terms[0] ?? null
    // Out of place: an earlier sum, or a part, stays as the program saw it. Gradients of a pass with createGraph always keep their history.
    return withScope({ gradEnabled: true }, () => operations.orderedSum(terms, terms.length - others.length))
  }

  /** The written sum holds parts that nothing can take out any more. */
  private letGo(): void {
    const { written, shown, ended } = this
    if (written === null || written.of.length === 0) return
    const gone = new Set(written.of)
    const left = ended.filter((part) => !gone.has(part))
    if (ended.length - left.length < gone.size) return
    this.ended = left
    written.of = NONE
    if (shown !== null && shown !== written) shown.of = shown.of.filter((part) => !gone.has(part))
  }
}
