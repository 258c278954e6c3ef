/** Workers of one program on threads and processes: `launch`, the cluster that it gives, `init` for a process that joins a group, and pools of threads for stateless work. */
export type { ClusterEvent, ClusterEventListener } from './admin/inspect-events.js'
export type { LeakPolicy } from './admin/leaks.js'
export type { Main, MainContext } from './admin/program.js'
export type { WorkerDebugInfo } from './admin/protocol.js'
export type { OutputSink } from './admin/remote-worker.js'
export type { ThreadUsage } from './host/usage.js'
export type { ConnectionOptions, GroupTransport } from './init/connections.js'
export { type InitOptions, init } from './init/init.js'
export type { PlaceOptions } from './init/init-method.js'
export type { Member } from './init/member.js'
export type { ClusterJobsOptions } from './jobs/cluster-jobs.js'
export { type JobsOptions, jobs } from './jobs/job-pool.js'
export type {
  CloseOptions,
  Cluster,
  ClusterEnd,
  JoinOptions,
  LeaveOptions,
  ReadyOptions,
} from './main/cluster.js'
export type { DeathListener, LeaveListener, RecoveryListener, StallListener } from './main/cluster-events.js'
export type { Controller, ControllerOptions, RunMainOptions } from './main/controller.js'
export { type LaunchOptions, launch } from './main/launch.js'
export type { SupervisionOptions } from './main/supervision.js'
export { reportProgress } from './worker/progress.js'
