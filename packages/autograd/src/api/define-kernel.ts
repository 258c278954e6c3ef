/**
 * Users' own kernels: an operation written as the body of one thread, in the part of JavaScript that gpu.js compiles, with its derivative. Beside:
 * `custom-function.ts`, functions made of operations that exist, which records these. Below: tensor's `raw/user-kernel.ts`.
 */
import { PostgradError } from '@postgrad/base'
import { currentDevice, type Device, type KernelSource, type Tensor } from '@postgrad/tensor'
import { checkKernelInput, invalidArgument, runUserKernel, type Shape, sameShape, userKernel } from '@postgrad/tensor/internal'
import { operations } from '../graph/recorded.js'
import { defineFunction } from '../record/custom-function.js'

/** Names of the tensors that a kernel takes. */
type Names = readonly string[]
type Each<I extends Names, V> = { readonly [K in I[number]]: V }
/** Numbers that a kernel takes behind its tensors, by name. */
export type KernelAttributes = Readonly<Record<string, number>>

/** What a derivative may read beside the gradient and the inputs. */
export interface KernelContext<I extends Names = Names, A extends KernelAttributes = KernelAttributes> {
  /** The kernel's result. */
  readonly result: Tensor
  /** The numbers that the call was given, with defaults filled in. */
  readonly attributes: A
  /** By input: whether its gradient will be used. */
  readonly needsInputGrad: Each<I, boolean>
}

/**
 * Either a function from the result's gradient to one gradient per input, in their order (null where there is none; a single one may stand without an
 * array). It computes with tensors, so it is differentiated itself under createGraph.
 *
 * Or a kernel per input (null: not differentiable) of (grad, …inputs, …attributes), one thread per element of that input, with the constants of the
 * definition. These have no derivative of their own: the second one is an error.
 */
export type KernelDerivative<I extends Names, A extends KernelAttributes> =
  | ((grad: Tensor, inputs: Each<I, Tensor>, ctx: KernelContext<I, A>) => Tensor | null | readonly (Tensor | null)[])
  | Each<I, KernelSource | null>

/** What `defineKernel` takes: a kernel's text, its inputs and numbers, and its derivative. */
export interface KernelDefinition<I extends Names, A extends KernelAttributes> {
  /** An identifier, shown in errors and as the node's name. */
  readonly name: string
  /** The names of its tensors: its first parameters. Each comes as a flat array, dense and row-major. */
  readonly inputs: I
  /** Its numbers, the parameters behind the tensors, with their defaults. A call may change them without a new compilation. */
  readonly attributes?: A
  /**
   * The text of a gpu.js function (or a plain function, of which only the text is used: no closures, no arrow). It computes the element
   * `this.thread.x` of the result (counted row by row), reads integers from `this.constants`, and returns one number. It reads an input as `x[i]`,
   * and nothing outside of it.
   */
  readonly kernel: KernelSource
  /** The result's shape. Left out: the inputs are broadcast to one shape, which is the result's. */
  readonly shape?: (shapes: Each<I, Shape>, attributes: A) => Shape
  /** Integers for `this.constants`: sizes, strides, bounds. They are compiled in. */
  readonly constants?: (shapes: Each<I, Shape>, attributes: A) => Readonly<Record<string, number>>
  /** Left out: backward throws DERIVATIVE_MISSING. */
  readonly derivative?: KernelDerivative<I, A>
}

/** An ordinary function of tensors, and the answer to which code it would run. */
export interface DefinedKernel<I extends Names, A extends KernelAttributes> {
  /** Tensors, all of them float32 or all float64, then attributes that differ from their defaults. */
  (...args: [...tensors: { [K in keyof I]: Tensor }, attributes?: Partial<A>]): Tensor
  /** `variant` is 'gpu.js cpu'. @param device default: the current one */
  kernelFor(device?: Device): { readonly device: string; readonly variant: string }
}

/**
 * Makes an operation out of a kernel: recorded for backward, callable by name on other workers once it is exposed.
 *
 *     const swish = defineKernel({
 *       name: 'swish',
 *       inputs: ['x'],
 *       kernel: 'function (x) { const v = x[this.thread.x]; return v / (1 + Math.exp(-v)); }',
 *       derivative: (grad, { x }) => {
 *         const s = x.sigmoid()
 *         return grad.mul(s.add(x.mul(s).mul(s.neg().add(1))))
 *       },
 *     })
 *
 * gpu.js runs it on every device, in its mode cpu. Each thread of the process compiles it at its first call and once for every new size or constant (some 1 ms), and keeps the last ones that were used.
 *
 * float64 is for `gradcheck`, and slow: the text runs as the JavaScript function that it is.
 *
 * When it is compiled for a new size, threads run once to see what they read (all of up to 1024, else a sample): KERNEL_OUT_OF_RANGE. Indices that
 * depend on later values are not seen.
 *
 * The definition throws INVALID_ARGUMENT for a text that is not a function of the inputs and attributes, indexes an input twice, assigns to elements, or draws random
 * numbers. A call throws DTYPE_MISMATCH unless all inputs are float32 or all float64, SHAPE_MISMATCH when they do not broadcast (without a shape rule),
 * INVALID_ARGUMENT for shapes or constants that are none, KERNEL_COMPILE with gpu.js's words, KERNEL_RESULT when it returns more than one number,
 * KERNEL_MODE when gpu.js would run it in another mode, KERNEL_UNSUPPORTED for more than 2²⁴ elements. Its backward throws DERIVATIVE_MISSING.
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

/** The defaults with what a call gives instead. @throws INVALID_ARGUMENT for unknown names, and for what is no number */
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
