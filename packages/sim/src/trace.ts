/**
 * The trace of a simulated world: its events in order. Two runs with equal hashes were the same run. The hash covers all events; the
 * trace itself keeps the last ones, up to a bound.
 */
import type { Frame } from '@postgrad/transport'
import { type DiagramOptions, diagram } from './diagram.js'
import type { StepObserver } from './observer.js'
import { imul, mix32 } from './random.js'
import type { NamedEvent, TraceEvent, TraceKind } from './trace-event.js'

const KINDS: readonly TraceKind[] = [
  ...(['frame', 'poll', 'close', 'timer', 'defer', 'time', 'crash'] as const),
  ...(['restart', 'drop', 'duplicate', 'delay'] as const),
]
/** Of frames; their events have bytes. */
const OF_FRAMES: ReadonlySet<TraceKind> = new Set<TraceKind>(['frame', 'poll', 'drop', 'duplicate', 'delay'])

/** Says what frames are, in the order in which they came. */
export interface FrameNamer {
  name(event: TraceEvent, frame: Pick<Frame, 'header'>): { readonly label: string; readonly family: string }
}

export const TRACE_EVENTS_MAX = 65_536
/** A kept frame keeps no more than this of a buffer alive. */
const KEPT_BYTES_MAX = 4096

/**
 * The events of a simulated run, in order: `events` to search in, `readable` and `diagram` to look at, and a `hash` that is equal for equal runs.
 * @example
 * const run = () => simulate({ workers: 2, seed: 7 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * const { trace } = await run()
 * trace.readable.split('\n')[0] // '#1 0 ms  worker0 → worker1: call addOne #1'
 * trace.hash === (await run()).trace.hash // true
 */
export class Trace {
  /** How many events the run had. The trace keeps the last 65,536 of them (`world.traceEventsMax` of `simulate`). */
  count = 0
  private readonly eventsMax: number
  private readonly observer: StepObserver | null
  private readonly kept: TraceEvent[] = []
  /** Of the frames of events that are kept, so that they can be named when somebody asks. */
  private readonly headers: (Uint8Array | null)[] = []
  /** Makes the function that names frames. Null: frames are named by their size and hash. `simulate` sets it. */
  namer: (() => FrameNamer) | null = null
  private oldest = 0
  private high = 0x243f6a88
  private low = 0x85a308d3 | 0
  private readonly names = new Map<string, number>()
  // The two halves of a time, for the hash.
  private readonly time = new Float64Array(1)
  private readonly timeWords = new Int32Array(this.time.buffer)

  constructor(eventsMax: number = TRACE_EVENTS_MAX, observer: StepObserver | null = null) {
    this.eventsMax = eventsMax
    this.observer = observer
  }

  /** Adds an event. The simulated world calls it. */
  add(step: number, timeMs: number, kind: TraceKind, from: string, to: string, bytes: number, hash: number, frame?: Frame): void {
    this.count++
    this.observer?.event(kind, from, to, hash)
    this.time[0] = timeMs
    this.stir(step)
    this.stir(this.timeWords[0]!)
    this.stir(this.timeWords[1]!)
    this.stir((KINDS.indexOf(kind) << 24) ^ (this.number(from) << 12) ^ this.number(to))
    this.stir(bytes)
    this.stir(hash)
    if (this.eventsMax === 0) return
    const event: TraceEvent = { step, timeMs, kind, from, to, bytes, hash }
    if (this.kept.length < this.eventsMax) {
      this.kept.push(event)
      this.headers.push(frame === undefined ? null : keepable(frame.header))
      return
    }
    this.kept[this.oldest] = event
    this.headers[this.oldest] = frame === undefined ? null : keepable(frame.header)
    this.oldest = (this.oldest + 1) % this.eventsMax
  }

  /** A hash of all events of the run, also of those that are not kept: 16 hex digits. Equal runs have equal hashes. */
  get hash(): string {
    return hex(this.high) + hex(this.low)
  }

  /** The events that are kept, oldest first. */
  get events(): readonly TraceEvent[] {
    return this.oldest === 0 ? this.kept : [...this.kept.slice(this.oldest), ...this.kept.slice(0, this.oldest)]
  }

