/**
 * Derivatives of whole functions: `vjp`, `jvp`, `jacobian`, `hessian`, `hvp`. Inputs count as leaves: their history and their `.grad` are not
 * touched, except that a result under createGraph has a history that leads through them. PyTorch: `torch.autograd.functional`.
 */
import { PostgradError } from '@postgrad/base'
import { isTensor, Tensor } from '@postgrad/tensor'
import { checkFunction, checkTensors, sameShape, shapeText } from '@postgrad/tensor/internal'
import { grad } from '../engine/backward.js'
import { enableGrad } from '../graph/grad-mode.js'
import { operations } from '../graph/recorded.js'

/** Options of `jacobian`, `hessian`, `vjp`, `jvp` and `hvp`. */
export interface FunctionalOptions {
  /** Whether to record the derivative, so that it can be differentiated; default false. */
  readonly createGraph?: boolean
  /** Whether an input that the outputs do not depend on is an error (UNUSED_INPUT); default false: its derivative is 0. */
  readonly strict?: boolean
}

type Several = Tensor | readonly Tensor[]
type Fn<X extends Several, R extends Several> = (...xs: X extends Tensor ? [x: Tensor] : Tensor[]) => R
/** One for each of what X is: a T, or an array of them. */
type Per<X extends Several, T> = X extends Tensor ? T : T[]

/** Function or gradient, for the messages of `strict`. */
interface Differentiated {
  /** As the user called it. */
  readonly op: string
  readonly what: string
  /** If it does not require grad. */
  readonly remedy: string
}

const ZEROS = 'Leave out strict to get zeros.'
const FROM_INPUTS = 'Compute it from the inputs, outside of noGrad and without detach(), or leave out strict to get zeros.'

function resultOf(op: string, what = 'the result of the function'): Differentiated {
  return { op, what, remedy: FROM_INPUTS }
}

/** The first gradient, which is constant if the function is linear. */
function gradientIn(op: string, what = 'the gradient of the function'): Differentiated {
  return { op, what, remedy: ZEROS }
}

/** A function that was evaluated: its inputs as it saw them, its outputs, and whether it gave one or a list. */
interface Run {
  readonly xs: readonly Tensor[]
  readonly ys: readonly Tensor[]
  readonly single: boolean
}

/**
 * vᵀ · J, for the Jacobian J of `fn`: the gradient of Σ v · fn(inputs) for each input. Returns the outputs, and a gradient for each input. PyTorch:
 * `torch.autograd.functional.vjp`.
 * @param v tensors in the shapes of the outputs; may be left out for one scalar
 * @throws VECTOR_MISMATCH if `v` does not have the shapes of the outputs; UNUSED_INPUT if `strict` is set and an output does not depend on an input; the errors
 * of `backward`
 * @example vjp((x) => x.square(), tensor([1, 2]), tensor([1, 10])) // [[1, 4], [2, 40]]: the value, then vᵀ · J
 */
export function vjp<X extends Several, R extends Several>(
  fn: Fn<X, R>,
  inputs: X,
  v?: Several | null,
  options: FunctionalOptions = {},
): [outputs: Per<R, Tensor>, gradients: Per<X, Tensor>] {
  return enableGrad(() => {
    const run = evaluate('vjp', fn, inputs, options)
    const grads = gradients(resultOf('vjp'), run.ys, run.xs, vectors('vjp', run.ys, v), options)
    return [finish(run.ys, run.single, options), finish(grads, isTensor(inputs), options)]
  }) as [Per<R, Tensor>, Per<X, Tensor>]
}

/**
 * J · v, for the Jacobian J of `fn`: the derivatives of the outputs along v. Returns the outputs, and a derivative for each output. It differentiates twice.
 * PyTorch: `torch.autograd.functional.jvp`.
 * @param v tensors in the shapes of the inputs; may be left out for one scalar
 * @throws VECTOR_MISMATCH if `v` does not have the shapes of the inputs; the other errors of `vjp`
 * @example jvp((x) => x.square(), tensor([1, 2]), tensor([1, 0])) // [[1, 4], [2, 0]]: the value, then J · v
 */
