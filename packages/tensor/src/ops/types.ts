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
     * What stands between the brackets of PyTorch's x[…]: numbers, 'start:end:step' with parts left out, '...', null (a new dimension), int32
     * tensors (which elements) and bool tensors (those where it is true). A view unless there is a tensor.
     * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, INVALID_ARGUMENT
     * @example zeros([4, 5, 6]).index(0, '1:', null, '...') // shape [4, 1, 6]
     */
    index(...specs: IndexSpec<Tensor>[]): Tensor
  }
}
