export { mix32, Random } from './random.js'
export { hashBytes, TRACE_EVENTS_MAX, Trace, type TraceEvent, type TraceKind } from './trace.js'
export { SimWorld, type SimWorldOptions, STEPS_MAX, TIME_MS_MAX } from './world.js'
