/**
 * Checks gradients against central finite differences, element by element: `gradcheck` the first derivative of a function, `gradgradcheck` the
 * derivative of its gradient. PyTorch: `torch.autograd.gradcheck`, `torch.autograd.gradgradcheck`.
 */
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { checkFunction, isFloating, shapeText } from '@postgrad/tensor/internal'
import { grad as gradOf } from '../engine/backward.js'

/** Options of `gradcheck`: the step of the finite difference, and the allowed differences. */
export interface GradcheckOptions {
  /** Half of the step of the finite difference; default 1e-6. */
  readonly eps?: number
  /** The part of the allowed difference, atol + rtol · |numerical|, that does not depend on the value. Default 1e-5. */
  readonly atol?: number
  /** The part of the allowed difference, atol + rtol · |numerical|, that is a share of the numerical value. Default 1e-3. */
  readonly rtol?: number
  /** How much the gradients of two backward passes over one graph may differ. Default 0: they must be equal. */
  readonly nondetTol?: number
  /** Whether a wrong gradient fails with GRADCHECK_FAILED; default true. If false, the function returns false. */
  readonly raiseException?: boolean
}

/** Options of `gradgradcheck`. */
export interface GradgradcheckOptions extends GradcheckOptions {
  /** The gradients of the outputs at which the second derivative is taken, in float64. Default: fixed irregular values around 1. */
  readonly gradOutputs?: readonly Tensor[]
}

type Fn<Inputs extends readonly unknown[]> = (...inputs: Inputs) => Tensor | readonly Tensor[]

/** One input that is checked, and which argument it is. */
interface Checked {
  readonly input: Tensor
  readonly index: number
}

/**
 * Compares the Jacobian from the backward pass of `fn` with the one from finite differences. It does so for every input that requires grad, and every output of
 * floating point. Other inputs (tensors that do not require grad, numbers, any values) are passed on unchanged. Returns true, or throws. PyTorch:
 * `torch.autograd.gradcheck`.
 * @param fn a pure function of the inputs, which returns one tensor or several
 * @param inputs inputs that require grad must be float64, since in float32 rounding hides the differences
 * @returns true; false for a wrong gradient if `raiseException` is false
 * @throws GRADCHECK_FAILED if a gradient is wrong: the error names the elements of output and input, and both values; GRADCHECK_NEEDS_FLOAT64 if no input
 * requires grad, or one that does is not float64
 * @example gradcheck((x: Tensor) => x.sin(), [tensor([1, 2], { dtype: 'float64', requiresGrad: true })]) // true
 */
export function gradcheck<Inputs extends readonly unknown[]>(fn: Fn<Inputs>, inputs: Inputs, options: GradcheckOptions = {}): boolean {
  return answer('gradcheck', fn, inputs, options)
}

/**
 * Runs `gradcheck` on the gradient of `fn`: on the function from (inputs, gradients of the outputs) to gradients of the inputs. It leaves out outputs that do
 * not require grad, and inputs that an output does not depend on. PyTorch: `torch.autograd.gradgradcheck`.
 * @returns true; false for a wrong gradient if `raiseException` is false
 * @throws UNUSED_INPUT if no output requires grad; the errors of `gradcheck`
 * @example gradgradcheck((x: Tensor) => x.pow(3), [tensor([1, 2], { dtype: 'float64', requiresGrad: true })]) // true
 */
export function gradgradcheck<Inputs extends readonly unknown[]>(
  fn: Fn<Inputs>,
  inputs: Inputs,
  options: GradgradcheckOptions = {},
): boolean {
  const outputs = asList(fn(...inputs)).filter((output) => output.requiresGrad)
  if (outputs.length === 0) {
    throw new PostgradError('UNUSED_INPUT', {
      op: 'gradgradcheck',
      message: 'none of the outputs requires grad, so none has a gradient to check',
      remedy: 'Compute the outputs from the inputs, outside of noGrad and without detach().',
    })
  }
  const gradOutputs = options.gradOutputs ?? outputs.map(irregular)
  if (gradOutputs.length !== outputs.length) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'gradgradcheck',
      expected: `one of gradOutputs for each of ${outputs.length} outputs that require grad`,
      got: String(gradOutputs.length),
    })
  }
  const wanted = checkedInputs('gradgradcheck', inputs).map(({ index }) => index)
  const gradients = (...args: readonly unknown[]): Tensor[] => {
    const xs = args.slice(0, inputs.length) as unknown as Inputs
    const ys = asList(fn(...xs)).filter((output) => output.requiresGrad)
    const given = args.slice(inputs.length) as Tensor[]
    const of = wanted.map((index) => xs[index] as Tensor)
    return gradOf(ys, of, { gradOutputs: given, createGraph: true, allowUnused: true }).map((g, i) => g ?? zeros(of[i]!.shape))
  }
  const leaves = gradOutputs.map((g) => g.detach().clone().requiresGrad_())
  return answer('gradgradcheck', gradients, [...inputs, ...leaves], options)
}

function answer<Inputs extends readonly unknown[]>(op: string, fn: Fn<Inputs>, inputs: Inputs, options: GradcheckOptions): boolean {
  try {
    check(op, fn, inputs, options)
    return true
  } catch (error) {
    if (options.raiseException === false && error instanceof PostgradError && error.code === 'GRADCHECK_FAILED') return false
    throw error
  }
}

