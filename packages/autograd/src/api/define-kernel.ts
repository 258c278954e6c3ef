/**
 * Users' own kernels: an operation written as the body of one thread, in the part of JavaScript that gpu.js compiles, with its derivative. It
 * runs with tensor's `raw/user-kernel.ts`, and is recorded with `custom-function.ts`, as functions of operations are.
 */
import { PostgradError } from '@postgrad/base'
import { currentDevice, type Device, type KernelSource, type Tensor } from '@postgrad/tensor'
import { checkKernelInput, invalidArgument, runUserKernel, type Shape, sameShape, userKernel } from '@postgrad/tensor/internal'
import { operations } from '../graph/recorded.js'
import { defineFunction } from '../record/custom-function.js'

/** Names of the tensors that a kernel takes. */
type Names = readonly string[]
type Each<I extends Names, V> = { readonly [K in I[number]]: V }
/** The numbers that a kernel takes after its tensors, by name. */
export type KernelAttributes = Readonly<Record<string, number>>

/** The values that the derivative of a kernel may read, in addition to the gradient and the inputs. */
export interface KernelContext<I extends Names = Names, A extends KernelAttributes = KernelAttributes> {
  /** The kernel's result. */
  readonly result: Tensor
  /** The numbers of this call, with the defaults filled in. */
  readonly attributes: A
  /** For each input: whether its gradient is needed. */
  readonly needsInputGrad: Each<I, boolean>
}

/**
 * The derivative of a kernel: one function for all inputs, or a kernel for each input.
 *
 * A function takes the gradient of the result and returns one gradient for each input, in their order; null for an input without a gradient. A single gradient
 * needs no array. The function computes with tensors, so createGraph can differentiate it.
 *
 * A kernel takes (grad, …inputs, …attributes). It has one thread for each element of its input, and the constants of the definition. null means that the input
 * is not differentiable. These kernels have no derivative, so a second derivative fails with DERIVATIVE_MISSING.
 */
export type KernelDerivative<I extends Names, A extends KernelAttributes> =
  | ((grad: Tensor, inputs: Each<I, Tensor>, ctx: KernelContext<I, A>) => Tensor | null | readonly (Tensor | null)[])
  | Each<I, KernelSource | null>

/** The definition of a kernel for `defineKernel`: its text, its inputs and numbers, and its derivative. */
export interface KernelDefinition<I extends Names, A extends KernelAttributes> {
  /** An identifier. Errors show it, and the node has it in its name. */
  readonly name: string
  /** The names of the tensors that the kernel takes: its first parameters. The kernel receives each tensor as a flat array, dense and row-major. */
  readonly inputs: I
  /** The numbers that the kernel takes after the tensors, with their defaults. A call may change them without a new compilation. */
  readonly attributes?: A
  /**
   * The text of a gpu.js function, or a plain function (not an arrow function) of which only the text is used, without closures. It computes element
   * `this.thread.x` of the result, counted row by row, and returns one number. It reads an input as `x[i]`, where i must be inside of the input, and integers
   * from `this.constants`.
   */
  readonly kernel: KernelSource
  /** Computes the shape of the result. Default: the shape to which the inputs broadcast. */
  readonly shape?: (shapes: Each<I, Shape>, attributes: A) => Shape
  /** Returns the integers for `this.constants`, such as sizes, strides and bounds. They are part of the compiled code. */
  readonly constants?: (shapes: Each<I, Shape>, attributes: A) => Readonly<Record<string, number>>
  /** The derivative. Without it, backward fails with DERIVATIVE_MISSING. */
  readonly derivative?: KernelDerivative<I, A>
}

/** The result of `defineKernel`: a function of tensors that also has `kernelFor`. */
export interface DefinedKernel<I extends Names, A extends KernelAttributes> {
  /** Takes tensors, all of them float32 or all float64, then the attributes that differ from their defaults. */
  (...args: [...tensors: { [K in keyof I]: Tensor }, attributes?: Partial<A>]): Tensor
  /** Says which code a call would run; `variant` is 'gpu.js cpu'. @param device default: the current device */
  kernelFor(device?: Device): { readonly device: string; readonly variant: string }
}

