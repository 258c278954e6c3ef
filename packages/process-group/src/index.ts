export { type PremulSum, premulSum, ReduceOp } from './algorithms/reduce-op.js'
export { barrier, type MonitoredBarrierOptions, monitoredBarrier } from './api/barriers.js'
export {
  destroyProcessGroup,
  getGlobalRank,
  getGroupRank,
  getRank,
  getWorldSize,
  initProcessGroup,
  isInitialized,
  type NewGroupOptions,
  newGroup,
  newSubgroups,
  newSubgroupsByEnumeration,
  type ProcessGroupOptions,
  type Subgroups,
} from './api/groups.js'
export {
  type AllToAllOptions,
  allGather,
  allGatherCoalesced,
  allGatherIntoTensor,
  allToAll,
  allToAllSingle,
  broadcast,
  broadcastCoalesced,
  type GatherOptions,
  gather,
  type ScatterOptions,
  scatter,
} from './api/moves.js'
export {
  allGatherObject,
  broadcastObjectList,
  type FromRankOptions,
  type GatherObjectOptions,
  gatherObject,
  scatterObjectList,
} from './api/objects.js'
export { batchIsendIrecv, irecv, isend, P2POp, recv, send, type TagOptions } from './api/point-to-point.js'
export { type AllReduceOptions, allReduce, allReduceCoalesced, reduce, reduceScatter, reduceScatterTensor } from './api/reductions.js'
export type { CollectiveOptions, DebugLevel } from './group/process-group.js'
export { ProcessGroup } from './group/process-group.js'
export { Work } from './group/work.js'
