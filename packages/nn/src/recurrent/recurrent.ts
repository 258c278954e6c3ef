/**
 * Base of RNN, LSTM and GRU: weights under PyTorch's names, stacked layers, both directions, dropout between layers, the checks.
 * Each of the three adds the function of one layer in one direction (`rnn-layer.ts`, `lstm-layer.ts`, `gru-layer.ts`). PyTorch: `RNNBase`.
 */
import { cat, dropout, linear, stack } from '@postgrad/autograd'
import { type Tensor, zeros } from '@postgrad/tensor'
import { checkTensor, checkTensors, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkDType, checkOptions, checkProbability, checkShapeIs, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { fanInBound, type ParameterOptions, uniform } from '../module/parameter.js'

export interface RecurrentOptions extends ParameterOptions {
  /** The number of layers, each of which takes the output of the one below; default 1. */
  readonly numLayers?: number
  /** Whether there are biases; default true. */
  readonly bias?: boolean
  /** Whether input and output are [N, T, …] instead of [T, N, …]; default false. The states are [layers, N, H] in both cases. */
  readonly batchFirst?: boolean
  /** The probability that an element between two layers becomes 0 in training; default 0. */
  readonly dropout?: number
  /** Whether a second set of weights goes through the sequence backwards; default false. Its output follows that of the first set in the last dimension. */
  readonly bidirectional?: boolean
}

/** The weights of one layer in one direction; G gates of H rows each. */
export interface DirectionWeights {
  /** [G H, width of the layer's input] */
  readonly weightIh: Tensor
  /** [G H, H] */
  readonly weightHh: Tensor
  /** [G H] both, or both null */
  readonly biasIh: Tensor | null
  readonly biasHh: Tensor | null
}

/** One state after another: h, and c of an LSTM; each [N, H]. */
export type LayerState = readonly Tensor[]

export interface LayerRun {
  /** h after every step, [T, N, H] */
  readonly output: Tensor
  readonly state: LayerState
}

export abstract class RecurrentModule extends Module {
  /** The last extent of x. */
  readonly inputSize: number
  /** The last extent of the state. */
  readonly hiddenSize: number
  /** The number of layers. */
  readonly numLayers: number
  /** Whether x and the output are [N, T, …]. */
  readonly batchFirst: boolean
  /** Whether each layer goes through the sequence in both directions. */
  readonly bidirectional: boolean
  /**
   * The weights by name: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, those of the second direction with the suffix `_reverse`, then layer 1,
   * and so on.
   */
  readonly weights = new Map<string, Tensor>()
  /** The probability that an element between two layers becomes 0 in training. */
  readonly dropout: number
  private readonly bias: boolean

  /** @param others the names of options that the class adds @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
  protected constructor(gates: number, inputSize: number, hiddenSize: number, options: RecurrentOptions, others: readonly string[] = []) {
    super()
    const known = ['numLayers', 'bias', 'batchFirst', 'dropout', 'bidirectional', 'dtype', ...others]
    checkOptions<object>(new.target.name, options, known as never[])
    const { numLayers = 1, bias = true, batchFirst = false, dropout: p = 0, bidirectional = false, dtype } = options
    const parameter: ParameterOptions = dtype === undefined ? {} : { dtype }
    const op = new.target.name
    checkSizes(op, { inputSize, hiddenSize, numLayers })
    checkProbability(op, 'dropout', p)
    this.inputSize = inputSize
    this.hiddenSize = hiddenSize
    this.numLayers = numLayers
    this.batchFirst = batchFirst
    this.bidirectional = bidirectional
    this.bias = bias
    this.dropout = p
    const draw = (name: string, ...shape: number[]) => this.weights.set(name, uniform(shape, fanInBound(hiddenSize), parameter))
    for (const suffix of this.suffixes()) {
      const width = suffix.startsWith('_l0') ? inputSize : hiddenSize * this.directions
      draw(`weight_ih${suffix}`, gates * hiddenSize, width)
      draw(`weight_hh${suffix}`, gates * hiddenSize, hiddenSize)
      if (!bias) continue
      draw(`bias_ih${suffix}`, gates * hiddenSize)
      draw(`bias_hh${suffix}`, gates * hiddenSize)
    }
    noteMembers(this)
  }

  /** One layer in one direction: x [T, N, width], the states each [N, H]. */
  protected abstract runLayer(x: Tensor, weights: DirectionWeights, state: LayerState, reverse: boolean): LayerRun

  override fieldName(field: string): string {
    return field === 'weights' ? '' : super.fieldName(field)
  }

  override extraRepr(): string {
    const { inputSize, hiddenSize, numLayers, bias, batchFirst, bidirectional } = this
    return extraRepr({ inputSize, hiddenSize, numLayers, bias, batchFirst, dropout: this.dropout, bidirectional })
  }

  private get directions(): number {
    return this.bidirectional ? 2 : 1
  }

  private suffixes(): string[] {
    return Array.from({ length: this.numLayers }, (_, k) => (this.bidirectional ? [`_l${k}`, `_l${k}_reverse`] : [`_l${k}`])).flat()
  }

  /**
   * All layers over x, [T, N, inputSize] ([N, T, inputSize] with batchFirst) or [T, inputSize]; `states` as the caller gave them, each
   * [layers · directions, N, H] or [layers · directions, H], or undefined for zeros.
   * @returns the last layer's output [T, N, directions · H] (in x's form), and the states
   */
  protected run(x: Tensor, states: readonly Tensor[] | undefined, stateCount: number): { output: Tensor; states: Tensor[] } {
    const op = this.constructor.name
    checkTensor(op, 'the input', x)
    if (states !== undefined) checkTensors(op, 'the states', states)
    const single = x.ndim === 2
    let sequence = single ? x.unsqueeze(1) : this.batchFirst && x.ndim === 3 ? x.transpose(0, 1) : x
    this.checkInput(op, x, sequence)
    checkDType(op, 'input', x, this.weights.get('weight_ih_l0')!.dtype)
    const batch = sequence.shape[1]!
    const rows = this.numLayers * this.directions
    const shape = single ? [rows, this.hiddenSize] : [rows, batch, this.hiddenSize]
    for (const state of states ?? []) {
      checkDType(op, 'a state', state, x.dtype)
      checkShapeIs(op, 'a state', state, shape, 'Pass the state that an earlier call with the same batch returned, or none.')
    }
    const zero = states === undefined ? zeros([batch, this.hiddenSize], { dtype: x.dtype, device: x.device }) : null
    const begin = (row: number): LayerState =>
      Array.from({ length: stateCount }, (_, i) => zero ?? (single ? states![i]!.narrow(0, row, 1) : states![i]!.select(0, row)))
    const last: LayerState[] = []
    for (let layer = 0; layer < this.numLayers; layer++) {
      if (layer > 0) sequence = dropout(sequence, this.dropout, { training: this.training })
      const runs = (this.bidirectional ? [false, true] : [false]).map((reverse, direction) =>
        this.runLayer(sequence, this.directionWeights(layer, reverse), begin(layer * this.directions + direction), reverse),
      )
      sequence =
        runs.length === 1
          ? runs[0]!.output
          : cat(
              runs.map(({ output }) => output),
              2,
            )
      last.push(...runs.map(({ state }) => state))
    }
    const output = single ? sequence.squeeze(1) : this.batchFirst ? sequence.transpose(0, 1) : sequence
    const finals = Array.from({ length: stateCount }, (_, i) => stack(last.map((state) => state[i]!)))
    return { output, states: single ? finals.map((state) => state.squeeze(1)) : finals }
  }

  private directionWeights(layer: number, reverse: boolean): DirectionWeights {
    const suffix = `_l${layer}${reverse ? '_reverse' : ''}`
    const of = (name: string) => this.weights.get(name + suffix)
    return { weightIh: of('weight_ih')!, weightHh: of('weight_hh')!, biasIh: of('bias_ih') ?? null, biasHh: of('bias_hh') ?? null }
  }

  private checkInput(op: string, x: Tensor, sequence: Tensor): void {
    if (sequence.ndim === 3 && x.shape.at(-1) === this.inputSize && sequence.shape[0]! > 0) return
    throw shapeMismatch(
      op,
      `input [${this.batchFirst ? 'N, T' : 'T, N'}, ${this.inputSize}] or [T, ${this.inputSize}] of at least one step`,
      shapeText(x.shape),
      'The last dimension is inputSize.',
      { shape: [...x.shape] },
    )
  }
}

/** The part of the gates that does not wait for h, for all steps in one product: x [T, N, width] → [T, N, G H]. Both biases are in it. */
export function inputGates(x: Tensor, { weightIh, biasIh, biasHh }: DirectionWeights): Tensor {
  return linear(x, weightIh, biasIh === null || biasHh === null ? null : biasIh.add(biasHh))
}

/** h after the last step, of a layer's output [T, N, H]. */
export function lastStep(output: Tensor, reverse: boolean): Tensor {
  return output.select(0, reverse ? 0 : output.shape[0]! - 1)
}
