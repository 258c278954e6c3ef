/**
 * Hooks of a node: functions that see, and may replace, the gradients that pass it. Below stands `node.ts`, which carries them; the engine
 * runs them in PyTorch's order: tensor hooks (one output's gradient each), node pre-hooks (all of them), apply, node post-hooks.
 */
import type { RemovableHandle, Tensor } from '@postgrad/tensor'

/** Gradients in the order of the inputs or outputs that they belong to; null where there is none. */
export type Grads = readonly (Tensor | null)[]

/** Sees the gradient of one tensor; what it returns, unless undefined, takes its place. Not called where no gradient arrives. */
export type TensorHook = (grad: Tensor) => Tensor | undefined
/** Sees the gradients of all outputs of a node before it runs. */
export type NodePreHook = (grads: Grads) => Grads | undefined
/** Sees what a node returned (gradients of its inputs) and what it was given (gradients of its outputs). */
export type NodePostHook = (gradInputs: Grads, gradOutputs: Grads) => Grads | undefined

interface SlotHook {
  readonly slot: number
  readonly fn: TensorHook
}

/** The hooks of one node, each kind in order of registration. Made with the first hook: most nodes have none. */
export class NodeHooks {
  private readonly tensor: SlotHook[] = []
  private readonly pre: NodePreHook[] = []
  private readonly post: NodePostHook[] = []
  /** Among the tensor hooks: those that keep the gradient, by slot. */
  private readonly retained = new Map<number, RemovableHandle>()

  addTensorHook(slot: number, fn: TensorHook): RemovableHandle {
    return append(this.tensor, { slot, fn })
  }

  /** Lets `keep` see the gradient of `slot`, in the order of registration; at most one per slot. */
  retain(slot: number, keep: (grad: Tensor) => void): void {
    if (this.retained.has(slot)) return
    const fn: TensorHook = (grad) => {
      keep(grad)
      return undefined
    }
    this.retained.set(slot, append(this.tensor, { slot, fn }))
  }

  retains(slot: number): boolean {
    return this.retained.has(slot)
  }

  /** Ends `retain`; says whether there was one. */
  release(slot: number): boolean {
    this.retained.get(slot)?.remove()
    return this.retained.delete(slot)
  }

  addPreHook(fn: NodePreHook): RemovableHandle {
    // Wrapped, so that one function registered twice gives two handles that remove one registration each.
    return append(this.pre, (grads) => fn(grads))
  }

  addPostHook(fn: NodePostHook): RemovableHandle {
    return append(this.post, (gradInputs, gradOutputs) => fn(gradInputs, gradOutputs))
  }

  runBefore(grads: Grads): Grads {
    let current = grads
    // Copies of the lists: a hook may remove itself while it runs.
    for (const { slot, fn } of [...this.tensor]) {
      const grad = current[slot]
      if (grad === null || grad === undefined) continue
      const replaced = fn(grad)
      if (replaced !== undefined && replaced !== grad) current = current.with(slot, replaced)
    }
    for (const fn of [...this.pre]) current = fn(current) ?? current
    return current
  }

  runAfter(gradInputs: Grads, gradOutputs: Grads): Grads {
    let current = gradInputs
    for (const fn of [...this.post]) current = fn(current, gradOutputs) ?? current
    return current
  }
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
