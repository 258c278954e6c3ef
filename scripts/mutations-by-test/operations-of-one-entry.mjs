/** Operations that came as one entry and one line of the door. */
import { t } from './mutation.mjs'

const GOLDEN = 'packages/tensor/src/ops/ops.test.ts'
const INVERSE_ERF = 'packages/tensor/src/ops/parts/inverse-erf.ts'

export const operationsOfOneEntry = [
  t(
    'logaddexp-of-equal-infinities',
    GOLDEN,
    'operations on js logaddexp',
    'packages/tensor/src/ops/arithmetic.ts',
    'where(eq(x, y), 0, abs(sub(x, y)))',
    'abs(sub(x, y))',
    'logaddexp of two equal infinities is NaN, for their difference is',
  ),
  t(
    'cdist-of-a-negative-power',
    GOLDEN,
    'operations on js cdist',
    'packages/tensor/src/ops/products.ts',
    "if (!(p >= 0)) throw invalidArgument('cdist'",
    "if (p < -9) throw invalidArgument('cdist'",
    'cdist accepts a negative p, which PyTorch refuses',
  ),
  t(
    'lerp-by-the-size-of-a-weight',
    GOLDEN,
    'lerp begins at the nearer end',
    'packages/tensor/src/ops/arithmetic.ts',
    'ops.lt(weight, 0.5)',
    'ops.lt(ops.abs(weight), 0.5)',
    'lerp takes a weight of −1 in a tensor for one near the other end',
  ),
  t(
    'erfinv-at-its-ends',
    GOLDEN,
    'operations on js erfinv',
    INVERSE_ERF,
    'where(eq(size, 1), Number.POSITIVE_INFINITY, far)',
    'far',
    'erfinv(1) is NaN, a quotient of infinities',
  ),
  t(
    'erfinv-far-out',
    'packages/tensor/src/ops/parts/inverse-erf.test.ts',
    'float64 on wasm is exact',
    INVERSE_ERF,
    "x.dtype === 'float64' ?",
    "x.dtype === 'bool' ?",
    'erfinv of the numbers nearest to 1 loses digits, because the approximation for them is not used',
  ),
]
