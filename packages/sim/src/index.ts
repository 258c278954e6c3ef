export type { Trace, TraceEvent, TraceKind } from './trace.js'
export type { SimWorld, SimWorldOptions } from './world.js'
