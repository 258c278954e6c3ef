/**
 * Hooks of a node: functions that see, and may replace, the gradients that pass it. A `Node` (`node.ts`) carries them; the engine
 * runs them in PyTorch's order: tensor hooks (one output's gradient each), node pre-hooks (all of them), apply, node post-hooks.
 */
import { PostgradError } from '@postgrad/base'
import type { RemovableHandle, Tensor } from '@postgrad/tensor'
import { argumentText } from '@postgrad/tensor/internal'

/** Gradients, in the order of the inputs or outputs to which they belong; null if there is none. */
export type Grads = readonly (Tensor | null)[]

/** A hook that receives the gradient of one tensor. A tensor that it returns replaces the gradient. It is not called if no gradient arrives. */
export type TensorHook = (grad: Tensor) => Tensor | undefined
/** A hook that receives the gradients of all outputs of a node, before the node runs. Gradients that it returns replace them. */
export type NodePreHook = (grads: Grads) => Grads | undefined
/** A hook that receives the gradients that a node returned for its inputs, and those of its outputs. Gradients that it returns replace those of the inputs. */
export type NodePostHook = (gradInputs: Grads, gradOutputs: Grads) => Grads | undefined

interface SlotHook {
  readonly slot: number
  readonly fn: TensorHook
  /** It writes nothing into the gradient. */
  readonly isOurs: boolean
}

type Keep = (grad: Tensor) => void
type Owns = (slot: number) => boolean

/** The hooks of one node, each kind in order of registration. Made with the first hook: most nodes have none. */
export class NodeHooks {
  private readonly tensor: SlotHook[] = []
  private readonly pre: NodePreHook[] = []
  private readonly post: NodePostHook[] = []
  /** Among the tensor hooks: those that keep the gradient, by slot. */
  private readonly retained = new Map<number, { readonly keep: Keep; readonly handle: RemovableHandle }>()

  addTensorHook(slot: number, fn: TensorHook): RemovableHandle {
    return append(this.tensor, { slot, fn, isOurs: false })
  }

  /** Lets `keep` see the gradient of `slot`, in the order of registration; at most one per slot. */
  retain(slot: number, keep: Keep): void {
    if (this.retained.has(slot)) return
    const fn: TensorHook = (grad) => {
      keep(grad)
      return undefined
    }
    this.retained.set(slot, { keep, handle: append(this.tensor, { slot, fn, isOurs: true }) })
  }

  retains(slot: number): boolean {
    return this.retained.has(slot)
  }

  /** Ends `retain`, and gives what it was called with; null if there was none. */
  release(slot: number): Keep | null {
    const entry = this.retained.get(slot)
    if (entry === undefined) return null
    entry.handle.remove()
    this.retained.delete(slot)
    return entry.keep
  }

  addPreHook(fn: NodePreHook): RemovableHandle {
    // Wrapped, so that one function registered twice gives two handles that remove one registration each.
    return append(this.pre, (grads) => fn(grads))
  }

  addPostHook(fn: NodePostHook): RemovableHandle {
    return append(this.post, (gradInputs, gradOutputs) => fn(gradInputs, gradOutputs))
  }

  /** @param owns whether nobody else has the gradient of a slot */
  runBefore(grads: Grads, owns: Owns): Grads {
    let current = grads
    const ownsNow: Owns = (slot) => current[slot] === grads[slot] && owns(slot)
    // Copies of the lists: a hook may remove itself while it runs.
    for (const { slot, fn, isOurs } of [...this.tensor]) {
      const grad = current[slot]
      if (grad === null || grad === undefined) continue
      if (isOurs) fn(grad)
      else {
        const [replaced] = withOwnGradients(
          [grad],
          () => ownsNow(slot),
          ([given]) => [fn(given!) ?? given!],
        )
        if (replaced !== grad) current = current.with(slot, replaced!)
      }
    }
    for (const fn of [...this.pre]) current = withOwnGradients(current, ownsNow, fn)
    return current
  }

  /**
   * @param ownsInput whether nobody else has the gradient of an input
   * @param ownsOutput whether nobody else has, or still wants, the gradient of an output
   */
  runAfter(gradInputs: Grads, gradOutputs: Grads, ownsInput: Owns, ownsOutput: Owns): Grads {
    let current = gradInputs
    const ownsNow: Owns = (slot) => current[slot] === gradInputs[slot] && ownsInput(slot)
    for (const fn of [...this.post]) {
      current = withOwnGradients(current, ownsNow, (given) =>
        fn(
          given,
          gradOutputs.map((grad, slot) => ownGradient(grad, ownsOutput(slot))),
        ),
      )
    }
    return current
  }
}

/**
 * Runs a hook, which may write into its arguments: it gets copies of the gradients that others also hold. A gradient that it neither writes nor replaces
 * stays itself.
 */
export function withOwnGradients(grads: Grads, owns: Owns, hook: (given: Grads) => Grads | undefined): Grads {
  const given = grads.map((grad, i) => ownGradient(grad, owns(i)))
  const versions = given.map((grad) => grad?.storage.version)
  const returned = hook(given)
  if (returned !== undefined && !Array.isArray(returned)) {
    throw new PostgradError('INVALID_GRADIENT', {
      op: 'hook',
      expected: 'an array of gradients, or nothing',
      got: argumentText(returned),
      remedy: 'Return [grad], with one entry per gradient that the hook was given.',
    })
  }
  return (returned ?? given).map((grad) => {
    const i = given.indexOf(grad)
    return i >= 0 && grad?.storage.version === versions[i] ? grads[i]! : grad
  })
}

/**
 * A hook that clips in place (`g.clamp_(-1, 1)`) must not change what goes to other branches: an addition gives both of its arguments one gradient. Nor can it
 * write into an expanded one, such as that of a mean.
 */
export function ownGradient(grad: Tensor | null, isOwn: boolean): Tensor | null {
  return !grad || grad.isSparse || (isOwn && grad.isContiguous) ? grad : grad.clone()
}

export function append<T>(list: T[], item: T): RemovableHandle {
  list.push(item)
  return {
    remove: () => {
      const at = list.indexOf(item)
      if (at >= 0) list.splice(at, 1)
    },
  }
}
