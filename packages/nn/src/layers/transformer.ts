/** The encoder of a transformer. PyTorch: `torch.nn.TransformerEncoderLayer`, `TransformerEncoder`. */
import type { Tensor } from '@postgrad/tensor'
import { checkOneOf, checkOptions, checkSizes } from '../module/check.js'
import { Module } from '../module/module.js'
import type { ParameterOptions } from '../module/parameter.js'
import { MultiheadAttention } from './attention.js'
import { Dropout } from './dropout.js'
import { Linear } from './linear.js'
import { LayerNorm } from './normalization.js'

/** Options of `TransformerEncoderLayer`. */
export interface TransformerEncoderLayerOptions extends ParameterOptions {
  /** The width between the two linear layers; default 2048. */
  readonly dimFeedforward?: number
  /** The probability of all dropouts; default 0.1. */
  readonly dropout?: number
  /** The activation between the linear layers; default 'relu'. */
  readonly activation?: 'relu' | 'gelu' | ((x: Tensor) => Tensor)
  /** `eps` of the layer norms; default 1e-5. */
  readonly layerNormEps?: number
  /** Whether inputs and output are [N, L, dModel] instead of [L, N, dModel]; default false. */
  readonly batchFirst?: boolean
  /** Whether to normalize before attention and before the linear layers, instead of after them; default false. */
  readonly normFirst?: boolean
}

/** The masks of `TransformerEncoderLayer.forward`. As in MultiheadAttention, a bool mask is true where a position is not attended to. */
export interface EncoderLayerCall {
  /** Which positions each position does not attend to: [L, L], or [N · nhead, L, L]. Default none. */
  readonly srcMask?: Tensor | null
  /** [N, L] */
  readonly srcKeyPaddingMask?: Tensor | null
}

/**
 * Self-attention and two linear layers, each with dropout (0.1), a residual connection and a layer norm. Defaults: dimFeedforward 2048, activation 'relu',
 * batchFirst false, normFirst false. PyTorch: `torch.nn.TransformerEncoderLayer`.
 * @example
 * const layer = new TransformerEncoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true })
 * layer.forward(randn([4, 5, 8])).shape // [4, 5, 8]
 */
export class TransformerEncoderLayer extends Module {
  /** The self-attention. */
  readonly selfAttn: MultiheadAttention
  /** The first linear layer, dModel → dimFeedforward. */
  readonly linear1: Linear
  /** The dropout between the linear layers. */
  readonly dropout: Dropout
  /** The second linear layer, dimFeedforward → dModel. */
  readonly linear2: Linear
  /** The layer norm of the attention part. */
  readonly norm1: LayerNorm
  /** The layer norm of the feed-forward part. */
  readonly norm2: LayerNorm
  /** The dropout after attention. */
  readonly dropout1: Dropout
  /** The dropout after the linear layers. */
  readonly dropout2: Dropout
  /** Whether each layer norm comes before its part instead of after it. */
  readonly normFirst: boolean
  private readonly activation: (x: Tensor) => Tensor

  /** @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64 */
  constructor(dModel: number, nhead: number, options: TransformerEncoderLayerOptions = {}) {
    super()
    checkOptions('TransformerEncoderLayer', options, [
      'dimFeedforward',
      'dropout',
      'activation',
      'layerNormEps',
      'batchFirst',
      'normFirst',
      'dtype',
    ])
    const { dimFeedforward = 2048, dropout = 0.1, activation = 'relu', layerNormEps: eps = 1e-5 } = options
    const { batchFirst = false, normFirst = false, dtype = 'float32' } = options
    if (typeof activation === 'string') checkOneOf('TransformerEncoderLayer', 'activation', activation, ['relu', 'gelu'])
    this.selfAttn = new MultiheadAttention(dModel, nhead, { dropout, batchFirst, dtype })
    this.linear1 = new Linear(dModel, dimFeedforward, { dtype })
    this.dropout = new Dropout(dropout)
    this.linear2 = new Linear(dimFeedforward, dModel, { dtype })
    this.norm1 = new LayerNorm(dModel, { eps, dtype })
    this.norm2 = new LayerNorm(dModel, { eps, dtype })
    this.dropout1 = new Dropout(dropout)
    this.dropout2 = new Dropout(dropout)
    this.normFirst = normFirst
    this.activation = typeof activation === 'function' ? activation : activation === 'relu' ? (x) => x.relu() : (x) => x.gelu()
  }

  override fieldName(field: string): string {
    return field === 'selfAttn' ? 'self_attn' : super.fieldName(field)
  }

  /**
   * src [L, N, dModel], [N, L, dModel] with `batchFirst`, or [L, dModel] → the same shape.
   * @throws SHAPE_MISMATCH if src does not have this shape; DTYPE_MISMATCH if src does not have the dtype of the parameters
   */
  forward(src: Tensor, masks: EncoderLayerCall = {}): Tensor {
    if (this.normFirst) {
      const x = src.add(this.attend(this.norm1.forward(src), masks))
      return x.add(this.feed(this.norm2.forward(x)))
    }
    const x = this.norm1.forward(src.add(this.attend(src, masks)))
    return this.norm2.forward(x.add(this.feed(x)))
  }

  private attend(x: Tensor, { srcMask: attnMask = null, srcKeyPaddingMask: keyPaddingMask = null }: EncoderLayerCall): Tensor {
    return this.dropout1.forward(this.selfAttn.forward(x, x, x, { attnMask, keyPaddingMask, needWeights: false })[0])
  }

  private feed(x: Tensor): Tensor {
    const inner = this.dropout.forward(this.activation(this.linear1.forward(x)))
    return this.dropout2.forward(this.linear2.forward(inner))
  }
}

/** The masks that `TransformerEncoder.forward` gives to every layer. */
export interface EncoderCall {
  /** Which positions each position does not attend to: [L, L], or [N · nhead, L, L]. Default none. */
  readonly mask?: Tensor | null
  /** [N, L] */
  readonly srcKeyPaddingMask?: Tensor | null
}

/**
 * Several encoder layers, one after the other. A function makes each of them; PyTorch copies one layer. PyTorch: `torch.nn.TransformerEncoder`.
 * @example
 * const layer = () => new TransformerEncoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true })
 * new TransformerEncoder(layer, 3).forward(randn([4, 5, 8])).shape // [4, 5, 8]
 */
export class TransformerEncoder extends Module {
  /** The layers in order. */
  readonly layers: readonly TransformerEncoderLayer[]
  /** The layer norm of the last layer's output, or null. */
  readonly norm: LayerNorm | null

  /**
   * @param makeLayer makes the layer at each place. PyTorch takes one layer and copies it, so all its layers have the same initial values.
   * @param norm normalizes the output of the last layer; default none
   * @throws INVALID_ARGUMENT if `numLayers` is not valid
   */
  constructor(makeLayer: (place: number) => TransformerEncoderLayer, numLayers: number, norm: LayerNorm | null = null) {
    super()
    checkSizes('TransformerEncoder', { numLayers })
    this.layers = Array.from({ length: numLayers }, (_, place) => makeLayer(place))
    this.norm = norm
  }

  /**
   * src and masks as in `TransformerEncoderLayer.forward` → the shape of src.
   * @throws SHAPE_MISMATCH if src does not fit; DTYPE_MISMATCH if src does not have the dtype of the parameters
   */
  forward(src: Tensor, { mask: srcMask = null, srcKeyPaddingMask = null }: EncoderCall = {}): Tensor {
    let x = src
    for (const layer of this.layers) x = layer.forward(x, { srcMask, srcKeyPaddingMask })
    return this.norm === null ? x : this.norm.forward(x)
  }
}
