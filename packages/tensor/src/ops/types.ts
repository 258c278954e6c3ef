/** The types of all operations together: `Ops`, and the methods of tensors. */

import type { IndexSpec } from '../values/options.js'
import type * as operations from './all.js'
import type { AllFunctions, AllMethods } from './define/define.js'
import type * as inner from './inner/all.js'

declare module '../raw/operations.js' {
  interface Ops extends AllFunctions<typeof operations>, AllFunctions<typeof inner> {}
}

declare module '../tensor/tensor.js' {
  interface Tensor
    extends AllMethods<typeof operations>,
      AllMethods<typeof inner>,
      // Said again: of a class that interfaces are merged into, the compiler does not always see members named by symbols.
      Disposable {
    /**
     * x[…] of Python: each spec is a number, 'start:end:step' with parts left out, '...', null for a new dimension, an int32 tensor (which elements) or a bool
     * tensor (the elements where it is true). The result is a view unless a spec is a tensor. PyTorch: `x[…]`.
     * @throws INDEX_OUT_OF_RANGE if an index is outside of its dimension; SHAPE_MISMATCH if there are too many specs, or a mask is of another shape;
     * INVALID_ARGUMENT if a range is not valid
     * @example zeros([4, 5, 6]).index(0, '1:', null, '...') // shape [4, 1, 6]
     */
    index(...specs: IndexSpec<Tensor>[]): Tensor
  }
}
