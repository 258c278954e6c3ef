/**
 * One run as a partial order: its steps with the things that each used, which of them had to come before which, and a fingerprint that two runs share
 * if they differ only in the order of independent steps. `search.ts` makes runs in which steps come in the other order if
 * they could have.
 *
 *     w0   1 ────→ 3 ───────→ 6       3 and 4 are not ordered: a run with 4 before 3 is the same order.
 *            ╲         ╱              5 and 6 happen at different workers too, but 6 is the arrival of what 5 sent.
 *     w1      2 ─→ 4 ─→ 5
 */
import type { DrawKind, PossibleChoice, StepObserver } from '@postgrad/sim'
import { mix32 } from '@postgrad/sim/internal'

/** One step of a run; steps are numbered as events are indexed, 0 being what ran before the first. */
export interface OrderEvent {
  /** Of the choice: steps with one label keep their order in every run. */
  readonly label: string
  readonly worker: string
  /** Things that it used and possibly changed: workers, channels it put something into. */
  readonly writes: string[]
  /** Things on which it depended: channels it looked into. */
  readonly reads: string[]
  /** It used everything. */
  all: boolean
  /** Steps without which it had not been possible, by index. */
  readonly causes: number[]
  /** Every step before this index came before it: time has gone on since. */
  readonly floor: number
  /** The answers of its draws, and of how many each. */
  readonly outcomes: number[]
  readonly counts: number[]
  /** Of what happened in it: kinds and bytes of frames. */
  hash: number
}

/** Whether the order of two steps that are both possible matters. */
export function dependent(a: Uses, b: Uses): boolean {
  return a.all || b.all || meets(a.writes, b.writes) || meets(a.writes, b.reads) || meets(a.reads, b.writes)
}

export type Uses = Pick<OrderEvent, 'writes' | 'reads' | 'all'>

function meets(a: readonly string[], b: readonly string[]): boolean {
  for (let i = 0; i < a.length; i++) if (b.includes(a[i]!)) return true
  return false
}

/** The name of a channel's content; no worker is called so. */
const contentOf = (channel: string): string => `(${channel})`

/** The label of what ran before the first step; no choice is called so. */
export const START = '(start)'

/** Listens to a run. Its first event is what ran before the first step: nothing can come before it, but it may draw (a worker crashes there). */
export class OrderRecorder implements StepObserver {
  readonly events: OrderEvent[] = []
  private current: OrderEvent | null = null
  private floor = 0

  constructor() {
    this.begin({ label: START, worker: '' })
    this.floor = 1
  }

  begin({ label, worker }: Pick<PossibleChoice, 'label' | 'worker'>): void {
    const { floor } = this
    const outcomes: number[] = []
    this.current = { label, worker, writes: [worker], reads: [], all: false, causes: [], floor, outcomes, counts: [], hash: 0 }
    this.events.push(this.current)
  }

  jump(): void {
    this.floor = this.events.length
    // The jump of time belongs to no step.
    this.current = null
  }

  cause(step: number): void {
    if (step > 0) this.current!.causes.push(step)
  }

  touch(name: string): void {
    const event = this.current
    if (event !== null && !event.writes.includes(name)) event.writes.push(name)
  }

  touchAll(): void {
    if (this.current !== null) this.current.all = true
  }

  put(channel: string): void {
    this.touch(contentOf(channel))
  }

  look(channel: string): void {
    const { current } = this
    const name = contentOf(channel)
    if (current !== null && !current.reads.includes(name)) current.reads.push(name)
  }

  event(kind: string, _from: string, _to: string, hash: number): void {
    if (this.current !== null) this.current.hash = mix32(this.current.hash ^ mix32(hash ^ hashText(kind)))
  }

  /** The answer to a draw inside the step. */
  drew(kind: DrawKind, value: number, count: number): void {
    const { current } = this
    if (current === null) return
    current.outcomes.push(value)
    current.counts.push(count)
    current.hash = mix32(current.hash ^ hashText(kind) ^ value)
  }
}

/** Two steps of which the second directly follows the first only because they use the same: the second could have come first. */
export interface Race {
  readonly first: number
  readonly second: number
}

