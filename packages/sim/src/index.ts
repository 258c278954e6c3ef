export { Trace, type TraceEvent, type TraceKind } from './trace.js'
export { SimWorld, type SimWorldOptions } from './world.js'
