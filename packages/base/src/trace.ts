/**
 * Traces what a worker does: spans that begin and end (an operation, a node of backward, a call, a wait), and values of one moment (a message). Code
 * that can be traced has a *tap*, which is one branch while nobody reads:
 *
 *   return tracing === null ? call(x) : inSpan('operation', op, undefined, () => call(x))
 *
 * Each worker has a tracer of its own while somebody reads it, and so has the code outside of all workers. Times are of the worker's own clock, so the
 * trace of a simulated run is the same each time. Rules TRC in rpc's SPEC.md, whose `traceWorker` reads a worker.
 */
import { currentScope } from './scope.js'

/**
 * `operation`: a function or method of tensors, as the program calls it. `kernel`: what computes for it. `node`: a node of backward. `call`: a request, from
 * its start to its reply. `serve`: the function that answers one, with all that it awaits. `message`: one was sent or received. `wait`: any other wait.
 */
export type TraceKind = 'operation' | 'kernel' | 'node' | 'call' | 'serve' | 'message' | 'wait'

/** Further facts, by name. */
export type TraceValues = Readonly<Record<string, string | number | boolean | null>>

/** Readers get events in the order in which they happen. */
export interface TraceEvent {
  readonly phase: 'begin' | 'end' | 'value'
  readonly kind: TraceKind
  readonly name: string
  /** On the worker's clock. */
  readonly atMs: number
  /** Equal for the two ends of a span, counted from 1 for each tracer; 0 for a value. */
  readonly span: number
  readonly values: TraceValues
}

/** Gets each event when it happens, so it should be short. A throw is a bug of the reader, and changes nothing for the worker. */
export type TraceReader = (event: TraceEvent) => void

const NO_VALUES: TraceValues = Object.freeze({})

/** A span that has not ended. */
export class Span {
  private readonly tracer: Tracer
  private readonly kind: TraceKind
  private readonly name: string
  private readonly id: number

  constructor(tracer: Tracer, kind: TraceKind, name: string, id: number) {
    this.tracer = tracer
    this.kind = kind
    this.name = name
    this.id = id
  }

  end(values = NO_VALUES): void {
    this.tracer.tell('end', this.kind, this.name, this.id, values)
  }
}

/** Of the worker that is traced. */
export interface TracerOptions {
  /** Its clock, in ms. */
  readonly now: () => number
  /** Gets what a reader throws. */
  readonly onBug: (error: unknown) => void
}

/** The events of one worker, for all who read them. */
export class Tracer {
  readonly readers = new Set<TraceReader>()
  private readonly now: () => number
  private readonly onBug: (error: unknown) => void
  private spans = 0

  constructor({ now, onBug }: TracerOptions) {
    this.now = now
    this.onBug = onBug
  }

  begin(kind: TraceKind, name: string, values = NO_VALUES): Span {
    const id = ++this.spans
    this.tell('begin', kind, name, id, values)
    return new Span(this, kind, name, id)
  }

  value(kind: TraceKind, name: string, values: TraceValues): void {
    this.tell('value', kind, name, 0, values)
  }

  /** For `begin`, `value` and `Span.end`. */
  tell(phase: TraceEvent['phase'], kind: TraceKind, name: string, span: number, values: TraceValues): void {
    const event: TraceEvent = { phase, kind, name, atMs: this.now(), span, values }
    for (const reader of this.readers) {
      try {
        reader(event)
      } catch (error) {
        this.onBug(error)
      }
    }
  }
}

/** By worker, the tracers that are read; null outside of all workers. Null as a whole: nobody reads any in this thread. */
export let tracing: Map<object | null, Tracer> | null = null

/**
 * `reader` gets what `worker` does from now on (null: what is done in this thread outside of all workers), on the clock of its first reader. Of a span that began earlier it gets
 * the end only if another reader was there. Returns what ends it. Of a worker this has operations, kernels and nodes alone: rpc's `traceWorker` adds the rest.
 */
export function trace(worker: object | null, options: TracerOptions, reader: TraceReader): () => void {
  tracing ??= new Map()
  const tracer = tracing.get(worker) ?? new Tracer(options)
  tracing.set(worker, tracer)
  // Of this call alone: one function may read twice.
  const own: TraceReader = (event) => reader(event)
  tracer.readers.add(own)
  return () => {
    tracer.readers.delete(own)
    if (tracer.readers.size === 0 && tracerOf(worker) === tracer) endTrace(worker)
  }
}

/** Ends all readers of a worker, which closes. */
export function endTrace(worker: object | null): void {
  tracerOf(worker)?.readers.clear()
  tracing?.delete(worker)
  if (tracing?.size === 0) tracing = null
}

/** The tracer of a worker (null: of what is outside of all), if anybody reads it. */
export function tracerOf(worker: object | null): Tracer | null {
  return tracing?.get(worker) ?? null
}

/** Runs `fn` in a span of the worker that runs this code, if anybody reads its tracer. For taps, after their branch. */
export function inSpan<T>(kind: TraceKind, name: string, values: TraceValues | undefined, fn: () => T): T {
  const span = tracerOf(currentScope().worker)?.begin(kind, name, values)
  try {
    return fn()
  } finally {
    span?.end()
  }
}
