/** The exports of kernels.wasm for convolutions, pooling and normalisation, a part of `KernelExports`; see `assembly/conv.ts`, `pool.ts` and `norm.ts`. */

/** [h, w] read by a window: sizes of the plane and the kernel, strides, paddings above and on the left, dilations. */
type Window = readonly [
  h: number,
  w: number,
  kh: number,
  kw: number,
  strideH: number,
  strideW: number,
  padH: number,
  padW: number,
  dilH: number,
  dilW: number,
]
/** The image to its columns, or back. */
type Columns = (c: number, ...rest: [...Window, oy0: number, oy1: number, ow: number, x: number, col: number]) => void
type Depthwise = (...rest: [...Window, oh: number, ow: number, a: number, b: number, out: number]) => void

type Rows = [ow: number, oy0: number, oy1: number]
type MaxPool = (...rest: [...Window, ...Rows, x: number, out: number, places: number]) => void
/** Like Window, without dilation. */
type AvgPool = (
  h: number,
  w: number,
  kh: number,
  kw: number,
  strideH: number,
  strideW: number,
  padH: number,
  padW: number,
  includePad: number,
  divisor: number,
  ...rest: [...Rows, x: number, out: number]
) => void

export interface NeuralExports {
  readonly max_pool_f32: MaxPool
  readonly avg_pool_f32: AvgPool
  readonly avg_pool_spread_f32: AvgPool
  readonly im2col_f32: Columns
  readonly im2col_f64: Columns
  readonly col2im_f32: Columns
  readonly col2im_f64: Columns
  readonly layer_norm_f32: (
    rows: number,
    d: number,
    eps: number,
    x: number,
    weight: number,
    bias: number,
    out: number,
    mean: number,
    rstd: number,
  ) => void
  readonly layer_norm_backward_f32: (
    rows: number,
    d: number,
    grad: number,
    x: number,
    mean: number,
    rstd: number,
    weight: number,
    out: number,
    forWeight: number,
    forBias: number,
  ) => void
  readonly accumulate_f32: (n: number, x: number, out: number) => void
  readonly accumulate_f64: (n: number, x: number, out: number) => void
  readonly depthwise_f32: Depthwise
  readonly depthwise_input_f32: Depthwise
  readonly depthwise_weight_f32: Depthwise
}
