/**
 * Users' kernels as raw operations: it checks the text at the definition, and operands at each call. Used by autograd's `defineKernel`,
 * which adds the derivative. The device's `UserKernels` run them.
 */

import { inSpan, tracing } from '@postgrad/base/internal'
import { indexedTwice, withoutComments } from '../kernels/js/user-kernel.js'
import type { UserKernel } from '../kernels/table/operands.js'
import { computing } from '../tensor/device.js'
import { isTensor, Tensor } from '../tensor/tensor.js'
import { type DType, isFloating } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument } from '../values/errors.js'
import { checkShape, type Shape } from '../values/shape.js'
import { contiguous } from './copy.js'

/** The `this` of a kernel: its thread and the constants. */
export interface KernelThis {
  /** `x` is the index of the element that this thread computes, in row-major order. */
  readonly thread: { readonly x: number }
  /** The integers that the definition's `constants` returned. */
  readonly constants: Readonly<Record<string, number>>
}

/**
 * The text of a gpu.js function, or a plain function (not an arrow function). Only the text of the function is used, so it can use only its parameters, `this`
 * and `Math`.
 */
export type KernelSource = string | ((this: KernelThis, ...args: never[]) => number)

/**
 * A definition's kernel, checked; the first `inputs` of its parameters are arrays.
 * @throws INVALID_ARGUMENT if the text is not a function of `parameters` or does what kernels may not
 */
export function userKernel(op: string, name: string, source: KernelSource, parameters: readonly string[], inputs: number): UserKernel {
  const text = functionText(op, name, source)
  const open = text.indexOf('(')
  const list = text.slice(open + 1, text.indexOf(')', open)).trim()
  const got = list === '' ? [] : list.split(',').map((parameter) => parameter.trim())
  if (got.length !== parameters.length) {
    throw invalidArgument(
      op,
      `a kernel '${name}' with ${parameters.length} parameters, in the order of (${parameters.join(', ')})`,
      `(${got.join(', ')})`,
      'A kernel takes its inputs, then its attributes.',
    )
  }
  const code = withoutComments(text)
  const wrong = FORBIDDEN.find(([pattern]) => pattern.test(code))
  if (wrong !== undefined) {
    throw invalidArgument(op, `a kernel '${name}' without side effects`, `${wrong[1]}: ${wrong[0].exec(code)![0].trim()}`, wrong[2])
  }
  const kernel = { name, source: text, inputs: got.slice(0, inputs) }
  const twice = indexedTwice(kernel)
  if (twice !== undefined) {
    throw invalidArgument(
      op,
      `a kernel '${name}' that reads its inputs as flat arrays`,
      `${twice}[…][…]`,
      `Inputs are flat and row-major: ${twice}[row * this.constants.columns + column], with the sizes among constants.`,
    )
  }
  return kernel
}

/** In mode cpu the first would write to the caller's tensor; the second is always 0; the third would differ from run to run. */
const FORBIDDEN: readonly (readonly [RegExp, string, string])[] = [
  [
    /\]\s*(?:(?:[-+*/%&|^]|<<|>>>?|\*\*)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*\w+\s*\[/,
    'an assignment to an element',
    'Each thread returns its element; sums and the like go into variables.',
  ],
  [
    /\bthis\s*\.\s*thread\s*\.\s*[yz]\b/,
    'a dimension that threads do not have',
    'Threads are numbered by this.thread.x alone: the row is Math.floor(this.thread.x / this.constants.columns), the column what is left.',
  ],
  [/\bMath\s*\.\s*random\b/, 'random numbers that no seed repeats', 'Pass random numbers as an input: rand(shape).'],
]

function functionText(op: string, name: string, source: KernelSource): string {
  const given: unknown = source
  const text = (typeof given === 'function' ? Function.prototype.toString.call(given) : String(given)).trim()
  const native = typeof given === 'function' && text.includes('[native code]')
  if (!native && /^function\b(?!\s*\*)/.test(text)) return text
  // A method of an object literal: `kernel(x) { … }`.
  if (typeof given === 'function' && !native && /^(?!async\b)[\w$]+\s*\(/.test(text)) {
    return `function ${text}`
  }
  throw invalidArgument(
    op,
    `kernel '${name}' as the text of a function, or as a plain function`,
    text.length > 60 ? `${text.slice(0, 60)}…` : text,
    "Write 'function (x) { … }'. Arrow functions have no `this`, in which a kernel finds its thread.",
  )
}

/** One call; `shape` is the result's. */
export interface UserKernelCall {
  readonly shape: Shape
  readonly constants: Readonly<Record<string, number>>
  readonly inputs: readonly Tensor[]
  /** In the order of the kernel's parameters, after the inputs. */
  readonly attributes: readonly number[]
}

/**
 * Runs it where its inputs are. The result has the inputs' dtype, float32 or float64.
 * @throws INVALID_ARGUMENT for an invalid shape or a constant that is not a 32-bit integer, and what `UserKernels.run` throws
 */
export function runUserKernel(kernel: UserKernel, call: UserKernelCall): Tensor {
  const { name } = kernel
  checkShape(name, call.shape)
  for (const [constant, value] of Object.entries(call.constants)) {
    if (value !== (value | 0)) {
      throw invalidArgument(
        name,
        'constants that are integers of 32 bits',
        `${constant} = ${value}`,
        'Pass other numbers as attributes, which are arguments of the kernel.',
      )
    }
  }
  const args = [...call.inputs.map(contiguous), ...call.attributes]
  const [first] = call.inputs as [Tensor]
  const out = Tensor.uninitialized(first.dtype, call.shape, first.storage.memory)
  if (out.numel === 0) return out
  const { spec, implementation } = computing(first.storage.memory)
  const { userKernels } = implementation
  if (tracing === null) userKernels.run(kernel, call.constants, args, out)
  else {
    const values = { device: spec, dtype: out.dtype, variant: userKernels.variant }
    inSpan('kernel', name, values, () => userKernels.run(kernel, call.constants, args, out))
  }
  return out
}

/** @param dtype that of the inputs before it @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
export function checkKernelInput(name: string, input: string, x: unknown, dtype?: DType): asserts x is Tensor {
  if (!isTensor(x)) throw invalidArgument(name, `a tensor as ${input}`, x === null ? 'null' : typeof x)
  if (!isFloating(x.dtype)) throw dtypeMismatch(name, `float32 or float64 for ${input}`, x.dtype, "Convert with to('float32').")
  if (dtype !== undefined && x.dtype !== dtype) {
    throw dtypeMismatch(name, `${dtype} for ${input}, as for the inputs before it`, x.dtype, `Convert with to('${dtype}').`)
  }
}
