/** Images, for kernels of neural networks: the geometries of convolutions and of windows that slide over planes. */

/**
 * A window that slides over planes [h, w] → [oh, ow]: the place [oy, ox] reads [oy · strideH − padH + ky · dilH, …]. Places outside of the plane are
 * absent, or 0, so padding below and on the right follows from oh and ow.
 */
export interface WindowGeometry {
  readonly h: number
  readonly w: number
  readonly kh: number
  readonly kw: number
  readonly oh: number
  readonly ow: number
  readonly strideH: number
  readonly strideW: number
  readonly padH: number
  readonly padW: number
  readonly dilH: number
  readonly dilW: number
}

/** One convolution in numbers: x [n, c, h, w] with weight [o, c / groups, kh, kw] → y [n, o, oh, ow]. */
export interface ConvGeometry extends WindowGeometry {
  readonly n: number
  readonly c: number
  readonly o: number
  readonly groups: number
}

/** x [planes, h, w] → [planes, oh, ow]. */
export interface PoolGeometry extends WindowGeometry {
  readonly planes: number
}

/** Windows without dilation, and the divisors of their sums. */
export interface AvgPoolGeometry extends PoolGeometry {
  /** 1: the places of the window within the padded plane; 0: those within the plane. */
  readonly includePad: number
  /** If not 0: this, whatever the window. */
  readonly divisor: number
}
