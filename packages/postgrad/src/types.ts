/** The door `postgrad/types`: every type in a public signature, with the options of each function. */
export type * from '@postgrad/autograd'
export type * from '@postgrad/base'
export type * from '@postgrad/cluster'
// Of two of this name, the process's; the other are PyTorch's `nn.init`, in postgrad/nn.
export type { init } from '@postgrad/cluster'
export type * from '@postgrad/data'
export type * from '@postgrad/dist-autograd'
export type * from '@postgrad/jobs'
export type * from '@postgrad/nn'
export type * from '@postgrad/parallel'
// Of two of this name, a checkpoint's.
export type { Stateful } from '@postgrad/parallel'
// Four of its functions have the names of others; this is about types.
export type {
  AllReduceOptions,
  AllToAllOptions,
  CollectiveOptions,
  DebugLevel,
  FromRankOptions,
  GatherObjectOptions,
  GatherOptions,
  MonitoredBarrierOptions,
  NewGroupOptions,
  P2POp,
  PremulSum,
  ProcessGroup,
  ProcessGroupOptions,
  ReduceOp,
  ScatterOptions,
  Subgroups,
  TagOptions,
  Work,
} from '@postgrad/process-group'
export type * from '@postgrad/rpc'
export type * from '@postgrad/tensor'
export type * from '@postgrad/training'
export type * from '@postgrad/transport'
export type * from '@postgrad/wire'
