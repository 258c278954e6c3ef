/**
 * Users' own differentiable functions: any forward, and a backward that computes its gradient. PyTorch:
 * `torch.autograd.Function`.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, withScope } from '@postgrad/base/internal'
import { isTensor, Tensor } from '@postgrad/tensor'
import { checkFunction, giveBack, invalidArgument, isFloating, storageCount } from '@postgrad/tensor/internal'
import type { Grads } from '../graph/hooks.js'
import { type Edge, type InputMeta, metaOfOutput, Node, type PassView } from '../graph/node.js'
import { graphFreed, SavedVariable } from '../graph/saved-variable.js'
import { gradientEdge, setHistory } from '../graph/variable.js'
import { ViewMeta, viewMetaOf } from '../graph/views.js'
import { needsGrad } from './record.js'

/**
 * The `ctx` of a custom function: it keeps values of forward for backward. PyTorch: the `ctx` of `torch.autograd.Function`.
 * @example
 * const power = defineFunction({
 *   name: 'Power',
 *   forward: (ctx: FunctionContext<number>, x: Tensor, n: number) => {
 *     ctx.saveForBackward(x)
 *     ctx.state = n
 *     return x.pow(n)
 *   },
 *   backward: (ctx, grad) => [grad.mul(ctx.savedTensors[0]!.pow(ctx.state! - 1)).mul(ctx.state!), null],
 * })
 * const x = tensor([1, 2], { requiresGrad: true })
 * power(x, 3).sum().backward()
 * x.grad // [3, 12]
 */
export class FunctionContext<State = unknown> {
  /** For each argument of forward: whether its gradient is needed. */
  readonly needsInputGrad: readonly boolean[]
  /** A value of any kind that forward keeps for backward, except tensors. Keep tensors with `saveForBackward`, which detects later writes to them. */
  state: State | undefined = undefined
  /** @internal In backward: which pass it is, see PassView. */
  passes: readonly object[] = []
  private saved: readonly SavedVariable[] = []
  private toSave: readonly Tensor[] = []
  /** How many of the last of `toSave` nobody else has, and those of them that are kept here. */
  private ownCount = 0
  private own: readonly Tensor[] = []
  private freed = false
  private hasSaved = false
  private readonly name: string

  constructor(name: string, needsInputGrad: readonly boolean[]) {
    this.name = name
    this.needsInputGrad = needsInputGrad
  }

  /**
   * Keeps inputs or outputs of forward for backward; call it at most once. Tensors that forward computes in between have no history, so second derivatives
   * treat them as constants, as in PyTorch. Return such a tensor as a further output, or compute it again in backward.
   * @throws INVALID_ARGUMENT at a second call. PyTorch keeps the tensors of the last call
   */
  saveForBackward(...tensors: readonly Tensor[]): void {
    if (this.hasSaved) throw invalidArgument(`${this.name}: saveForBackward`, 'one call', 'a second one', 'Pass all tensors in one call.')
    this.hasSaved = true
    this.toSave = tensors
  }

  /** @internal Also keeps tensors of forward that nobody else sees, after those kept already: they go back to the heap when the graph releases them. */
  saveOwn(...tensors: readonly Tensor[]): void {
    this.toSave = [...this.toSave, ...tensors]
    this.ownCount = tensors.length
  }

  /**
   * The tensors that `saveForBackward` kept, for backward.
   * @throws GRAPH_FREED if an earlier pass has freed them; SAVED_VARIABLE_MODIFIED if the program has written to one of them
   */
  get savedTensors(): Tensor[] {
    if (this.freed) throw graphFreed(this.name)
    return this.saved.map((saved) => saved.unpack(this.name))
  }

  /** @internal After forward: outputs have their history by then. `returned`: what was returned for a result that had a life before. */
  seal(returned: ReadonlyMap<Tensor, Tensor>): void {
    this.saved = this.toSave.map((tensor) => new SavedVariable(returned.get(tensor) ?? tensor))
    const first = this.toSave.length - this.ownCount
    // A tensor that a checkpoint drops is not kept here.
    this.own = this.toSave.filter((_, i) => i >= first && this.saved[i]!.keepsTensor)
    this.toSave = []
  }