export function jvp<X extends Several, R extends Several>(
  fn: Fn<X, R>,
  inputs: X,
  v?: Several | null,
  options: FunctionalOptions = {},
): [outputs: Per<R, Tensor>, derivatives: Per<R, Tensor>] {
  return enableGrad(() => {
    const run = evaluate('jvp', fn, inputs, options)
    const direction = vectors('jvp', run.xs, v)
    const us = run.ys.map((y) => Tensor.empty(y.dtype, y.shape, y.storage.memory).requiresGrad_())
    const transposed = gradients(resultOf('jvp'), run.ys, run.xs, us, { ...options, createGraph: true })
    // Linear, so it does not need u's values. A gradient without u in it has the derivative 0.
    const along = gradients(gradientIn('jvp'), transposed, us, direction, { createGraph: options.createGraph === true })
    return [finish(run.ys, run.single, options), finish(along, run.single, options)]
  }) as [Per<R, Tensor>, Per<R, Tensor>]
}

/**
 * The Jacobian: d output / d input, a tensor in the shape of the output followed by that of the input. Returns a list for the outputs, of lists for the inputs.
 * A list is left out if `fn` has one output, or takes one tensor that is not in an array. PyTorch: `torch.autograd.functional.jacobian`.
 * @throws UNUSED_INPUT if `strict` is set and an output does not depend on an input; the errors of `backward`
 * @example jacobian((x) => x.square(), tensor([1, 2])) // [[2, 0], [0, 4]]
 */
export function jacobian<X extends Several, R extends Several>(
  fn: Fn<X, R>,
  inputs: X,
  options: FunctionalOptions = {},
): Per<R, Per<X, Tensor>> {
  const outputOf = (o: number, single: boolean) => resultOf('jacobian', single ? undefined : `output ${o} of the function`)
  return jacobianOf('jacobian', fn, inputs, options, outputOf)
}

/** @param outputOf names output `o` for the messages; `single`: it is the only one */
function jacobianOf<X extends Several, R extends Several>(
  op: string,
  fn: Fn<X, R>,
  inputs: X,
  options: FunctionalOptions,
  outputOf: (o: number, single: boolean) => Differentiated,
): Per<R, Per<X, Tensor>> {
  return enableGrad(() => {
    const run = evaluate(op, fn, inputs, options)
    const blocks = run.ys.map((y, o) => {
      const of = outputOf(o, run.single)
      const flat = operations.reshape(y, [-1])
      const rows = Array.from({ length: y.numel }, (_, i) => gradients(of, [operations.select(flat, 0, i)], run.xs, [null], options, true))
      const perInput = run.xs.map((x, k) => {
        const shape = [...y.shape, ...x.shape]
        return rows.length === 0
          ? Tensor.empty(x.dtype, shape, x.storage.memory)
          : operations.reshape(operations.stack(rows.map((row) => row[k]!)), shape)
      })
      return finish(perInput, isTensor(inputs), options)
    })
    return run.single ? blocks[0] : blocks
  }) as Per<R, Per<X, Tensor>>
}

/**
 * The Hessian: the second derivatives of a function with a scalar result. For each pair of inputs it is a tensor in the shape of the first followed by that of
 * the second. It is one tensor if `fn` takes one tensor that is not in an array. PyTorch: `torch.autograd.functional.hessian`.
 * @throws NOT_A_SCALAR if the result of `fn` is not a scalar; the errors of `jacobian`
 * @example hessian((x) => x.pow(3).sum(), tensor([1, 2])) // [[6, 0], [0, 12]]
 */
export function hessian<X extends Several>(fn: Fn<X, Tensor>, inputs: X, options: FunctionalOptions = {}): Per<X, Per<X, Tensor>> {
  const first: Fn<X, Several> = (...xs) => gradientOf('hessian', fn, xs, isTensor(inputs), options)
  const outputOf = (o: number, single: boolean) => gradientIn('hessian', single ? undefined : `the gradient for input ${o}`)
  return jacobianOf<X, Several>('hessian', first, inputs, options, outputOf) as Per<X, Per<X, Tensor>>
}

/**
 * H · v, for the Hessian H of a function with a scalar result, without computing H. vᵀ · H is the same, since H is symmetric. Returns the value of the
 * function, and a product for each input. PyTorch: `torch.autograd.functional.hvp`.
 * @param v tensors in the shapes of the inputs; may be left out for one scalar
 * @throws VECTOR_MISMATCH if `v` does not have the shapes of the inputs; the other errors of `hessian`
 * @example hvp((x) => x.pow(3).sum(), tensor([1, 2]), tensor([1, 1])) // [9, [6, 12]]: the value, then H · v
 */
export function hvp<X extends Several>(
  fn: Fn<X, Tensor>,
  inputs: X,
  v?: Several | null,
  options: FunctionalOptions = {},
): [value: Tensor, products: Per<X, Tensor>] {
  return enableGrad(() => {
    const run = evaluate('hvp', fn, inputs, options)
    checkScalar('hvp', run.ys[0]!)
    const direction = vectors('hvp', run.xs, v)
    const first = gradients(resultOf('hvp'), run.ys, run.xs, [null], { ...options, createGraph: true })
    const products = gradients(gradientIn('hvp'), first, run.xs, direction, options)
    return [finish(run.ys, true, options), finish(products, isTensor(inputs), options)]
  }) as [Tensor, Per<X, Tensor>]
}

