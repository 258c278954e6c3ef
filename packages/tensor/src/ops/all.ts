/** All operations together: their types (`Ops`, and the methods of tensors), and the door that other packages take their functions from, which leaves out the inner ones. */

import type { IndexSpec } from '../values/options.js'
import type * as activations from './activations.js'
import type * as arithmetic from './arithmetic.js'
import type * as arrange from './arrange.js'
import type * as comparisons from './comparisons.js'
import type * as convolution from './convolution.js'
import type * as copies from './copies.js'
import type { AllFunctions, AllMethods } from './define/define.js'
import type * as indexing from './indexing.js'
import type * as innerArithmetic from './inner/arithmetic.js'
import type * as innerCopies from './inner/copies.js'
import type * as innerMethods from './inner/methods.js'
import type * as innerNeural from './inner/neural.js'
import type * as innerRows from './inner/rows.js'
import type * as innerSums from './inner/sums.js'
import type * as losses from './losses.js'
import type * as math from './math.js'
import type * as neural from './neural.js'
import type * as normalization from './normalization.js'
import type * as order from './order.js'
import type * as pooling from './pooling.js'
import type * as products from './products.js'
import type * as reductions from './reductions.js'
import type * as views from './views.js'
import './inner/arithmetic.js'
import './inner/copies.js'
import './inner/neural.js'
import './inner/rows.js'
import './inner/sums.js'
import './inner/methods.js'

export * from './activations.js'
export * from './arithmetic.js'
export * from './arrange.js'
export * from './comparisons.js'
export * from './convolution.js'
export * from './copies.js'
export * from './indexing.js'
export * from './losses.js'
export * from './math.js'
export * from './neural.js'
export * from './normalization.js'
export * from './order.js'
export * from './pooling.js'
export * from './products.js'
export * from './reductions.js'
export * from './views.js'

declare module '../raw/operations.js' {
  interface Ops
    extends AllFunctions<typeof activations>,
      AllFunctions<typeof arithmetic>,
      AllFunctions<typeof arrange>,
      AllFunctions<typeof comparisons>,
      AllFunctions<typeof convolution>,
      AllFunctions<typeof copies>,
      AllFunctions<typeof indexing>,
      AllFunctions<typeof innerArithmetic>,
      AllFunctions<typeof innerCopies>,
      AllFunctions<typeof innerMethods>,
      AllFunctions<typeof innerNeural>,
      AllFunctions<typeof innerRows>,
      AllFunctions<typeof innerSums>,
      AllFunctions<typeof losses>,
      AllFunctions<typeof math>,
      AllFunctions<typeof neural>,
      AllFunctions<typeof normalization>,
      AllFunctions<typeof order>,
      AllFunctions<typeof pooling>,
      AllFunctions<typeof products>,
      AllFunctions<typeof reductions>,
      AllFunctions<typeof views> {}
}

declare module '../tensor/tensor.js' {
  interface Tensor
    extends AllMethods<typeof activations>,
      AllMethods<typeof arithmetic>,
      AllMethods<typeof arrange>,
      AllMethods<typeof comparisons>,
      AllMethods<typeof convolution>,
      AllMethods<typeof copies>,
      AllMethods<typeof indexing>,
      AllMethods<typeof innerArithmetic>,
      AllMethods<typeof innerCopies>,
      AllMethods<typeof innerMethods>,
      AllMethods<typeof innerNeural>,
      AllMethods<typeof innerRows>,
      AllMethods<typeof innerSums>,
      AllMethods<typeof losses>,
      AllMethods<typeof math>,
      AllMethods<typeof neural>,
      AllMethods<typeof normalization>,
      AllMethods<typeof order>,
      AllMethods<typeof pooling>,
      AllMethods<typeof products>,
      AllMethods<typeof reductions>,
      AllMethods<typeof views>,
      // Said again: of a class that interfaces are merged into, the compiler does not always see members named by symbols.
      Disposable {
    /**
     * What stands between the brackets of PyTorch's x[…]: numbers, 'start:end:step' with parts left out, '...', null (a new dimension), int32
     * tensors (which elements) and bool tensors (those where it is true). `x.index(0, '1:', '...', null)`. A view unless there is a tensor.
     * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, INVALID_ARGUMENT
     */
    index(...specs: IndexSpec<Tensor>[]): Tensor
  }
}
