/**
 * The door `postgrad/plugin`, for code that adds a part to workers: its state in a slot, handlers of messages, an interceptor of all that a worker sends, hooks for
 * a peer's death and for the close. `packages/dist-autograd/src/install.ts` is such a part. The command line also imports from here what it shares with
 * the library: `importMain`, the port of rank 0, how much address space the heap of tensors takes, and the system's BLAS. It may change with every version.
 */
export { importMain, masterPort } from '@postgrad/cluster/internal'
export { currentRuntime, type WorkerRuntime, WorkerSlot } from '@postgrad/rpc/internal'
export {
  type Blas,
  fittingHeapBytes,
  openBlas,
  RESERVED_BYTES_MAX as HEAP_BYTES_MAX,
  RESERVED_BYTES_MIN as HEAP_BYTES_MIN,
  reserveHeap,
} from '@postgrad/tensor/internal'
export { type MessageBodies, MessageType, type OutgoingMessage } from '@postgrad/wire/internal'
