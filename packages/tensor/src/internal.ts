/** The names for sibling packages: raw operations, storage, the handler of methods, the kernel table, and helpers for shapes. */
import './install.js'

export { isPending, recording, records, settle, withChainsFrom } from './chains/record.js'
export { Heap, type HeapHandle } from './heap/heap.js'
export { type Buffers, CPU, type Memory } from './heap/memory.js'
export { collectEarly, suspendHeapStorage, withHeapFrom, withHeapLimit } from './heap/policy.js'
export { fittingHeapBytes, RESERVED_BYTES_MAX, RESERVED_BYTES_MIN, reserveHeap } from './heap/shared-memory.js'
export { beginTemporaries, endTemporaries, outsideOfScopes, Storage, storageCount, withoutTemporaries } from './heap/storage.js'
export { attachThreadHeap, currentHeap, setHeapBytes, threadHeap, threadHeapOrNull } from './heap/thread-heap.js'
export { heapStats, verifyHeap } from './heap/verify.js'
export { openblasCore } from './kernels/blas/libraries.js'
export { type Blas, openBlas } from './kernels/blas/open.js'
export * from './kernels/table/table.js'
export { hasKernelPause, installKernelPause } from './kernels/wasm/calls/pause.js'
export { checkComputeThreads } from './kernels/wasm/threads/compute-threads.js'
export {
  type AnyRow,
  composite,
  type Entry,
  entries,
  inPlace,
  installRecorder,
  type Ops,
  primitive,
  rawOperations,
  rawOperations as raw,
} from './ops/define/define.js'
export * from './ops/define/formula.js'
export { sumToShape } from './ops/parts/dims.js'
export { detach as rawDetach, lazyClone, type Target } from './raw/copy.js'
export { putOn, readLater } from './raw/device-transport.js'
export { cellInto, stepInto } from './raw/fused.js'
export { type BlockName, HeapRoom, HeapTransport } from './raw/heap-transport.js'
export { OPTIMIZER_STEP, overwrite, writeCount, wrote } from './raw/inplace.js'
export { binaryInto, binaryScalarInto, copyInto, gradInto, matmulInto, unaryInto } from './raw/into.js'
export { checkKernelInput, runUserKernel, userKernel } from './raw/user-kernel.js'
export { addSparse_, coalesce, sumOfSparse, toDense } from './sparse/operations.js'
export { isSparse } from './sparse/sparse-tensor.js'
export { checkedOperation, type Operation } from './tensor/arguments.js'
export { checkOpen, checkReadable, copyOfElements, elementsOf, isReadable, readElements, reportIf, writeElements } from './tensor/bytes.js'
export { argumentText, checkFunction, checkIterable, checkOptions, checkTensor, checkTensors, isListOf } from './tensor/check-argument.js'
export { byteSize } from './tensor/create.js'
export { deviceOf, memoryDevice } from './tensor/device.js'
export { giveBack, withTemporaries } from './tensor/give-back.js'
export { isAlone, markAlone, markShared } from './tensor/rank-gradients.js'
export { type AutogradMeta, installOpHandler, isTensor, peekGrad, Tensor } from './tensor/tensor.js'
export { allocate, BYTES_PER_ELEMENT, DTYPES, isDType, isFloating, promote } from './values/dtype.js'
export { dtypeMismatch, indexOutOfRange, invalidArgument, shapeMismatch, shapeText } from './values/errors.js'
export { broadcastsTo, isContiguous, numelOf, type Shape, sameShape } from './values/shape.js'