/**
 * Makes an operation from a kernel. Autograd records its calls; after `expose` other workers can call it by name.
 *
 * gpu.js runs the kernel on every device, in its mode cpu. Each thread of the process compiles it at the first call, and for every new size or constant (about
 * 1 ms). It keeps the compiled kernels that were used last. float64 is meant for `gradcheck` and is slow: the text then runs as a plain JavaScript function.
 *
 * When a kernel is compiled for a new size, some of its threads run once to check what they read: all of up to 1024, else a sample. If one reads outside of an
 * input, the call fails with KERNEL_OUT_OF_RANGE. The check does not find indices that depend on later values.
 * @throws INVALID_ARGUMENT from the definition, if the text is not a function of the inputs and attributes, indexes an input twice, assigns to elements, or
 * draws random numbers. A call fails with DTYPE_MISMATCH if the inputs are not all float32 or all float64; SHAPE_MISMATCH if they do not broadcast and there is
 * no `shape`; INVALID_ARGUMENT if a shape or constant is not valid; KERNEL_COMPILE with the message of gpu.js; KERNEL_RESULT if the kernel returns more than
 * one number; KERNEL_MODE if gpu.js would run it in another mode; KERNEL_UNSUPPORTED if the result has more than 2²⁴ elements
 * @example
 * const swish = defineKernel({
 *   name: 'swish',
 *   inputs: ['x'],
 *   kernel: 'function (x) { const v = x[this.thread.x]; return v / (1 + Math.exp(-v)); }',
 *   derivative: (grad, { x }) => {
 *     const s = x.sigmoid()
 *     return grad.mul(s.add(x.mul(s).mul(s.neg().add(1))))
 *   },
 * })
 * swish(tensor([-1, 0, 1])) // [-0.2689, 0, 0.7311]
 */
export function defineKernel<const I extends Names, const A extends KernelAttributes = Readonly<Record<never, number>>>(
  definition: KernelDefinition<I, A>,
): DefinedKernel<I, { readonly [K in keyof A]: number }> {
  const { name, inputs, attributes = {} as A, shape, constants } = definition as unknown as KernelDefinition<Names, KernelAttributes>
  checkNames(name, inputs, attributes)
  const kernel = userKernel('defineKernel', name, definition.kernel, [...inputs, ...Object.keys(attributes)], inputs.length)
  const derive = derivativeOf(definition as unknown as KernelDefinition<Names, KernelAttributes>)
  const count = inputs.length

  const recorded = defineFunction<[attributes: KernelAttributes, ...tensors: Tensor[]], Tensor, KernelAttributes>({
    name,
    forward(ctx, given, ...tensors) {
      const shapes = byName(inputs, (i) => tensors[i]!.shape)
      const result = runUserKernel(kernel, {
        shape: shape === undefined ? tensors[0]!.shape : shape(shapes, given),
        constants: constants?.(shapes, given) ?? {},
        inputs: tensors,
        attributes: Object.keys(attributes).map((key) => given[key]!),
      })
      ctx.state = given
      ctx.saveForBackward(...tensors, result)
      return result
    },
    backward(ctx, grad) {
      const saved = ctx.savedTensors
      const needed = ctx.needsInputGrad.slice(1)
      const gradients = derive(
        grad,
        byName(inputs, (i) => saved[i]!),
        { result: saved[count]!, attributes: ctx.state!, needsInputGrad: byName(inputs, (i) => needed[i]!) },
      )
      return [null, ...(Array.isArray(gradients) ? (gradients as readonly (Tensor | null)[]) : [gradients as Tensor | null])]
    },
  })

  const call = (...args: readonly unknown[]): Tensor => {
    const tensors = args.slice(0, count)
    inputs.forEach((input, i) => {
      checkKernelInput(name, input, tensors[i], (tensors[0] as Tensor | undefined)?.dtype)
    })
    const given = attributesOf(name, attributes, args.length > count + 1 ? args : args[count])
    return recorded(given, ...(shape === undefined ? broadcast(tensors as Tensor[]) : (tensors as Tensor[])))
  }
  const kernelFor = (device: Device = currentDevice()) => ({ device: device.spec, variant: device.implementation.userKernels.variant })
  Object.defineProperty(call, 'name', { value: name })
  return Object.assign(call, { kernelFor }) as unknown as DefinedKernel<I, { readonly [K in keyof A]: number }>
}

