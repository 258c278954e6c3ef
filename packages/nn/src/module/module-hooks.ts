/**
 * Hooks around a module's forward. The first registration puts a forward on the instance that runs the hooks around the class's; the last removal
 * deletes it. So `model.forward(x)` runs hooks for every caller, and a module without hooks pays nothing. PyTorch needs `model(x)` for it.
 *
 * `module.ts` has the public methods.
 */
import { defineFunction } from '@postgrad/autograd'
import { ownGradient, withOwnGradients } from '@postgrad/autograd/internal'
import { isThenable } from '@postgrad/base/internal'
import { isTensor, type RemovableHandle, type Tensor } from '@postgrad/tensor'
import { isPlain } from './collections.js'

/** A hook that is called before forward, with the arguments of forward. It may return other arguments: an array of them, or a single argument that is not an array. */
export type ForwardPreHook<M> = (module: M, args: readonly unknown[]) => unknown
/**
 * A hook that is called after forward, with the arguments and the result of forward. If forward is async, it is called with the settled result. It may return
 * another result.
 */
export type ForwardHook<M> = (module: M, args: readonly unknown[], output: unknown) => unknown
/**
 * A hook that is called in backward with a gradient for each argument of forward and for each item of its result; null if there is none. It may return other
 * gradients for the arguments.
 *
 * An argument has a gradient only if it is a tensor itself, not an array or object of tensors. Items of a result also count inside arrays and plain objects, at
 * any depth, in order. A hook that writes into a gradient changes it for this module only.
 *
 * If no argument requires grad, the hook is called as soon as the gradients of the result are known. If no item of the result requires grad, it is called as
 * soon as the gradients of the arguments are known, and receives null for each item of the result.
 */
export type FullBackwardHook<M> = (
  module: M,
  gradInputs: readonly (Tensor | null)[],
  gradOutputs: readonly (Tensor | null)[],
) => readonly (Tensor | null)[] | undefined

type Forward = (...args: unknown[]) => unknown
type Gradients = (Tensor | null)[]

/** An entry of its own for each registration, so that a hook that was registered twice can be taken off once. */
interface Entry<Hook> {
  readonly hook: Hook
}

export class ModuleHooks {
  readonly pre = new Set<Entry<ForwardPreHook<object>>>()
  readonly post = new Set<Entry<ForwardHook<object>>>()
  readonly back = new Set<Entry<FullBackwardHook<object>>>()
  private readonly module: { forward?: Forward }
  /** The instance's own forward before, such as an arrow function in a field. */
  private own: PropertyDescriptor | undefined = undefined

  constructor(module: object) {
    this.module = module
  }

  add<Hook>(entries: Set<Entry<Hook>>, hook: Hook): RemovableHandle {
    if (this.count === 0) this.attach()
    const entry = { hook }
    entries.add(entry)
    return {
      remove: () => {
        if (entries.delete(entry) && this.count === 0) this.detach()
      },
    }
  }

  private get count(): number {
    return this.pre.size + this.post.size + this.back.size
  }

  private attach(): void {
    this.own = Object.getOwnPropertyDescriptor(this.module, 'forward')
    const inner = this.module.forward!.bind(this.module)
    const value: Forward = (...args) => this.run(inner, args)
    // Not enumerable: it is none of the model's fields.
    Object.defineProperty(this.module, 'forward', { value, configurable: true, writable: true, enumerable: false })
  }

  private detach(): void {
    if (this.own === undefined) delete this.module.forward
    else Object.defineProperty(this.module, 'forward', this.own)
  }

  private run(inner: Forward, given: unknown[]): unknown {
    let args: unknown[] = given
    for (const { hook } of this.pre) {
      const result = hook(this.module, args)
      if (result !== undefined) args = Array.isArray(result) ? result : [result]
    }
    const pass = this.back.size === 0 ? null : new BackwardHooks(this.module, [...this.back])
    const output = inner(...(pass === null ? args : pass.onInputs(args)))
    return isThenable(output) ? output.then((settled) => this.finish(args, settled, pass)) : this.finish(args, output, pass)
  }

