/** Multi-head attention. PyTorch: `torch.nn.MultiheadAttention`, without biases for keys and values (`add_bias_kv`, `add_zero_attn`). */
import { dropout, linear, scaledDotProductAttention, softmax } from '@postgrad/autograd'
import { type Tensor, zeros } from '@postgrad/tensor'
import { dtypeMismatch, invalidArgument, isFloating, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOptions, checkProbability, checkShapeIs, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { xavierUniform_, zeros_ } from '../module/init.js'
import { Module, noteMembers } from '../module/module.js'
import { constant, type ParameterOptions, parameter } from '../module/parameter.js'
import { Linear } from './linear.js'

/** Options of `MultiheadAttention`. */
export interface MultiheadAttentionOptions extends ParameterOptions {
  /** The probability that a weight of attention becomes 0 in training; default 0. */
  readonly dropout?: number
  /** Whether the projections have a bias; default true. */
  readonly bias?: boolean
  /** The width of the keys; default embedDim. */
  readonly kdim?: number
  /** The width of the values; default embedDim. */
  readonly vdim?: number
  /** Whether inputs and output are [N, L, …] instead of [L, N, …]; default false. */
  readonly batchFirst?: boolean
}

/**
 * Options of `MultiheadAttention.forward`. A bool mask is true where a position is not attended to; in `scaledDotProductAttention` it is true where a position
 * takes part. The numbers of another mask are added to the scores.
 */
export interface AttentionCall {
  /** Which keys are padding: [N, S], or [S] for a single sequence. Default none. */
  readonly keyPaddingMask?: Tensor | null
  /** Which positions each query does not attend to: [L, S], or [N · numHeads, L, S]. Default none. */
  readonly attnMask?: Tensor | null
  /** Whether to return the weights of attention, too; default true. Without them attention needs less memory (`scaledDotProductAttention`). */
  readonly needWeights?: boolean
  /** Whether to return the mean of the weights over the heads; default true. */
  readonly averageAttnWeights?: boolean
}

const NAMES: Readonly<Record<string, string>> = {
  inProjWeight: 'in_proj_weight',
  qProjWeight: 'q_proj_weight',
  kProjWeight: 'k_proj_weight',
  vProjWeight: 'v_proj_weight',
  inProjBias: 'in_proj_bias',
  outProj: 'out_proj',
}

/**
 * Attention with several heads over [L, N, embedDim], or [N, L, embedDim] with `batchFirst` (default false). `dropout` is 0 by default. PyTorch:
 * `torch.nn.MultiheadAttention`, without biases for keys and values.
 * @example
 * const attention = new MultiheadAttention(8, 2, { batchFirst: true })
 * const tokens = randn([4, 5, 8]) // a batch of 4, with 5 tokens each
 * const [output, weights] = attention.forward(tokens, tokens, tokens)
 * output.shape // [4, 5, 8]
 * weights?.shape // [4, 5, 5]
 */
export class MultiheadAttention extends Module {
  /** The width of queries and output. */
  readonly embedDim: number
  /** How many heads share the width. */
  readonly numHeads: number
  /** The probability that a weight of attention becomes 0 in training. */
  readonly dropout: number
  /** Whether the batch is the first dimension. */
  readonly batchFirst: boolean
  /** The projections of query, key and value, [3 embedDim, embedDim]; null if keys or values have a width of their own. */
  readonly inProjWeight: Tensor | null
  /** The projection of the query, [embedDim, embedDim]; null if inProjWeight is not null. */
  readonly qProjWeight: Tensor | null
  /** The projection of the key, [embedDim, kdim]; null if inProjWeight is not null. */
  readonly kProjWeight: Tensor | null
  /** The projection of the value, [embedDim, vdim]; null if inProjWeight is not null. */
  readonly vProjWeight: Tensor | null
  /** The biases of the three projections, [3 embedDim], or null. */
  readonly inProjBias: Tensor | null
  /** The projection of the joined results of all heads. */
  readonly outProj: Linear

  /**
   * Projections begin Xavier uniform, `outProj` as in Linear, and all biases as 0.
   * @throws INVALID_ARGUMENT if a size is not valid, or the heads do not divide embedDim; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(embedDim: number, numHeads: number, options: MultiheadAttentionOptions = {}) {
    super()
    checkOptions('MultiheadAttention', options, ['dropout', 'bias', 'kdim', 'vdim', 'batchFirst', 'dtype'])
    const { dropout: p = 0, bias = true, kdim = embedDim, vdim = embedDim, batchFirst = false, dtype = 'float32' } = options
    checkSizes('MultiheadAttention', { embedDim, numHeads, kdim, vdim })
    checkProbability('MultiheadAttention', 'dropout', p)
    if (embedDim % numHeads !== 0) {
      throw invalidArgument(
        'MultiheadAttention',
        `heads that divide the width ${embedDim}`,
        numHeads,
        'Each head gets an equal part of the width.',
      )
    }
    this.embedDim = embedDim
    this.numHeads = numHeads
    this.dropout = p
    this.batchFirst = batchFirst
    const draw = (rows: number, columns: number) => parameter(xavierUniform_(zeros([rows, columns], { dtype })))
    const joint = kdim === embedDim && vdim === embedDim
    this.inProjWeight = joint ? draw(3 * embedDim, embedDim) : null
    this.qProjWeight = joint ? null : draw(embedDim, embedDim)
    this.kProjWeight = joint ? null : draw(embedDim, kdim)
    this.vProjWeight = joint ? null : draw(embedDim, vdim)
    this.inProjBias = bias ? constant([3 * embedDim], 0, { dtype }) : null
    this.outProj = new Linear(embedDim, embedDim, { bias, dtype })
    if (this.outProj.bias !== null) zeros_(this.outProj.bias)
    noteMembers(this)
  }

  override fieldName(field: string): string {
    return NAMES[field] ?? super.fieldName(field)
  }

  override extraRepr(): string {
    const { embedDim, numHeads, batchFirst } = this
    return extraRepr({ embedDim, numHeads, dropout: this.dropout, batchFirst })
  }

  /**
   * query [L, N, embedDim], key [S, N, kdim], value [S, N, vdim] → output [L, N, embedDim] and weights [N, L, S]. With `batchFirst` N comes first; a single
   * sequence has no N. Weights that are not averaged are [N, numHeads, L, S]; weights that are not needed are null.
   * @throws INVALID_ARGUMENT if an option is unknown; SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ from that of the parameters
   */
  forward(query: Tensor, key: Tensor, value: Tensor, options: AttentionCall = {}): [output: Tensor, weights: Tensor | null] {
    checkOptions('MultiheadAttention.forward', options, ['keyPaddingMask', 'attnMask', 'needWeights', 'averageAttnWeights'])
    const { keyPaddingMask = null, attnMask = null, needWeights = true, averageAttnWeights = true } = options
    const single = query.ndim === 2
    this.checkInputs(query, key, value)
    // [N, L, width] from here on. Self-attention keeps one tensor for all three, which is projected at once.
    const batched = (x: Tensor) => (single ? x.unsqueeze(0) : this.batchFirst ? x : x.transpose(0, 1))
    const q3 = batched(query)
    const k3 = key === query ? q3 : batched(key)
    const v3 = value === key ? k3 : batched(value)
    const [batch, length] = q3.shape as readonly [number, number]
    const keys = k3.shape[1]!
    const [q, k, v] = this.project(q3, k3, v3).map((x) => this.split(x)) as [Tensor, Tensor, Tensor]
    if (keyPaddingMask !== null) {
      const expected = single ? [keys] : [batch, keys]
      checkShapeIs('MultiheadAttention', 'a keyPaddingMask', keyPaddingMask, expected, 'There is one entry for each key.')
    }
    const masks = [
      attnMask === null ? null : this.shapedMask(attnMask, batch, length, keys),
      keyPaddingMask === null ? null : keyPaddingMask.reshape([batch, 1, 1, keys]),
    ]
    const mask = masks.reduce(joined, null)
    const dropoutP = this.training ? this.dropout : 0
    const shares = needWeights ? this.shares(q, k, mask, dropoutP) : null
    const heads = shares?.matmul(v) ?? scaledDotProductAttention(q, k, v, { attnMask: shown(mask), dropoutP })
    const joint = heads.transpose(1, 2).reshape([batch, length, this.embedDim])
    const projected = this.outProj.forward(joint)
    const output = single ? projected.squeeze(0) : this.batchFirst ? projected : projected.transpose(0, 1)
    if (shares === null) return [output, null]
    const weights = averageAttnWeights ? shares.mean(1) : shares
    return [output, single ? weights.squeeze(0) : weights]
  }

  /** The weights of attention, [N, numHeads, L, S]. */
  private shares(q: Tensor, k: Tensor, mask: Tensor | null, dropoutP: number): Tensor {
    const scores = q.mul(1 / Math.sqrt(this.embedDim / this.numHeads)).matmul(k.transpose(-2, -1))
    const masked = mask === null ? scores : mask.dtype === 'bool' ? mask.where(Number.NEGATIVE_INFINITY, scores) : scores.add(mask)
    return dropout(softmax(masked, -1), dropoutP)
  }

  /** Each [N, positions, embedDim]. */
  private project(q: Tensor, k: Tensor, v: Tensor): Tensor[] {
    const { embedDim, inProjWeight, inProjBias } = this
    if (inProjWeight !== null && q === k && k === v) return linear(q, inProjWeight, inProjBias).chunk(3, -1)
    const own = [this.qProjWeight, this.kProjWeight, this.vProjWeight]
    return [q, k, v].map((x, i) => {
      const weight = own[i] ?? inProjWeight!.narrow(0, i * embedDim, embedDim)
      return linear(x, weight, inProjBias?.narrow(0, i * embedDim, embedDim))
    })
  }

  /** [N, positions, embedDim] → [N, numHeads, positions, embedDim / numHeads] */
  private split(x: Tensor): Tensor {
    const [batch, positions] = x.shape as readonly [number, number]
    return x.reshape([batch, positions, this.numHeads, this.embedDim / this.numHeads]).transpose(1, 2)
  }

  private shapedMask(mask: Tensor, batch: number, length: number, keys: number): Tensor {
    const rows = batch * this.numHeads
    if (mask.ndim === 2)
      checkShapeIs('MultiheadAttention', 'an attnMask', mask, [length, keys], `Or one for each head, [${rows}, ${length}, ${keys}].`)
    else checkShapeIs('MultiheadAttention', 'an attnMask', mask, [rows, length, keys], `Or one for all, [${length}, ${keys}].`)
    return mask.ndim === 2 ? mask : mask.reshape([batch, this.numHeads, length, keys])
  }

  private checkInputs(query: Tensor, key: Tensor, value: Tensor): void {
    const at = this.batchFirst ? 0 : 1
    const single = query.ndim === 2
    const fits =
      (single || query.ndim === 3) &&
      key.ndim === query.ndim &&
      value.ndim === query.ndim &&
      query.shape.at(-1) === this.embedDim &&
      key.shape.at(-1) === (this.kProjWeight ?? this.outProj.weight).shape[1] &&
      value.shape.at(-1) === (this.vProjWeight ?? this.outProj.weight).shape[1] &&
      key.shape.slice(0, -1).every((extent, d) => extent === value.shape[d]) &&
      (single || key.shape[at] === query.shape[at])
    if (fits) return
    const shape = (positions: string, width: number) => `[${this.batchFirst ? `N, ${positions}` : `${positions}, N`}, ${width}]`
    const [k, v] = [this.kProjWeight, this.vProjWeight].map((weight) => weight?.shape[1] ?? this.embedDim) as [number, number]
    throw shapeMismatch(
      'MultiheadAttention',
      `query ${shape('L', this.embedDim)}, key ${shape('S', k)}, value ${shape('S', v)}, or all without N`,
      [query, key, value].map((x) => shapeText(x.shape)).join(', '),
      'Look at batchFirst, and at kdim and vdim.',
    )
  }
}

/** Two masks as one: of bool if both are, and else of numbers to be added. @throws DTYPE_MISMATCH */
function joined(first: Tensor | null, second: Tensor | null): Tensor | null {
  if (second === null) return first
  if (second.dtype !== 'bool' && !isFloating(second.dtype)) {
    throw dtypeMismatch('MultiheadAttention', 'a mask of bool or of floating point', second.dtype, 'Compare first, as in ne(mask, 0).')
  }
  if (first === null) return second
  if (first.dtype === 'bool') return second.dtype === 'bool' ? first.logicalOr(second) : first.where(Number.NEGATIVE_INFINITY, second)
  return second.dtype === 'bool' ? second.where(Number.NEGATIVE_INFINITY, first) : first.add(second)
}

/** As scaledDotProductAttention takes a mask: a bool one is true where a position takes part. */
function shown(mask: Tensor | null): Tensor | null {
  return mask?.dtype === 'bool' ? mask.logicalNot() : mask
}