  /** @internal */
  release(): void {
    this.freed ||= this.saved.length > 0
    for (const each of this.saved) each.release()
    this.saved = []
    for (const { storage } of this.own) giveBack(storage)
    this.own = []
  }
}

type Output = Tensor | readonly Tensor[]
type GradOf<R> = R extends Tensor ? [grad: Tensor] : Tensor[]
type Gradients = Tensor | null | readonly (Tensor | null)[]

/** The definition of a custom function, for `defineFunction`: its forward and its backward. */
export interface FunctionDefinition<Args extends readonly unknown[], R extends Output, State> {
  /** The name of the function's node in the graph. */
  readonly name: string
  /** Computes the result, with grad mode off. Only tensors that are arguments themselves can get gradients, not tensors inside arrays or objects. */
  forward(ctx: FunctionContext<State>, ...args: Args): R
  /**
   * Takes the gradients of all outputs (zeros if none arrived), and returns one gradient for each argument of forward: null if the argument is not a tensor or
   * needs no gradient. A single gradient needs no array. Grad mode is off, except under createGraph. If backward writes into a gradient that it received, the
   * pass fails with GRADIENT_MODIFIED, since other nodes may hold the same tensor.
   */
  backward(ctx: FunctionContext<State>, ...grads: GradOf<R>): Gradients
}

/**
 * Makes a function with a backward of its own, which autograd records like an operation. PyTorch: `torch.autograd.Function`.
 * @throws INVALID_ARGUMENT if forward or backward is not a function
 * @example
 * const square = defineFunction({
 *   name: 'Square',
 *   forward: (ctx, x: Tensor) => { ctx.saveForBackward(x); return x.mul(x) },
 *   backward: (ctx, grad) => grad.mul(ctx.savedTensors[0]!).mul(2),
 * })
 * const x = tensor([1, 3], { requiresGrad: true })
 * square(x).sum().backward()
 * x.grad // [2, 6]
 */
export function defineFunction<Args extends readonly unknown[], R extends Output, State = unknown>(
  definition: FunctionDefinition<Args, R, State>,
): (...args: Args) => R {
  checkFunction('defineFunction', 'forward', definition?.forward)
  checkFunction('defineFunction', 'backward', definition.backward)
  return define(definition, false)
}

/**
 * @internal The same for functions of this house, of which the engine knows more: neither forward nor backward keeps anything of what it is given or makes,
 * and what backward returns without createGraph are new tensors or views on the gradients. So what it uses up goes back to the heap, and leaves keep its
 * results without a copy.
 */
export function defineInnerFunction<Args extends readonly unknown[], R extends Output, State = unknown>(
  definition: FunctionDefinition<Args, R, State>,
): (...args: Args) => R {
  return define(definition, true)
}

function define<Args extends readonly unknown[], R extends Output, State>(
  definition: FunctionDefinition<Args, R, State>,
  isInner: boolean,
): (...args: Args) => R {
  const call = (...args: Args): R => {
    const record = args.some((arg) => isTensor(arg) && needsGrad(arg)) && currentScope().gradEnabled
    const ctx = new FunctionContext<State>(
      definition.name,
      args.map((arg) => record && isTensor(arg) && needsGrad(arg)),
    )
    // Before forward, which may write: an argument whose history cannot be read is refused first.
    const edges = record ? args.map((arg): Edge | null => (isTensor(arg) ? gradientEdge(arg) : null)) : []
    const before = storageCount()
    const result = withScope({ gradEnabled: false }, () => definition.forward(ctx, ...args))
    if (!record) return (currentScope().gradEnabled ? result : withoutHistory(result)) as R
    // A tensor from before (an input, one from elsewhere) is returned as a new tensor, so that it can have another history.
    const own = (t: Tensor): Tensor => (t.storage.serial < before || t.autograd !== null ? Tensor.view(t, t.shape, t.strides, t.offset) : t)
    const results = isTensor(result) ? [result] : (result as readonly Tensor[])
    const outputs = results.map(own)
    const meta = outputs.map(metaOfOutput)
    const node = new CustomNode(definition as unknown as AnyDefinition, ctx, edges, meta, isInner)
    outputs.forEach((output, i) => {
      if (!isFloating(output.dtype)) return
      const base = baseOf(results, i, before)
      if (base === null) setHistory(output, node, i)
      else output.autograd = ViewMeta.ofCustomFunction(base, node, i)
    })
    // A result that was saved has the history of what is returned for it; an argument that is returned as it came was saved as an argument.
    ctx.seal(new Map(results.flatMap((r, i) => (r === outputs[i] || args.includes(r) ? [] : [[r, outputs[i]!] as const]))))
    return (isTensor(result) ? outputs[0] : outputs) as R
  }
  return Object.defineProperty(call, 'name', { value: definition.name })
}

