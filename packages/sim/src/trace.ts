/**
 * What happened in a simulated world, one event after another: the proof that two runs were the same run. A hash covers all events;
 * the events themselves are kept up to a bound, the last ones.
 */
import { mix32 } from './random.js'

export type TraceKind =
  /** A frame was delivered in a step of its own, or behind another of its pair. */
  | 'frame'
  /** A frame was delivered because its receiver looked (`poll`). */
  | 'poll'
  /** The notice of a closed link was delivered; without `to` it was the end that had closed it which heard so. */
  | 'close'
  /** A timer fired. */
  | 'timer'
  /** A deferred turn ran. */
  | 'defer'
  /** Nothing else was to be done: virtual time jumped to the next timer. */
  | 'time'
  /** A worker was crashed. */
  | 'crash'
  /** A crashed worker may be started anew. */
  | 'restart'
  /** A fault rule lost a frame. */
  | 'drop'
  /** A fault rule repeated a frame, which is delivered as well. */
  | 'duplicate'
  /** A fault rule put off a frame. */
  | 'delay'

const KINDS: readonly TraceKind[] = [
  ...(['frame', 'poll', 'close', 'timer', 'defer', 'time', 'crash'] as const),
  ...(['restart', 'drop', 'duplicate', 'delay'] as const),
]
/** Of frames; their events have bytes. */
const OF_FRAMES: ReadonlySet<TraceKind> = new Set<TraceKind>(['frame', 'poll', 'drop', 'duplicate', 'delay'])

export interface TraceEvent {
  /** The step of the world that it happened in, from 1. Several frames may be delivered in one. */
  readonly step: number
  /** Virtual time. */
  readonly timeMs: number
  readonly kind: TraceKind
  /** The sender, or whose timer or turn it was; '' for the world's own. */
  readonly from: string
  /** The receiver; '' where there is none. */
  readonly to: string
  /** Of the frame, header and segments. */
  readonly bytes: number
  /** Of a frame's bytes; 32 bits. */
  readonly hash: number
}

export const TRACE_EVENTS_MAX = 65_536

export class Trace {
  /** How many events there were, kept or not. */
  count = 0
  private readonly eventsMax: number
  private readonly kept: TraceEvent[] = []
  private oldest = 0
  private high = 0x243f6a88
  private low = 0x85a308d3 | 0
  private readonly names = new Map<string, number>()
  // The two halves of a time, for the hash.
  private readonly time = new Float64Array(1)
  private readonly timeWords = new Int32Array(this.time.buffer)

  constructor(eventsMax: number = TRACE_EVENTS_MAX) {
    this.eventsMax = eventsMax
  }

  add(step: number, timeMs: number, kind: TraceKind, from: string, to: string, bytes: number, hash: number): void {
    this.count++
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
      return
    }
    this.kept[this.oldest] = event
    this.oldest = (this.oldest + 1) % this.eventsMax
  }

  /** Of all events since the beginning; 16 hex digits. Equal for equal runs. */
  get hash(): string {
    return hex(this.high) + hex(this.low)
  }

  /** The last events, up to the bound, oldest first. */
  get events(): readonly TraceEvent[] {
    return this.oldest === 0 ? this.kept : [...this.kept.slice(this.oldest), ...this.kept.slice(0, this.oldest)]
  }

  /** One line per event: step, time, kind, from→to, bytes, hash. Says first how many older ones were not kept. */
  get text(): string {
    const lines = this.events.map(line)
    const dropped = this.count - lines.length
    if (dropped > 0) lines.unshift(`(${dropped} earlier events were not kept)`)
    return lines.join('\n')
  }

  private stir(word: number): void {
    this.high = mix32(this.high ^ word)
    this.low = (Math.imul(this.low, 0x01000193) ^ this.high) | 0
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
    h = Math.imul(h ^ words[i]!, 0x5bd1e995)
    h ^= h >>> 15
  }
  const rest = byteLength & 3
  if (rest > 0) {
    const bytes = new Uint8Array(buffer, byteOffset + byteLength - rest, rest)
    for (let i = 0; i < rest; i++) h = Math.imul(h ^ bytes[i]!, 0x5bd1e995)
  }
  return mix32(h)
}