function check<Inputs extends readonly unknown[]>(op: string, fn: Fn<Inputs>, inputs: Inputs, options: GradcheckOptions): void {
  const { eps = 1e-6, atol = 1e-5, rtol = 1e-3, nondetTol = 0 } = options
  checkFunction(op, 'the function', fn)
  const checked = checkedInputs(op, inputs)
  const outputs = asList(fn(...inputs))
  for (const { input, index } of checked) {
    const values = input.dataSync()
    const columns = Array.from(values, (value, element) => {
      const at = (x: number) => evaluate(fn, inputs, index, values, element, x)
      const above = at(value + eps)
      const below = at(value - eps)
      return above.map((output, o) => output.map((y, i) => (y - below[o]![i]!) / (2 * eps)))
    })
    for (const [o, output] of outputs.entries()) {
      if (!isFloating(output.dtype)) continue
      for (let i = 0; i < output.numel; i++) {
        const row = output.requiresGrad ? jacobianRow(output, i, input) : new Float64Array(values.length)
        const again = output.requiresGrad && i === 0 ? jacobianRow(output, i, input) : row
        for (const [element, analytical] of row.entries()) {
          const numerical = columns[element]![o]![i]!
          const what = { output: o, at: unravel(i, output.shape), input: index, by: unravel(element, input.shape) }
          if (!(Math.abs(analytical - numerical) <= atol + rtol * Math.abs(numerical))) throw wrong(op, what, analytical, numerical)
          if (Math.abs(analytical - again[element]!) > nondetTol) throw unsteady(op, what, analytical, again[element]!)
        }
      }
    }
  }
}

/** The inputs that require grad. @throws GRADCHECK_NEEDS_FLOAT64 */
function checkedInputs(op: string, inputs: readonly unknown[]): Checked[] {
  const checked = inputs.flatMap((input, index) => (isTensor(input) && input.requiresGrad ? [{ input, index }] : []))
  if (checked.length > 0 && checked.every(({ input }) => input.dtype === 'float64')) return checked
  throw new PostgradError('GRADCHECK_NEEDS_FLOAT64', {
    op,
    expected: 'inputs that require grad, all of dtype float64',
    got: checked.map(({ input }) => input.dtype).join(', ') || 'none that requires grad',
    remedy: "Make them with { dtype: 'float64', requiresGrad: true }.",
  })
}

/** All outputs in row-major order, with one element of one input at another value. */
function evaluate<Inputs extends readonly unknown[]>(
  fn: Fn<Inputs>,
  inputs: Inputs,
  index: number,
  values: ArrayLike<number>,
  element: number,
  value: number,
): number[][] {
  const changed = Float64Array.from(values)
  changed[element] = value
  // It requires grad, too: fn may itself take gradients (the check of a second derivative).
  const moved = tensor(changed, { dtype: 'float64' })
    .reshape((inputs[index] as Tensor).shape)
    .requiresGrad_()
  return asList(fn(...(inputs.with(index, moved) as unknown as Inputs))).map((output) => Array.from(output.dataSync()))
}

/** d output[i] / d input, for all elements of the input. */
function jacobianRow(output: Tensor, i: number, input: Tensor): Float64Array {
  const flat = new Float64Array(output.numel)
  flat[i] = 1
  const gradOutput = tensor(flat, { dtype: 'float64' }).to(output.dtype).reshape(output.shape)
  const [row] = gradOf([output], [input], { gradOutputs: [gradOutput], retainGraph: true, allowUnused: true })
  return Float64Array.from((row ?? zeros(input.shape)).dataSync())
}

/** Different for every element, between 0.5 and 1.5: multiples of the golden section. */
function irregular(output: Tensor): Tensor {
  const values = Float64Array.from({ length: output.numel }, (_, i) => 0.5 + (((i + 1) * 0.6180339887498949) % 1))
  return tensor(values).to(output.dtype).reshape(output.shape)
}

function asList(value: Tensor | readonly Tensor[]): readonly Tensor[] {
  return isTensor(value) ? [value] : value
}

function unravel(flat: number, shape: readonly number[]): number[] {
  const at = new Array<number>(shape.length)
  let rest = flat
  for (let d = shape.length - 1; d >= 0; d--) {
    at[d] = rest % shape[d]!
    rest = Math.floor(rest / shape[d]!)
  }
  return at
}

/** Which derivative: of element `at` of an output, by element `by` of an input. */
interface Entry {
  readonly output: number
  readonly at: readonly number[]
  readonly input: number
  readonly by: readonly number[]
}

function entryText({ output, at, input, by }: Entry): string {
  return `d output ${output}${shapeText(at)} / d input ${input}${shapeText(by)}`
}

function wrong(op: string, entry: Entry, analytical: number, numerical: number): PostgradError {
  return new PostgradError('GRADCHECK_FAILED', {
    op,
    expected: `${entryText(entry)} = ${numerical} by finite differences`,
    got: `${analytical} by the backward pass`,
    remedy: 'Correct the derivative, or stay away from points where the function has a kink.',
    values: { ...entry, analytical, numerical },
  })
}

function unsteady(op: string, entry: Entry, first: number, second: number): PostgradError {
  return new PostgradError('GRADCHECK_FAILED', {
    op,
    expected: `${entryText(entry)} to be ${first} in every backward pass`,
    got: `${second} in the second`,
    remedy: 'Let backward depend on nothing but what forward saved, or allow a difference with nondetTol.',
    values: { ...entry, first, second },
  })
}
