export type { FaultAction, FaultFrame, FaultKind, FaultMatch, FaultOptions, FaultRule, FaultSelection } from './faults.js'
export type { DrawKind, Possible, PossibleChoice, Schedule } from './schedule.js'
export type { Trace, TraceEvent, TraceKind } from './trace.js'
export type { SimWorld, SimWorldOptions } from './world.js'
