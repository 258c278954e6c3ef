export { DETACHED, isDetached } from './arguments/detached.js'
export { checkTime, timeLimit } from './arguments/timeout.js'
export { markHop, rejectTraced, traceAwait, withCallerInStack } from './await-stack.js'
export { builtin } from './builtin.js'
export { HOPS_KEPT, plainText, tooManyOpenFiles, whatOf, withHop } from './errors.js'
export { onAbort, ScopedAbort } from './futures/abort-listeners.js'
export { callCancelled, checkSignal, isEndedElsewhere, isSignal, outOfTime } from './futures/cancelling.js'
export type { Canceller } from './futures/future.js'
export { isThenable } from './futures/future.js'
export { isOwnEnd, ownEnd, quietAtOwnEnd } from './futures/own-ends.js'
export { collect } from './futures/wait-all.js'
export { checkWorkerId, globalId, IdCounter, LOCAL_ID_MAX, WORKER_ID_MAX } from './global-id.js'
export { isInspected, shareInspected } from './inspected.js'
export { LANE_COUNT, Lane, type MessageLane } from './lanes.js'
export { importUrl, keepCode, shareCode } from './library-file.js'
export { refuseWhileLoading } from './loading.js'
export { structuredClone, TextDecoder, TextEncoder } from './node-globals.js'
export { houseOf, ownFile } from './own-file.js'
export { PriorityQueue } from './priority-queue.js'
export { framesOnStack, isOwnFrame, placeOfFrame, placeOfThrown } from './program-frames.js'
export { currentScope, inOwnScope, inScope, Scope, type ScopePatch, withScope } from './scope.js'
export { dropUnread } from './thread-output.js'
export {
  clearImmediate,
  clearInterval,
  clearTimeout,
  hrtime,
  nextTick,
  now,
  queueMicrotask,
  setImmediate,
  setInterval,
  setTimeout,
  timeOriginMs,
  wallMs,
} from './time/real-time.js'
export { Tombstones } from './tombstones.js'
export { endTrace, inSpan, type Span, type TraceEvent, type TraceReader, type Tracer, trace, tracerOf, tracing } from './trace.js'
export { locateModule } from './user-module/module-place.js'
export { importModule, isScript } from './user-module/user-module.js'
export { causeOfThrown, DIED, type WorkerDeath, warnOfDeath, workerDied } from './worker-death.js'
