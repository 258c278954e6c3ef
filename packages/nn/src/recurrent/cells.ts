/** One step of a recurrent network at a time. PyTorch: `torch.nn.RNNCell`, `LSTMCell`, `GRUCell`. */
import { type Tensor, zeros } from '@postgrad/tensor'
import { shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkDType, checkOneOf, checkOptions, checkShapeIs, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { fanInBound, type ParameterOptions, uniform } from '../module/parameter.js'
import { gruSteps } from './gru.js'
import { lstmLayer } from './lstm-layer.js'
import { type DirectionWeights, inputGates } from './recurrent.js'
import { type RnnNonlinearity, rnnLayer } from './rnn-layer.js'

/** Options of `LSTMCell` and `GRUCell`. */
export interface CellOptions extends ParameterOptions {
  /** Whether there are biases; default true. */
  readonly bias?: boolean
}

/** Options of `RNNCell`. */
export interface RNNCellOptions extends CellOptions {
  /** The activation; default 'tanh'. */
  readonly nonlinearity?: RnnNonlinearity
}

const NAMES: Readonly<Record<string, string>> = { weightIh: 'weight_ih', weightHh: 'weight_hh', biasIh: 'bias_ih', biasHh: 'bias_hh' }

abstract class Cell extends Module implements DirectionWeights {
  /** The last extent of x. */
  readonly inputSize: number
  /** The last extent of the state. */
  readonly hiddenSize: number
  /** The weights for x, [gates · hiddenSize, inputSize]. */
  readonly weightIh: Tensor
  /** The weights for h, [gates · hiddenSize, hiddenSize]. */
  readonly weightHh: Tensor
  /** The bias for x, [gates · hiddenSize], or null. */
  readonly biasIh: Tensor | null
  /** The bias for h, [gates · hiddenSize], or null. */
  readonly biasHh: Tensor | null

  protected constructor(gates: number, inputSize: number, hiddenSize: number, given: CellOptions, others: readonly string[] = []) {
    super()
    checkOptions<object>(new.target.name, given, ['bias', 'dtype', ...others] as never[])
    const { bias = true, dtype } = given
    const options: ParameterOptions = dtype === undefined ? {} : { dtype }
    checkSizes(new.target.name, { inputSize, hiddenSize })
    this.inputSize = inputSize
    this.hiddenSize = hiddenSize
    const draw = (...shape: number[]) => uniform(shape, fanInBound(hiddenSize), options)
    this.weightIh = draw(gates * hiddenSize, inputSize)
    this.weightHh = draw(gates * hiddenSize, hiddenSize)
    this.biasIh = bias ? draw(gates * hiddenSize) : null
    this.biasHh = bias ? draw(gates * hiddenSize) : null
    noteMembers(this)
  }

  override fieldName(field: string): string {
    return NAMES[field] ?? super.fieldName(field)
  }

  override extraRepr(): string {
    return extraRepr({ inputSize: this.inputSize, hiddenSize: this.hiddenSize, bias: this.biasIh !== null })
  }

  /** As a sequence of one step: x [1, N, inputSize], the states each [N, hiddenSize]. */
  protected step(x: Tensor, states: readonly Tensor[] | undefined, count: number): { x: Tensor; states: Tensor[]; single: boolean } {
    const op = this.constructor.name
    const single = x.ndim === 1
    if ((x.ndim !== 1 && x.ndim !== 2) || x.shape.at(-1) !== this.inputSize) {
      throw shapeMismatch(
        op,
        `input [N, ${this.inputSize}] or [${this.inputSize}]`,
        shapeText(x.shape),
        'A cell takes one step: select() it.',
      )
    }
    const rows = single ? x.unsqueeze(0) : x
    const shape = [...x.shape.slice(0, -1), this.hiddenSize]
    checkDType(op, 'input', x, this.weightIh.dtype)
    for (const state of states ?? []) {
      checkDType(op, 'a state', state, x.dtype)
      checkShapeIs(op, 'a state', state, shape, 'Pass what an earlier call returned, or nothing.')
    }
    const zero = states === undefined ? zeros([rows.shape[0]!, this.hiddenSize], { dtype: x.dtype, device: x.device }) : null
    const begin = Array.from({ length: count }, (_, i) => zero ?? (single ? states![i]!.unsqueeze(0) : states![i]!))
    return { x: rows.unsqueeze(0), states: begin, single }
  }
}

/**
 * One step of a simple recurrent network: the activation, tanh (default) or relu, of a linear layer of x and h. PyTorch: `torch.nn.RNNCell`.
 * @example
 * const cell = new RNNCell(4, 8)
 * let h = zeros([2, 8])
 * for (const input of randn([5, 2, 4]).unbind(0)) h = cell.forward(input, h)
 * h.shape // [2, 8]
 */
export class RNNCell extends Cell {
  /** The activation: 'tanh' or 'relu'. */
  readonly nonlinearity: RnnNonlinearity

  /**
   * All weights and biases begin uniform in ±1/√hiddenSize.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: RNNCellOptions = {}) {
    super(1, inputSize, hiddenSize, options, ['nonlinearity'])
    const { nonlinearity = 'tanh' } = options
    checkOneOf('RNNCell', 'nonlinearity', nonlinearity, ['tanh', 'relu'])
    this.nonlinearity = nonlinearity
  }

  /** x [N, inputSize] or [inputSize], and h [N, hiddenSize] or [hiddenSize] (default zeros) → the next h. @throws SHAPE_MISMATCH if the shapes do not fit */
  forward(x: Tensor, h?: Tensor): Tensor {
    const { x: sequence, states, single } = this.step(x, h && [h], 1)
    const output = rnnLayer(inputGates(sequence, this), this.weightHh, states[0]!, this.nonlinearity, false).select(0, 0)
    return single ? output.squeeze(0) : output
  }
}

/**
 * One step of an LSTM: x and (h, c) → (h, c). PyTorch: `torch.nn.LSTMCell`.
 * @example
 * const cell = new LSTMCell(4, 8)
 * let state = cell.forward(randn([2, 4]))
 * state = cell.forward(randn([2, 4]), state)
 * state.map((each) => each.shape) // [[2, 8], [2, 8]]
 */
export class LSTMCell extends Cell {
  /**
   * All weights and biases begin uniform in ±1/√hiddenSize.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: CellOptions = {}) {
    super(4, inputSize, hiddenSize, options)
  }

  /** x [N, inputSize] or [inputSize], and h and c [N, hiddenSize] or [hiddenSize] (default zeros) → the next h and c. @throws SHAPE_MISMATCH if the shapes do not fit */
  forward(x: Tensor, state?: readonly [h: Tensor, c: Tensor]): [h: Tensor, c: Tensor] {
    const { x: sequence, states, single } = this.step(x, state, 2)
    const [output, c] = lstmLayer(inputGates(sequence, this), this.weightHh, states[0]!, states[1]!, false) as [Tensor, Tensor]
    return single ? [output.reshape([this.hiddenSize]), c.squeeze(0)] : [output.select(0, 0), c]
  }
}

/**
 * One step of a GRU: x and h → h. PyTorch: `torch.nn.GRUCell`.
 * @example new GRUCell(4, 8).forward(randn([2, 4])).shape // [2, 8]
 */
export class GRUCell extends Cell {
  /**
   * All weights and biases begin uniform in ±1/√hiddenSize.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: CellOptions = {}) {
    super(3, inputSize, hiddenSize, options)
  }

  /** x [N, inputSize] or [inputSize], and h [N, hiddenSize] or [hiddenSize] (default zeros) → the next h. @throws SHAPE_MISMATCH if the shapes do not fit */
  forward(x: Tensor, h?: Tensor): Tensor {
    const { x: sequence, states, single } = this.step(x, h && [h], 1)
    const output = gruSteps(sequence, this, states[0]!, false).select(0, 0)
    return single ? output.squeeze(0) : output
  }
}