/** Under noGrad a result has no history, even if forward returns a tensor that has one: an argument, or one from elsewhere. Other values stay as they are. */
function withoutHistory(result: unknown): unknown {
  const own = (t: unknown) => (isTensor(t) && needsGrad(t) ? t.detach() : t)
  return Array.isArray(result) ? result.map(own) : own(result)
}

/** The tensor that result i is a view of, if others can write to it; else null. `before` is the number of storages before forward. */
function baseOf(results: readonly Tensor[], i: number, before: number): Tensor | null {
  const result = results[i]!
  const view = viewMetaOf(result)
  if (result.storage.serial < before) return view === null ? result : view.base
  // A view of what forward has made itself: another result may be that, or another view of it.
  return view !== null && results.some((other, j) => j !== i && other.storage === result.storage) ? view.base : null
}

type AnyDefinition = { readonly name: string; backward(ctx: FunctionContext<unknown>, ...grads: Tensor[]): Gradients }

class CustomNode extends Node {
  private readonly definition: AnyDefinition
  private readonly ctx: FunctionContext<unknown>
  private readonly isInner: boolean

  constructor(
    definition: AnyDefinition,
    ctx: FunctionContext<unknown>,
    edges: readonly (Edge | null)[],
    meta: readonly InputMeta[],
    isInner: boolean,
  ) {
    super(edges, meta)
    this.definition = definition
    this.ctx = ctx
    this.isInner = isInner
  }

  override get returnsFresh(): boolean {
    return this.isInner && !currentScope().gradEnabled
  }

  get name(): string {
    return `${this.definition.name}Backward`
  }

  apply(grads: Grads, { passes }: PassView): Grads {
    this.ctx.passes = passes
    const given = this.inputMeta.map(({ dtype, shape, memory }, i) => grads[i] ?? Tensor.empty(dtype, shape, memory))
    const versions = given.map(({ storage }) => storage.version)
    const result = this.definition.backward(this.ctx, ...given)
    this.ctx.passes = []
    // Where nothing arrived it was given zeros of its own.
    const written = given.findIndex((grad, i) => grad === grads[i] && grad.storage.version !== versions[i])
    if (written >= 0) throw this.gradientModified(written, given[written]!.storage.writer)
    const list = result === null || isTensor(result) ? [result] : (result as readonly (Tensor | null)[])
    this.nextEdges.forEach((edge, i) => {
      if (edge !== null && list[i] === undefined) throw this.missingGradient(i, list.length)
    })
    return list
  }

  override release(): void {
    this.ctx.release()
  }

  private gradientModified(output: number, writer: string | null): PostgradError {
    return new PostgradError('GRADIENT_MODIFIED', {
      op: this.name,
      expected: `a backward that leaves the gradient of output ${output} as it is: other nodes may have the same tensor`,
      got: `one that wrote into it${writer === null ? '' : ` by ${writer}`}`,
      remedy: 'Use the operation that returns a new tensor (mul instead of mul_), or write into a clone().',
      values: { output, writer },
    })
  }

  private missingGradient(argument: number, got: number): PostgradError {
    return new PostgradError('INVALID_GRADIENT', {
      op: this.name,
      expected: `a gradient (or null) for argument ${argument}`,
      got: `${got} gradients`,
      remedy: 'Return one entry per argument of forward.',
    })
  }
}
