/** Gives a worker process groups: takes its slot, the message of groups, deaths and the close. Cluster and testing use only this file. */
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type ProcessGroups, processGroupsOf } from './group/process-groups.js'

/** Call it once per runtime, before its links open, on every worker of a cluster. Idempotent. */
export function installProcessGroups(runtime: WorkerRuntime): ProcessGroups {
  return processGroupsOf(runtime)
}
