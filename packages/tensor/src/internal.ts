/** What sibling packages get: raw operations, storage, the handler behind the methods, the kernel table, and helpers on shapes. */
import './install.js'

export { checkedOperation, checkedOperations } from './arguments.js'
export { argumentText, checkFunction, checkIterable, checkOptions, checkTensor, checkTensors } from './check-argument.js'
export { roundedDivision } from './composite/division.js'
export { withComposites } from './composite/index.js'
export { embedDiagonal } from './composite/shape.js'
export { byteSize } from './create.js'
export { currentKernels } from './device.js'
export { type ArrayOf, allocate, BYTES_PER_ELEMENT, DTYPES, isDType, isFloating, promote } from './dtype.js'
export { broadcastMismatch, dtypeMismatch, indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from './errors.js'
export { giveBack, withTemporaries } from './give-back.js'
export { Heap, type HeapBlock, type HeapDescriptor, type HeapHandle, type HeapSlot } from './heap/heap.js'
export { suspendHeapStorage, withHeapFrom, withHeapLimit } from './heap/policy.js'
export { type BlockName, HeapRoad } from './heap/road.js'
export { attachThreadHeap, currentHeap, threadHeap } from './heap/thread-heap.js'
export { type HeapStats, heapStats, verifyHeap } from './heap/verify.js'
export { BACKENDS } from './kernels/backends.js'
export * from './kernels/table.js'
export { installKernelPause } from './kernels/wasm/pause.js'
export type {
  ActivationOps,
  BinaryOps,
  CompareOps,
  CompositeOps,
  IndexOps,
  InPlaceOps,
  JoinOps,
  LossOps,
  MathOps,
  MatmulOps,
  Ops,
  PrimitiveOps,
  ReduceOps,
  UnaryOps,
  ViewOps,
} from './ops.js'
export type { ArithmeticOps, PowOps } from './ops-arithmetic.js'
export type { DerivativeOps } from './ops-derivative.js'
export type { GradOps } from './ops-grad.js'
export { IN_PLACE_FORMS } from './ops-in-place.js'
export type { IndexingOps } from './ops-indexing.js'
export type { NeuralOps } from './ops-neural.js'
export type { ArgOps, StatisticsOps } from './ops-reduce.js'
export { truncDivide as rawTruncDivide } from './raw/arithmetic.js'
export { compareValues } from './raw/compare-values.js'
export * as raw from './raw/index.js'
export { checkReduction } from './raw/indexing.js'
export { overwrite } from './raw/inplace.js'
export { binaryInto, gradInto, matmulInto, unaryInto } from './raw/into.js'
export * as rawNeural from './raw/neural/index.js'
export { batchNormTrainingBackward, layerNormRowsBackward } from './raw/neural/normalization.js'
export { operations as rawOperations } from './raw/operations.js'
export { checkReadable } from './raw/readable.js'
export { addSparse_, coalesce, sumOfSparse, toDense } from './raw/sparse.js'
export { checkKernelInput, runUserKernel, userKernel } from './raw/user-kernel.js'
export {
  broadcastShapes,
  broadcastsTo,
  checkShape,
  contiguousStrides,
  isContiguous,
  normalizeDim,
  normalizeDims,
  numelOf,
  type Shape,
  sameShape,
} from './shape.js'
export { isSparse } from './sparse.js'
export { beginTemporaries, endTemporaries, outsideOfScopes, Storage, withoutTemporaries } from './storage.js'
export { type AutogradMeta, installOpHandler, isTensor, type OpHandler, Tensor } from './tensor.js'
