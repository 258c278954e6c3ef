/** What sibling packages get: raw operations, storage, the handler behind the methods, the kernel table, and helpers on shapes. */
import './install.js'

export { withComposites } from './composite/index.js'
export { embedDiagonal } from './composite/shape.js'
export { Heap, type HeapBlock, type HeapDescriptor, type HeapHandle, type HeapSlot } from './heap/heap.js'
export { type Buffers, CPU, type Memory } from './heap/memory.js'
export { collectEarly, suspendHeapStorage, withHeapFrom, withHeapLimit } from './heap/policy.js'
export { fittingHeapBytes, RESERVED_BYTES_MAX, RESERVED_BYTES_MIN, reserveHeap } from './heap/shared-memory.js'
export { beginTemporaries, endTemporaries, outsideOfScopes, Storage, storageCount, withoutTemporaries } from './heap/storage.js'
export { attachThreadHeap, currentHeap, setHeapBytes, threadHeap } from './heap/thread-heap.js'
export { type HeapStats, heapStats, verifyHeap } from './heap/verify.js'
export { BACKENDS } from './kernels/backends.js'
export * from './kernels/table/table.js'
export { hasKernelPause, installKernelPause } from './kernels/wasm/pause.js'
export { operations as rawOperations } from './operations.js'
export type {
  ActivationOps,
  BinaryOps,
  CompareOps,
  CompositeOps,
  DeviceLike,
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
} from './ops/ops.js'
export type { ArithmeticOps, PowOps } from './ops/ops-arithmetic.js'
export type { DerivativeOps } from './ops/ops-derivative.js'
export type { GradOps } from './ops/ops-grad.js'
export { IN_PLACE_FORMS } from './ops/ops-in-place.js'
export type { IndexingOps } from './ops/ops-indexing.js'
export type { NeuralOps } from './ops/ops-neural.js'
export type { ArgOps, StatisticsOps } from './ops/ops-reduce.js'
export { truncDivide as rawTruncDivide } from './raw/arithmetic.js'
export type { Target } from './raw/copy.js'
export { roundedDivision } from './raw/division.js'
export { type BlockName, type HeapReach, HeapRoom, HeapTransport } from './raw/heap-transport.js'
export * as raw from './raw/index.js'
export { checkReduction } from './raw/indexing.js'
export { OPTIMIZER_STEP, overwrite, writeCount, wrote } from './raw/inplace.js'
export { binaryInto, binaryScalarInto, copyInto, gradInto, matmulInto, unaryInto } from './raw/into.js'
export * as rawNeural from './raw/neural/index.js'
export { batchNormTrainingBackward, layerNormRowsBackward } from './raw/neural/normalization.js'
export { checkKernelInput, runUserKernel, userKernel } from './raw/user-kernel.js'
export { addSparse_, coalesce, sumOfSparse, toDense } from './sparse/operations.js'
export { orderedSum as rawOrderedSum } from './sparse/ordered-sum.js'
export { isSparse } from './sparse/sparse-tensor.js'
export { checkedOperation, checkedOperations } from './tensor/arguments.js'
export { checkReadable, copyOfElements, elementsOf, isReadable, readElements, reportIf, writeElements } from './tensor/bytes.js'
export { argumentText, checkFunction, checkIterable, checkOptions, checkTensor, checkTensors, isListOf } from './tensor/check-argument.js'
export { byteSize } from './tensor/create.js'
export { addDevice, kernelsAt } from './tensor/device.js'
export { giveBack, withTemporaries } from './tensor/give-back.js'
export { isAlone, markAlone, markShared } from './tensor/rank-gradients.js'
export { type AutogradMeta, installOpHandler, isTensor, type OpHandler, Tensor } from './tensor/tensor.js'
export { type ArrayOf, allocate, BYTES_PER_ELEMENT, DTYPES, isDType, isFloating, promote } from './values/dtype.js'
export { broadcastMismatch, dtypeMismatch, indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from './values/errors.js'
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
} from './values/shape.js'