  /** The events that are kept, oldest first, with the names of their frames. */
  get named(): readonly NamedEvent[] {
    const namer = this.namer?.() ?? null
    const headers = [...this.headers.slice(this.oldest), ...this.headers.slice(0, this.oldest)]
    return this.events.map((event, index) => {
      const header = headers[index] ?? null
      if (header === null) return { ...event, label: '', family: '' }
      if (namer === null) return { ...event, label: `${event.bytes} B ${hex(event.hash)}`, family: 'frame' }
      return { ...event, ...namer.name(event, { header }) }
    })
  }

  /** The events that are kept as text, one line each, with the names of messages, functions, contexts and passes. */
  get readable(): string {
    const lines = this.named.map(readableLine)
    const dropped = this.count - lines.length
    if (dropped > 0) lines.unshift(`(${dropped} earlier events were not kept)`)
    return lines.join('\n')
  }

  /** Returns a sequence diagram of the events that are kept, as the text of an SVG file. */
  diagram(options: DiagramOptions = {}): string {
    return diagram(this.named, this.count, options)
  }

  /** The events that are kept as text, one line each: step, time, kind, from→to, bytes, hash. If older events were not kept, the first line says how many. */
  get text(): string {
    const lines = this.events.map(line)
    const dropped = this.count - lines.length
    if (dropped > 0) lines.unshift(`(${dropped} earlier events were not kept)`)
    return lines.join('\n')
  }

  private stir(word: number): void {
    this.high = mix32(this.high ^ word)
    this.low = (imul(this.low, 0x01000193) ^ this.high) | 0
  }

  private number(name: string): number {
    let number = this.names.get(name)
    if (number === undefined) {
      number = this.names.size
      this.names.set(name, number)
      // Which name has which number is part of the run.
      for (let i = 0; i < name.length; i++) this.stir(name.charCodeAt(i))
    }
    return number
  }
}

function keepable(header: Uint8Array): Uint8Array {
  return header.buffer.byteLength <= KEPT_BYTES_MAX ? header : header.slice(0, KEPT_BYTES_MAX)
}

const WORDS: Readonly<Partial<Record<TraceKind, string>>> = { drop: 'lost: ', duplicate: 'repeated: ', delay: 'put off: ' }

function readableLine({ step, timeMs, kind, from, to, label }: NamedEvent): string {
  const at = `#${step} ${Math.round(timeMs * 100) / 100} ms`
  const who = from === '' ? 'the world' : from
  switch (kind) {
    case 'frame':
    case 'poll':
    case 'drop':
    case 'duplicate':
    case 'delay':
      return `${at}  ${from} → ${to}: ${WORDS[kind] ?? ''}${label}`
    case 'close':
      return to === '' ? `${at}  ${from}: the link that it closed has ended` : `${at}  ${to} learns that the link from ${from} has ended`
    case 'timer':
      return `${at}  ${who}: a timer`
    case 'defer':
      return `${at}  ${who}: a deferred turn`
    case 'time':
      return `${at}  — time advances to here —`
    case 'crash':
      return `${at}  ${from} crashes`
    case 'restart':
      return `${at}  ${from} may live again`
    default:
      return kind satisfies never
  }
}

function line(event: TraceEvent): string {
  const { step, timeMs, kind, from, to, bytes, hash } = event
  const where = to === '' ? from : `${from}→${to}`
  const what = OF_FRAMES.has(kind) ? ` ${bytes} B ${hex(hash)}` : ''
  return `#${step} ${timeMs} ms ${kind}${where === '' ? '' : ` ${where}`}${what}`
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

/** 32 bits of a buffer's bytes. Whole words first, so the buffer's view must start at a multiple of 4. */
export function hashBytes(seed: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number): number {
  let h = seed ^ byteLength
  const count = byteLength >> 2
  const words = new Int32Array(buffer, byteOffset, count)
  for (let i = 0; i < count; i++) {
    h = imul(h ^ words[i]!, 0x5bd1e995)
    h ^= h >>> 15
  }
  const rest = byteLength & 3
  if (rest > 0) {
    const bytes = new Uint8Array(buffer, byteOffset + byteLength - rest, rest)
    for (let i = 0; i < rest; i++) h = imul(h ^ bytes[i]!, 0x5bd1e995)
  }
  return mix32(h)
}