  private finish(args: unknown[], result: unknown, pass: BackwardHooks | null): unknown {
    let output = result
    for (const { hook } of this.post) output = hook(this.module, args, output) ?? output
    return pass === null ? output : pass.onOutputs(output)
  }
}

/**
 * The backward hooks of one call of forward: an identity before it and one after it, whose derivatives see the gradients go through. PyTorch:
 * `torch.utils.hooks.BackwardHook`.
 */
class BackwardHooks {
  private readonly module: object
  private readonly entries: readonly Entry<FullBackwardHook<object>>[]
  /** By the pass that brought them: several may be under way at once. */
  private readonly gradOutputs = new WeakMap<object, Gradients>()
  private outputsFound = false
  private argumentCount = 0
  private inputsSeen = false

  constructor(module: object, entries: readonly Entry<FullBackwardHook<object>>[]) {
    this.module = module
    this.entries = entries
  }

  onInputs(args: unknown[]): unknown[] {
    this.argumentCount = args.length
    this.inputsSeen = args.some((arg) => isTensor(arg) && arg.requiresGrad)
    return through('ModuleInputs', args, (grads, passes) => this.onGradInputs(grads, passes))
  }

  onOutputs(output: unknown): unknown {
    const items: unknown[] = []
    copyWith(output, (item) => items.push(item))
    const behind = through('ModuleOutputs', items, (grads, passes) => {
      if (this.inputsSeen) this.gradOutputs.set(passes[0]!, grads)
      else this.called(new Array<null>(this.argumentCount).fill(null), grads)
      return grads
    })
    this.outputsFound = behind !== items
    if (!this.outputsFound) return output
    const next = behind.values()
    return copyWith(output, () => next.next().value)
  }

  private onGradInputs(gradInputs: Gradients, passes: readonly object[]): Gradients {
    if (!this.outputsFound) return this.called(gradInputs, [])
    const pass = passes.find((each) => this.gradOutputs.has(each))
    // This pass came to the inputs by another way than through the results, as a pass over a gradient does (createGraph).
    return pass === undefined ? gradInputs : this.called(gradInputs, this.gradOutputs.get(pass)!)
  }

  private called(gradInputs: Gradients, gradOutputs: Gradients): Gradients {
    let grads: readonly (Tensor | null)[] = gradInputs
    // Other modules have these tensors too, and a hook may write into those that it is given.
    const ownsNone = () => false
    for (const { hook } of this.entries) {
      const own = gradOutputs.map((grad) => ownGradient(grad, false))
      grads = withOwnGradients(grads, ownsNone, (given) => hook(this.module, given, own))
    }
    return [...grads]
  }
}

/** `value`, or a copy if it is an array or a plain object, with what `change` returns in the place of each item, to any depth. */
function copyWith(value: unknown, change: (item: unknown) => unknown, copies = new Map<object, object>()): unknown {
  if (!Array.isArray(value) && !isPlain(value)) return change(value)
  const known = copies.get(value)
  if (known !== undefined) return known
  const copy = Array.isArray(value) ? [...value] : Object.assign(Object.create(Object.getPrototypeOf(value)) as object, value)
  copies.set(value, copy)
  for (const [key, item] of Object.entries(value)) (copy as Record<string, unknown>)[key] = copyWith(item, change, copies)
  return copy
}

/** `values` with those among them that are tensors and require grad passed through an identity whose backward is `onGrads`: a gradient per value. */
function through(name: string, values: unknown[], onGrads: (grads: Gradients, passes: readonly object[]) => Gradients): unknown[] {
  const places = values.flatMap((value, i) => (isTensor(value) && value.requiresGrad ? [i] : []))
  if (places.length === 0) return values
  const identity = defineFunction({
    name,
    forward: (_, ...tensors: Tensor[]): readonly Tensor[] => tensors,
    backward: ({ passes }, ...grads: Tensor[]) => {
      const all: Gradients = values.map(() => null)
      for (const [k, place] of places.entries()) all[place] = grads[k]!
      const result = onGrads(all, passes)
      return places.map((place) => result[place] ?? null)
    },
  })
  const passed = identity(...places.map((place) => values[place] as Tensor))
  const all = [...values]
  for (const [k, place] of places.entries()) all[place] = passed[k]
  return all
}