function gradientOf<X extends Several>(
  op: string,
  fn: Fn<X, Tensor>,
  xs: readonly Tensor[],
  single: boolean,
  options: FunctionalOptions,
): Several {
  const y = (fn as (...xs: readonly Tensor[]) => Tensor)(...xs)
  checkScalar(op, y)
  const first = gradients(resultOf(op), [y], xs, [null], { ...options, createGraph: true })
  return single ? first[0]! : first
}

/** With inputs that nothing else has: leaves, or under createGraph copies that lead back to what was given. */
function evaluate<X extends Several, R extends Several>(op: string, fn: Fn<X, R>, inputs: X, { createGraph }: FunctionalOptions): Run {
  checkFunction(op, 'the function', fn)
  const given: readonly Tensor[] = isTensor(inputs) ? [inputs] : inputs
  checkTensors(op, 'the inputs', given)
  const xs = given.map((x) => (createGraph && x.requiresGrad ? operations.view(x, x.shape) : x.detach().requiresGrad_()))
  const result = (fn as (...xs: readonly Tensor[]) => R)(...xs)
  if (!isTensor(result)) checkTensors(op, 'the result of the function', result)
  return isTensor(result) ? { xs, ys: [result], single: true } : { xs, ys: result as readonly Tensor[], single: false }
}

/** One gradient per input; zeros where there is none. @throws UNUSED_INPUT (strict) */
function gradients(
  of: Differentiated,
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  vs: readonly (Tensor | null)[],
  { createGraph = false, strict = false }: FunctionalOptions,
  retainGraph = true,
): Tensor[] {
  const live = outputs.flatMap((y, i) => (y.requiresGrad ? [i] : []))
  if (strict && live.length === 0) throw unused(of, 'does not require grad, so it does not depend on the inputs', of.remedy)
  const found =
    live.length === 0
      ? inputs.map(() => null)
      : grad(
          live.map((i) => outputs[i]!),
          inputs,
          { gradOutputs: live.map((i) => vs[i]!), createGraph, retainGraph, allowUnused: true },
        )
  return found.map((g, i) => {
    if (strict && g === null) throw unused(of, `does not depend on input ${i}`, ZEROS, { input: i })
    return g ?? Tensor.empty(inputs[i]!.dtype, inputs[i]!.shape, inputs[i]!.storage.memory)
  })
}

function unused({ op, what }: Differentiated, why: string, remedy: string, values: { readonly input?: number } = {}): PostgradError {
  return new PostgradError('UNUSED_INPUT', { op, message: `${what} ${why}`, remedy, values })
}

/** @throws VECTOR_MISMATCH */
function vectors(op: string, of: readonly Tensor[], v: Several | null | undefined): readonly (Tensor | null)[] {
  const list = v === null || v === undefined ? null : isTensor(v) ? [v] : v
  if (list !== null) checkTensors(op, 'v', list)
  const fits = list === null ? of.length === 1 && of[0]!.numel === 1 : list.length === of.length
  if (fits && (list === null || list.every((each, i) => sameShape(each.shape, of[i]!.shape)))) {
    return list ?? of.map((t) => operations.fill_(Tensor.empty(t.dtype, t.shape, t.storage.memory), 1))
  }
  throw new PostgradError('VECTOR_MISMATCH', {
    op,
    expected: `v of shape ${of.map(({ shape }) => shapeText(shape)).join(', ')}`,
    got: list === null ? 'none' : list.map(({ shape }) => shapeText(shape)).join(', '),
    remedy: 'Pass one tensor per output (vjp) or input (jvp, hvp); it may be left out for one scalar.',
  })
}

/** @throws NOT_A_SCALAR */
function checkScalar(op: string, y: Tensor): void {
  if (isTensor(y) && y.numel === 1) return
  throw new PostgradError('NOT_A_SCALAR', {
    op,
    expected: 'a function to one scalar tensor',
    got: isTensor(y) ? `shape ${shapeText(y.shape)}` : 'several',
    remedy: 'Reduce the result first, as in y.sum().',
  })
}

function finish(list: readonly Tensor[], single: boolean, { createGraph }: FunctionalOptions): Several {
  const result = createGraph ? list : list.map((t) => t.detach())
  return single ? result[0]! : result
}
