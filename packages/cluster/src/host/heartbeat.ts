/**
 * Finds stalled workers. Each worker advances a counter while its event loop turns, and in the pauses of long kernels; the main thread looks at it
 * now and then. An idle worker's timer still runs, so a worker stalls only if it never comes to its next turn: an endless loop, a lock, a callback
 * that blocks. `cluster.ts` above reports it.
 */
import { clearInterval, setInterval } from '@postgrad/base/internal'
import { NODE_DELAY_MS_MAX } from '@postgrad/transport/internal'
import type { Counter } from './worker-host.js'

/** Of the time after which a worker counts as stalled. */
const LOOKS_PER_STALL = 4
const BEATS_PER_LOOK = 2
/** The shortest time of Node's timers, in ms. */
const INTERVAL_MIN_MS = 1

/** In the range of Node's timers: Node would fire a longer one each millisecond. */
const interval = (ms: number): number => Math.min(Math.max(INTERVAL_MIN_MS, ms), NODE_DELAY_MS_MAX)

/** The worker's side: beats for as long as the event loop turns. Keeps no thread alive. */
export function beatWhileTurning(beats: Counter, stallMs: number): void {
  beats.add()
  setInterval(() => beats.add(), interval(stallMs / LOOKS_PER_STALL / BEATS_PER_LOOK)).unref()
}

interface Watched<T> {
  readonly who: T
  readonly beats: Counter
  seen: number
  /** How long it has stalled while the watch was awake. */
  silentMs: number
  isStalled: boolean
}

export interface StallListener<T> {
  onStalled(who: T, silentMs: number): void
  onRecovered(who: T): void
}

/** The main thread's side. Pure but for `start`: `look` gets the time. */
export class StallWatch<T> {
  private readonly stallMs: number
  private readonly listener: StallListener<T>
  private readonly watched = new Map<T, Watched<T>>()
  private lookedMs: number
  private timer: NodeJS.Timeout | null = null

  constructor(stallMs: number, nowMs: number, listener: StallListener<T>) {
    this.stallMs = stallMs
    this.lookedMs = nowMs
    this.listener = listener
  }

  get intervalMs(): number {
    return interval(this.stallMs / LOOKS_PER_STALL)
  }

  watch(who: T, beats: Counter): void {
    this.watched.set(who, { who, beats, seen: beats.value, silentMs: 0, isStalled: false })
  }

  unwatch(who: T): void {
    this.watched.delete(who)
  }

  isStalled(who: T): boolean {
    return this.watched.get(who)?.isStalled === true
  }

  look(nowMs: number): void {
    // While this thread was busy, or the whole process stopped, the workers may have, too: such a time counts as one look.
    const passedMs = Math.min(nowMs - this.lookedMs, 2 * this.intervalMs)
    this.lookedMs = nowMs
    for (const one of [...this.watched.values()]) {
      const beats = one.beats.value
      if (beats !== one.seen) {
        one.seen = beats
        one.silentMs = 0
        if (one.isStalled) {
          one.isStalled = false
          this.listener.onRecovered(one.who)
        }
        continue
      }
      one.silentMs += passedMs
      if (one.isStalled || one.silentMs < this.stallMs) continue
      one.isStalled = true
      this.listener.onStalled(one.who, one.silentMs)
    }
  }

  /** Looks by itself from now on, but while a debugger may hold the workers; keeps no process alive. */
  start(now: () => number, isHeld: () => boolean): void {
    const look = (): void => {
      if (isHeld()) this.lookedMs = now()
      else this.look(now())
    }
    this.timer = setInterval(look, this.intervalMs).unref()
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer)
  }
}
