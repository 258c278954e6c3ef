/** Convolutions and their transposes. PyTorch: `torch.nn.Conv1d`, `Conv2d`, `ConvTranspose1d`, `ConvTranspose2d`. */
import { conv1d, conv2d, convTranspose1d, convTranspose2d, pad } from '@postgrad/autograd'
import type { ConvPadding, PadMode, Pair, Tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import { checkOneOf, checkOptions, checkSizes, sizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { fanInBound, type ParameterOptions, uniform } from '../module/parameter.js'

interface SharedOptions<P> extends ParameterOptions {
  /** How far the window moves from one element of the result to the next; default 1. */
  readonly stride?: P
  /** The distance between the elements that one window reads; default 1. */
  readonly dilation?: P
  /** The number of groups of channels, each with weights of its own; default 1. */
  readonly groups?: number
  /** Whether there is a bias; default true. */
  readonly bias?: boolean
}

/** Options of `Conv1d` (P is a number) and `Conv2d` (P is a `Pair`). */
export interface ConvModuleOptions<P> extends SharedOptions<P> {
  /** The padding on each side; default 0, the same as 'valid'. 'same' keeps the size, and requires stride 1. */
  readonly padding?: ConvPadding<P>
  /** The kind of values that fill the padding; default 'zeros'. */
  readonly paddingMode?: 'zeros' | Exclude<PadMode, 'constant'>
}

/** Options of `ConvTranspose1d` (P is a number) and `ConvTranspose2d` (P is a `Pair`). */
export interface ConvTransposeModuleOptions<P> extends SharedOptions<P> {
  /** How many elements are cut off each side of the result; default 0. */
  readonly padding?: P
  /** How many elements are added at the end of each dimension of the result; default 0. */
  readonly outputPadding?: P
}

/** Base of all convolutions. `dims` is 1 or 2; P is a number or a pair. */
abstract class ConvBase<P extends Pair> extends Module {
  /** The number of channels of the input. */
  readonly inChannels: number
  /** The number of channels of the result. */
  readonly outChannels: number
  /** The extents of the window. */
  readonly kernelSize: readonly number[]
  /** How far the window moves from one element of the result to the next. */
  readonly stride: P
  /** The distance between the elements that one window reads. */
  readonly dilation: P
  /** The number of groups of channels, each with weights of its own. */
  readonly groups: number
  /** The weights: [outChannels, inChannels / groups, …kernelSize]; of a transposed convolution [inChannels, outChannels / groups, …kernelSize]. */
  readonly weight: Tensor
  /** The bias, [outChannels], or null. */
  readonly bias: Tensor | null

  protected constructor(
    dims: 1 | 2,
    transposed: boolean,
    inChannels: number,
    outChannels: number,
    kernelSize: P,
    { stride = 1 as P, dilation = 1 as P, groups = 1, bias = true, dtype }: SharedOptions<P>,
  ) {
    super()
    const op = new.target.name
    checkSizes(op, { inChannels, outChannels, groups })
    this.kernelSize = sizes(op, 'kernelSize', dims, kernelSize, 1)
    sizes(op, 'stride', dims, stride, 1)
    sizes(op, 'dilation', dims, dilation, 1)
    if (inChannels % groups !== 0 || outChannels % groups !== 0) {
      throw invalidArgument(op, `groups that divide ${inChannels} input and ${outChannels} output channels`, groups)
    }
    this.inChannels = inChannels
    this.outChannels = outChannels
    this.stride = stride
    this.dilation = dilation
    this.groups = groups
    const [rows, columns] = transposed ? [inChannels, outChannels] : [outChannels, inChannels]
    const shape = [rows, columns / groups, ...this.kernelSize]
    const bound = fanInBound(shape.slice(1).reduce((product, extent) => product * extent, 1))
    this.weight = uniform(shape, bound, { dtype })
    this.bias = bias ? uniform([outChannels], bound, { dtype }) : null
    noteMembers(this)
  }

  override extraRepr(): string {
    const { inChannels, outChannels, kernelSize, stride, dilation, groups } = this
    return extraRepr({ inChannels, outChannels, kernelSize, stride, ...this.paddingRepr(), dilation, groups, bias: this.bias !== null })
  }

  protected abstract paddingRepr(): Record<string, unknown>
}

abstract class PaddedConv<P extends Pair> extends ConvBase<P> {
  /** The padding on each side of the input. */
  readonly padding: ConvPadding<P>
  /** The kind of values that fill the padding. */
  readonly paddingMode: 'zeros' | Exclude<PadMode, 'constant'>
  /** For `pad`: before and after, from the last dimension on. Null where zeros are padded, which the operation does by itself. */
  private readonly pads: readonly number[] | null

  protected constructor(dims: 1 | 2, inChannels: number, outChannels: number, kernelSize: P, options: ConvModuleOptions<P>) {
    super(dims, false, inChannels, outChannels, kernelSize, options)
    checkOptions(new.target.name, options, ['stride', 'dilation', 'groups', 'bias', 'padding', 'paddingMode', 'dtype'])
    const { padding = 0 as P, paddingMode = 'zeros' } = options
    const op = new.target.name
    checkOneOf(op, 'paddingMode', paddingMode, ['zeros', 'reflect', 'replicate', 'circular'])
    this.padding = padding
    this.paddingMode = paddingMode
    this.pads = paddingMode === 'zeros' ? checkedPadding(op, dims, padding) : this.around(op, dims)
  }

  /** @returns x with its padding, unless the operation pads it, and the padding that is left to the operation */
  protected padded(x: Tensor): [x: Tensor, padding: ConvPadding<P>] {
    if (this.pads === null) return [x, this.padding]
    return [pad(x, this.pads, { mode: this.paddingMode as PadMode }), 0 as P]
  }

  protected override paddingRepr(): Record<string, unknown> {
    return { padding: this.padding, paddingMode: this.paddingMode }
  }

  private around(op: string, dims: 1 | 2): number[] {
    const { padding } = this
    if (typeof padding !== 'string') return [...sizes(op, 'padding', dims, padding, 0)].reverse().flatMap((each) => [each, each])
    if (padding === 'valid') return new Array<number>(2 * dims).fill(0)
    checkSame(op, dims, this.stride)
    const dilation = sizes(op, 'dilation', dims, this.dilation, 1)
    const totals = this.kernelSize.map((extent, d) => (extent - 1) * dilation[d]!)
    return totals.reverse().flatMap((total) => [Math.floor(total / 2), Math.ceil(total / 2)])
  }
}

/**
 * Convolution with learned weights [outChannels, inChannels / groups, k]. Defaults: stride 1, padding 0, dilation 1, groups 1, with bias. PyTorch:
 * `torch.nn.Conv1d`.
 * @example new Conv1d(4, 8, 3, { padding: 1 }).forward(randn([2, 4, 10])).shape // [2, 8, 10]
 */
export class Conv1d extends PaddedConv<number> {
  /**
   * Weight and bias begin uniform in ±1/√(inChannels / groups · kernelSize).
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inChannels: number, outChannels: number, kernelSize: number, options: ConvModuleOptions<number> = {}) {
    super(1, inChannels, outChannels, kernelSize, options)
  }

  /**
   * x [N, inChannels, L] or [inChannels, L] → [N, outChannels, oL] or [outChannels, oL].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; DTYPE_MISMATCH if x does not have the dtype of the parameters
   */
  forward(x: Tensor): Tensor {
    const { stride, dilation, groups } = this
    const [from, padding] = this.padded(x)
    return conv1d(from, this.weight, this.bias, { stride, padding, dilation, groups })
  }
}

/**
 * Convolution with learned weights [outChannels, inChannels / groups, kH, kW]. Defaults: stride 1, padding 0, dilation 1, groups 1, with bias.
 * PyTorch: `torch.nn.Conv2d`.
 * @example
 * new Conv2d(3, 8, 3).forward(randn([1, 3, 10, 10])).shape // [1, 8, 8, 8]
 * new Conv2d(3, 8, 3, { padding: 'same' }).forward(randn([1, 3, 10, 10])).shape // [1, 8, 10, 10]
 */
export class Conv2d extends PaddedConv<Pair> {
  /**
   * Weight and bias begin uniform in ±1/√(inChannels / groups · kH · kW).
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: ConvModuleOptions<Pair> = {}) {
    super(2, inChannels, outChannels, kernelSize, options)
  }

  /**
   * x [N, inChannels, H, W] or [inChannels, H, W] → [N, outChannels, oH, oW] or [outChannels, oH, oW].
   * @throws SHAPE_MISMATCH if x does not have this shape, or is smaller than the window; DTYPE_MISMATCH if x does not have the dtype of the parameters
   */
  forward(x: Tensor): Tensor {
    const { stride, dilation, groups } = this
    const [from, padding] = this.padded(x)
    return conv2d(from, this.weight, this.bias, { stride, padding, dilation, groups })
  }
}

abstract class TransposedConv<P extends Pair> extends ConvBase<P> {
  /** How many elements are cut off each side of the result. */
  readonly padding: P
  /** How many elements are added at the end of each dimension of the result. */
  readonly outputPadding: P

  protected constructor(dims: 1 | 2, inChannels: number, outChannels: number, kernelSize: P, options: ConvTransposeModuleOptions<P>) {
    super(dims, true, inChannels, outChannels, kernelSize, options)
    checkOptions(new.target.name, options, ['stride', 'dilation', 'groups', 'bias', 'padding', 'outputPadding', 'dtype'])
    const { padding = 0 as P, outputPadding = 0 as P } = options
    sizes(new.target.name, 'padding', dims, padding, 0)
    sizes(new.target.name, 'outputPadding', dims, outputPadding, 0)
    this.padding = padding
    this.outputPadding = outputPadding
  }

  protected override paddingRepr(): Record<string, unknown> {
    return { padding: this.padding, outputPadding: this.outputPadding }
  }
}

/**
 * Transposed convolution with learned weights [inChannels, outChannels / groups, k]. Defaults: stride 1, padding 0, with bias. PyTorch:
 * `torch.nn.ConvTranspose1d`.
 * @example new ConvTranspose1d(8, 4, 2, { stride: 2 }).forward(randn([1, 8, 5])).shape // [1, 4, 10]
 */
export class ConvTranspose1d extends TransposedConv<number> {
  /**
   * Weight and bias begin uniform in ±1/√(outChannels / groups · kernelSize).
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inChannels: number, outChannels: number, kernelSize: number, options: ConvTransposeModuleOptions<number> = {}) {
    super(1, inChannels, outChannels, kernelSize, options)
  }

  /**
   * x [N, inChannels, L] or [inChannels, L] → [N, outChannels, oL] or [outChannels, oL].
   * @throws SHAPE_MISMATCH if x does not have this shape; DTYPE_MISMATCH if x does not have the dtype of the parameters
   */
  forward(x: Tensor): Tensor {
    const { stride, padding, outputPadding, dilation, groups } = this
    return convTranspose1d(x, this.weight, this.bias, { stride, padding, outputPadding, dilation, groups })
  }
}

/**
 * Transposed convolution with learned weights [inChannels, outChannels / groups, kH, kW]. Defaults: stride 1, padding 0, with bias. PyTorch:
 * `torch.nn.ConvTranspose2d`.
 * @example new ConvTranspose2d(8, 3, 2, { stride: 2 }).forward(randn([1, 8, 5, 5])).shape // [1, 3, 10, 10]
 */
export class ConvTranspose2d extends TransposedConv<Pair> {
  /**
   * Weight and bias begin uniform in ±1/√(outChannels / groups · kH · kW).
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: ConvTransposeModuleOptions<Pair> = {}) {
    super(2, inChannels, outChannels, kernelSize, options)
  }

  /**
   * x [N, inChannels, H, W] or [inChannels, H, W] → [N, outChannels, oH, oW] or [outChannels, oH, oW].
   * @throws SHAPE_MISMATCH if x does not have this shape; DTYPE_MISMATCH if x does not have the dtype of the parameters
   */
  forward(x: Tensor): Tensor {
    const { stride, padding, outputPadding, dilation, groups } = this
    return convTranspose2d(x, this.weight, this.bias, { stride, padding, outputPadding, dilation, groups })
  }
}

function checkedPadding(op: string, dims: 1 | 2, padding: ConvPadding<Pair>): null {
  if (typeof padding === 'string') checkOneOf(op, 'padding', padding, ['same', 'valid'])
  else sizes(op, 'padding', dims, padding, 0)
  return null
}

function checkSame(op: string, dims: 1 | 2, stride: Pair): void {
  if (sizes(op, 'stride', dims, stride, 1).every((each) => each === 1)) return
  throw invalidArgument(op, "stride 1 with padding 'same'", String(stride), 'Pass the padding as numbers.')
}
