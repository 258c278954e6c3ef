/**
 * Checks gradients against central finite differences, element by element. PyTorch: `torch.autograd.gradcheck`.
 */
import { PostgradError } from '@postgrad/base'
import { type Tensor, tensor, zeros } from '@postgrad/tensor'
import { grad as gradOf } from './backward.js'

export interface GradcheckOptions {
  /** Half of the finite difference; default 1e-6. */
  readonly eps?: number
  /** Allowed: |analytical − numerical| ≤ atol + rtol |numerical|; defaults 1e-5 and 1e-3. */
  readonly atol?: number
  readonly rtol?: number
}

/**
 * Compares the Jacobian of `fn` from the backward pass with the one from finite differences, for every input that requires grad.
 * @param fn from the inputs to one tensor or several; must be a pure function of them
 * @param inputs float64: in float32 the differences drown in rounding
 * @returns true; anything else is thrown: GRADCHECK_FAILED, GRADCHECK_NEEDS_FLOAT64
 */
export function gradcheck<Inputs extends readonly Tensor[]>(
  fn: (...inputs: Inputs) => Tensor | readonly Tensor[],
  inputs: Inputs,
  { eps = 1e-6, atol = 1e-5, rtol = 1e-3 }: GradcheckOptions = {},
): true {
  const checked = inputs.map((input, index) => ({ input, index })).filter(({ input }) => input.requiresGrad)
  checkInputs(checked.map(({ input }) => input))
  const outputs = asList(fn(...inputs))
  for (const { input, index } of checked) {
    const values = input.dataSync()
    const columns = Array.from(values, (value, element) => {
      const at = (x: number) => evaluate(fn, inputs, index, values, element, x)
      const above = at(value + eps)
      const below = at(value - eps)
      return above.map((output, o) => output.map((y, i) => (y - below[o]![i]!) / (2 * eps)))
    })
    outputs.forEach((output, o) => {
      for (let i = 0; i < output.numel; i++) {
        const row = output.requiresGrad ? jacobianRow(output, i, input) : new Float64Array(values.length)
        row.forEach((analytical, element) => {
          const numerical = columns[element]![o]![i]!
          if (!(Math.abs(analytical - numerical) <= atol + rtol * Math.abs(numerical))) {
            throw failed(`d output ${o}[${i}] / d input ${index}[${element}]`, analytical, numerical)
          }
        })
      }
    })
  }
  return true
}

function checkInputs(inputs: readonly Tensor[]): void {
  if (inputs.length > 0 && inputs.every((input) => input.dtype === 'float64')) return
  throw new PostgradError('GRADCHECK_NEEDS_FLOAT64', {
    op: 'gradcheck',
    expected: 'inputs that require grad, all of dtype float64',
    got: inputs.map((input) => input.dtype).join(', ') || 'none that requires grad',
    remedy: "Make them with { dtype: 'float64', requiresGrad: true }.",
  })
}

/** All outputs in row-major order, with one element of one input at another value. */
function evaluate<Inputs extends readonly Tensor[]>(
  fn: (...inputs: Inputs) => Tensor | readonly Tensor[],
  inputs: Inputs,
  index: number,
  values: ArrayLike<number>,
  element: number,
  value: number,
): number[][] {
  const changed = Float64Array.from(values)
  changed[element] = value
  // It requires grad, too: fn may itself take gradients (the check of a second derivative).
  const moved = tensor(changed, { dtype: 'float64' }).reshape(inputs[index]!.shape).requiresGrad_()
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

function asList(value: Tensor | readonly Tensor[]): readonly Tensor[] {
  return Array.isArray(value) ? value : [value as Tensor]
}

function failed(what: string, analytical: number, numerical: number): PostgradError {
  return new PostgradError('GRADCHECK_FAILED', {
    op: 'gradcheck',
    expected: `${what} = ${numerical} by finite differences`,
    got: `${analytical} by the backward pass`,
    remedy: 'Correct the derivative, or stay away from points where the function has a kink.',
    values: { analytical, numerical },
  })
}