function byName<V>(inputs: Names, value: (i: number) => V): Readonly<Record<string, V>> {
  return Object.fromEntries(inputs.map((input, i) => [input, value(i)]))
}

function broadcast(tensors: readonly Tensor[]): readonly Tensor[] {
  return tensors.every(({ shape }) => sameShape(shape, tensors[0]!.shape)) ? tensors : operations.broadcastTensors(tensors)
}

type AnyDerivative = (
  grad: Tensor,
  inputs: Readonly<Record<string, Tensor>>,
  ctx: KernelContext,
) => Tensor | null | readonly (Tensor | null)[]

/** Kernels per input become kernels of the same making, without derivatives: what they give can be used, but not differentiated. */
function derivativeOf({ name, inputs, attributes, constants, derivative }: KernelDefinition<Names, KernelAttributes>): AnyDerivative {
  if (derivative === undefined) return () => missing(name)
  if (typeof derivative === 'function') return derivative
  const missingInputs = inputs.filter((input) => derivative[input] === undefined)
  if (missingInputs.length > 0 || Object.keys(derivative).length > inputs.length) {
    throw invalidArgument(
      'defineKernel',
      `derivatives of '${name}' for ${inputs.join(', ')}`,
      Object.keys(derivative).join(', ') || 'none',
      'Write null for an input that has none.',
    )
  }
  const kernels = inputs.map((input) => {
    const source = derivative[input]!
    if (source === null) return null
    return defineKernel({
      name: `${name}_${input}`,
      inputs: [GRAD, ...inputs],
      attributes: attributes ?? {},
      kernel: source,
      shape: (shapes) => shapes[input]!,
      ...(constants && { constants }),
    }) as (...args: readonly unknown[]) => Tensor
  })
  return (grad, tensors, ctx) =>
    kernels.map((kernel, i) =>
      kernel === null || !ctx.needsInputGrad[inputs[i]!] ? null : kernel(grad, ...inputs.map((input) => tensors[input]), ctx.attributes),
    )
}

const GRAD = 'grad'

function missing(name: string): never {
  throw new PostgradError('DERIVATIVE_MISSING', {
    op: `${name}Backward`,
    message: `the kernel '${name}' has no derivative`,
    remedy: 'Give one to defineKernel, over tensors if it is to be differentiated again; or detach() the inputs.',
    values: { kernel: name },
  })
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

function checkNames(name: string, inputs: Names, attributes: KernelAttributes): void {
  const all = [...inputs, ...Object.keys(attributes)]
  const wrong = [name, ...all].find((each) => typeof each !== 'string' || !IDENTIFIER.test(each))
  if (wrong !== undefined) throw invalidArgument('defineKernel', 'names that are identifiers', String(wrong))
  const twice = all.find((each, i) => all.indexOf(each) !== i)
  if (twice !== undefined)
    throw invalidArgument('defineKernel', `different names for all inputs and attributes of '${name}'`, `${twice} twice`)
  if (inputs.length === 0) {
    throw invalidArgument(
      'defineKernel',
      `at least one input for '${name}'`,
      'none',
      'Use full() or arange() to make tensors out of numbers.',
    )
  }
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value !== 'number') throw invalidArgument('defineKernel', `a number as the default of ${key} in '${name}'`, typeof value)
  }
}

/** The defaults, with the values of a call in their place. @throws INVALID_ARGUMENT for unknown names and other types */
function attributesOf(name: string, defaults: KernelAttributes, given: unknown): KernelAttributes {
  if (given === undefined) return defaults
  const known = Object.keys(defaults)
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalidArgument(
      name,
      `its inputs, then attributes (${known.join(', ') || 'it has none'})`,
      Array.isArray(given) ? 'more arguments' : String(given),
    )
  }
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaults, key)) throw invalidArgument(name, `attributes among ${known.join(', ') || 'none'}`, key)
    if (value !== undefined && typeof value !== 'number') throw invalidArgument(name, `a number as ${key}`, typeof value)
  }
  return { ...defaults, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) } as KernelAttributes
}
