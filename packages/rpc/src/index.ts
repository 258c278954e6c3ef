export type { DeadLetter, DeadLetterReason, Exit, Restart, RestartOptions, Strategy } from '@postgrad/actor/internal'
export { collectAll, type DeathCause, Future, waitAll } from '@postgrad/base'
export type { CannotBeSent, Sendable, Travels } from '@postgrad/wire'
export type { CallHeaders, HeaderValue } from '@postgrad/wire/internal'
export type { Down } from './actors/watches.js'
export { Actor } from './api/actor.js'
export type { ActorHandle } from './api/actor-handle.js'
export { registerActor, unregisterActor, whereis } from './api/actor-register.js'
export { call, currentSignal, currentWorker, getDebugInfo, ready, remote, rpcAsync, rpcSync, rref, stream } from './api/api.js'
export { drain, type GroupOptions, leave, shutdown } from './api/group.js'
export { intercept } from './api/intercept.js'
export { link, type Monitor, monitor, type StopOptions, stopActor, unlink } from './api/monitor.js'
export { getRpcTimeout, getWorkerInfo, getWorkerInfos, setRpcTimeout } from './api/names.js'
export { storeOn } from './api/store-over-rpc.js'
export { type ActorSpec, type Placement, type SuperviseOptions, type Supervision, supervise } from './api/supervise.js'
export type { Worker } from './api/worker.js'
export { workerLocal } from './api/worker-local.js'
export { type RoleRights, rolePolicy } from './authority/role-policy.js'
export { RemoteStream, type StreamOptions } from './calls/stream.js'
export { asyncExecution } from './common/async-execution.js'
export type { Authority, RequestingPeer, Want } from './common/authority.js'
export type { CallOptions } from './common/call-options.js'
export { type AnyClass, type AnyFunction, expose } from './common/function-registry.js'
export type { Target, WorkerInfo } from './common/worker-info.js'
export type { MailboxOptions } from './core/call-credits.js'
export type { Outcome } from './core/hooks.js'
export type { CallInfo, CallInterceptor, CallOutcome, OutgoingCall } from './observe/call-interceptors.js'
export type { InspectEvent, InspectListener, InspectStream, InspectStreamOptions } from './observe/inspection.js'
export type { CallMetrics, WorkerMetrics } from './observe/metrics.js'
export {
  OwnerRRef,
  type RemoteProxy,
  type RpcProxy,
  RRef,
  type RRefBackwardOptions,
  type RRefOptions,
  UserRRef,
} from './references/rref.js'
export type { HeldReference, OwnedReference, ReferenceLeak, References } from './references/rref-table.js'
export type { DeadLetterReport, ShutdownOptions, WorkerRuntime } from './worker/worker-runtime.js'
