/**
 * The part of a worker that observes it: its listeners, metrics and tracer (`inspection.ts`, `metrics.ts`), and the users' interceptors of its calls
 * (`call-interceptors.ts`). While there are none, the core pays a null check per message and wait.
 */
import { Lane, type TraceReader, trace, tracerOf } from '@postgrad/base/internal'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { REFERENCES } from '../references/references.js'
import { type CallInterceptor, CallInterceptors } from './call-interceptors.js'
import { Inspection, type InspectListener } from './inspection.js'
import { Metrics, type WorkerMetrics } from './metrics.js'

export class Observation {
  /** Null while nobody looks. */
  inspection: Inspection | null = null
  private readonly core: WorkerCore
  private interceptors: CallInterceptors | null = null
  /** The number of the last event. */
  private lastEvent = 0

  constructor(core: WorkerCore) {
    this.core = core
    core.onClose(() => this.inspection?.closing(core.info.name, () => REFERENCES.of(core).references()))
  }

  inspect(listener: InspectListener): () => void {
    const { listeners } = this.begin()
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      this.endIdle()
    }
  }

  metrics(): WorkerMetrics {
    const inspection = this.begin()
    const { clock, pump } = this.core
    inspection.metrics ??= new Metrics(clock.now())
    const depth = (lane: Lane) => pump.mailbox.depth(lane)
    return inspection.metrics.read(clock.now(), {
      signal: depth(Lane.signal),
      control: depth(Lane.control),
      gradient: depth(Lane.gradient),
      task: depth(Lane.task),
      call: depth(Lane.call),
    })
  }

  stopMetrics(): void {
    if (this.inspection !== null) this.inspection.metrics = null
    this.endIdle()
  }

  /** See `traceWorker`. */
  trace(reader: TraceReader): () => void {
    const { core } = this
    const options = { now: () => core.clock.now(), onBug: core.onBug }
    const stop = trace(core, options, reader)
    this.begin().tracer = tracerOf(core)
    return () => {
      stop()
      if (this.inspection === null || tracerOf(core) !== null) return
      this.inspection.tracer = null
      this.endIdle()
    }
  }

  private begin(): Inspection {
    this.inspection ??= new Inspection(this.core.clock, this.core.onBug, this.lastEvent)
    this.core.observer = this.inspection
    return this.inspection
  }

  private endIdle(): void {
    const { inspection } = this
    if (inspection === null || !inspection.isIdle) return
    this.lastEvent = inspection.lastSeq
    this.inspection = null
    this.core.observer = null
  }

  /** Puts an interceptor around the worker's calls. Returns what takes it away. */
  intercept(interceptor: CallInterceptor): () => void {
    this.interceptors ??= new CallInterceptors(this.core)
    const { interceptors } = this
    interceptors.add(interceptor)
    this.core.requests.around = interceptors
    return () => {
      interceptors.remove(interceptor)
      if (interceptors.isEmpty) this.core.requests.around = null
    }
  }
}

export const OBSERVATION = new WorkerSlot('observation', (core) => new Observation(core))

/** `reader` gets the spans and messages of a worker, on its clock, until the worker closes, or the function that this returns is called. Rules TRC in SPEC.md. */
export function traceWorker(worker: WorkerCore, reader: TraceReader): () => void {
  return OBSERVATION.of(worker).trace(reader)
}