/** Which steps came before which: for each step, how many of each label up to it, itself included. */
export class Order {
  readonly events: readonly OrderEvent[]
  readonly races: Race[] = []
  private readonly clocks: Int32Array[] = []
  private readonly labelOf: Int32Array
  /** Which step of its label each one is, from 1. */
  private readonly nth: Int32Array
  private readonly labels: string[] = []

  constructor(events: readonly OrderEvent[]) {
    this.events = events
    const numbers = new Map<string, number>()
    this.labelOf = Int32Array.from(events, ({ label }) => {
      const number = numbers.get(label) ?? numbers.size
      if (number === numbers.size) {
        numbers.set(label, number)
        this.labels.push(label)
      }
      return number
    })
    this.nth = new Int32Array(events.length)
    this.build()
  }

  /** Whether step `a` came before step `b` in every run of this order. A step comes before itself. */
  isBefore(a: number, b: number): boolean {
    return this.clocks[b]![this.labelOf[a]!]! >= this.nth[a]!
  }

  /** Of the order, whatever order its independent steps came in: 16 hex digits. */
  get fingerprint(): string {
    let high = 0
    let low = 0
    const names = this.labels.map(hashText)
    for (let i = 0; i < this.events.length; i++) {
      const clock = this.clocks[i]!
      let h = this.events[i]!.hash ^ mix32(names[this.labelOf[i]!]!)
      for (let label = 0; label < clock.length; label++)
        if (clock[label]! > 0) h = (h + mix32(names[label]! ^ Math.imul(clock[label]!, 0x9e3779b1))) | 0
      const mixed = mix32(h)
      high = (high + mixed) | 0
      low = (low + mix32(mixed ^ 0x5bd1e995)) | 0
    }
    return hex(high) + hex(low)
  }

  private build(): void {
    const { events, labelOf, nth, clocks } = this
    const lastOfLabel = new Int32Array(this.labels.length).fill(-1)
    const count = new Int32Array(this.labels.length)
    const writers = new Map<string, number>()
    const readers = new Map<string, number[]>()
    let lastAll = -1
    let floor = 0
    let base = new Int32Array(this.labels.length)
    for (let j = 0; j < events.length; j++) {
      const event = events[j]!
      if (event.floor > floor) {
        floor = event.floor
        base = Int32Array.from(count)
      }
      const label = labelOf[j]!
      const conflicts = new Set<number>()
      const add = (i: number | undefined): void => {
        if (i !== undefined && i >= floor) conflicts.add(i)
      }
      if (event.all) for (const last of lastOfLabel) add(last)
      else {
        add(lastAll)
        for (const name of event.writes) {
          add(writers.get(name))
          readers.get(name)?.forEach(add)
        }
        for (const name of event.reads) add(writers.get(name))
      }
      const clock = Int32Array.from(base)
      this.join(clock, lastOfLabel[label]!)
      for (const cause of event.causes) this.join(clock, cause)
      // The steps before it for any other reason than that both use the same.
      const enabled = Int32Array.from(clock)
      const behind = [...conflicts].sort((a, b) => b - a)
      for (const i of behind) this.join(clock, i)
      for (const i of behind) {
        const isDirect = enabled[labelOf[i]!]! < nth[i]! && !behind.some((k) => k !== i && this.isBefore(i, k))
        if (isDirect) this.races.push({ first: i, second: j })
      }
      nth[j] = ++count[label]!
      clock[label] = nth[j]!
      clocks.push(clock)
      lastOfLabel[label] = j
      if (event.all) lastAll = j
      for (const name of event.writes) {
        writers.set(name, j)
        readers.delete(name)
      }
      for (const name of event.reads) readers.set(name, [...(readers.get(name) ?? []), j])
    }
  }

  private join(clock: Int32Array, i: number): void {
    if (i < 0) return
    const other = this.clocks[i]!
    for (let label = 0; label < clock.length; label++) if (other[label]! > clock[label]!) clock[label] = other[label]!
  }
}

const hashes = new Map<string, number>()

/** 32 bits of a short text that comes again and again. */
function hashText(text: string): number {
  let h = hashes.get(text)
  if (h === undefined) {
    h = text.length
    for (let i = 0; i < text.length; i++) h = mix32(Math.imul(h, 31) ^ text.charCodeAt(i))
    hashes.set(text, h)
  }
  return h
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}
