/**
 * The door `postgrad/plugin`, for code that adds a part to workers: its state in a slot, handlers of messages, an interceptor of all that a worker sends, what happens
 * at a peer's death and at the close. `packages/dist-autograd/src/install.ts` is such a part. It may change with every version.
 */
export { importMain } from '@postgrad/cluster/internal'
export { currentRuntime, type WorkerRuntime, WorkerSlot } from '@postgrad/rpc/internal'
export { type MessageBodies, MessageType, type OutgoingMessage } from '@postgrad/wire/internal'
