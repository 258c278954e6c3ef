/**
 * The clock of a simulated world: time does not advance while anything can happen, and then jumps to the next timer. Each worker has its own
 * view of it (`clockOf`), whose timers and deferred turns keep their order and stop with the worker; between workers the schedule decides.
 *
 *   setTimer ─→ heap by (due, order of setting) ──time reaches it──→ worker's due timers ─┐
 *   defer ─────────────────────────────────────────────────────────→ worker's turns ──────┴─→ one choice per worker
 */
import assert from 'node:assert'
import { currentScope, inScope, type Scope } from '@postgrad/base/internal'
import type { Clock, Timer } from '@postgrad/transport'
import { NEVER } from '@postgrad/transport/internal'
import { Choice, type Choices } from './choices.js'
import type { StepObserver } from './observer.js'
import { Queue } from './queue.js'
import type { DrawKind } from './schedule.js'
import type { Trace } from './trace.js'

/** Runs `fn` in the scope that it was handed over in, as Node's own timers do. */
export function callIn(scope: Scope, fn: () => void): void {
  if (scope === currentScope()) fn()
  else inScope(scope, fn)
}

class SimTimer implements Timer {
  readonly dueMs: number
  readonly order: number
  readonly worker: WorkerTurns
  readonly fn: () => void
  readonly scope = currentScope()
  /** The step in which it was set. */
  readonly cause: number
  /** In the heap; −1 once it is due, cancelled or fired. */
  at = -1

  constructor(dueMs: number, order: number, worker: WorkerTurns, fn: () => void) {
    this.dueMs = dueMs
    this.order = order
    this.worker = worker
    this.fn = fn
    this.cause = worker.step
  }

  cancel(): void {
    this.worker.cancel(this)
  }
}

interface Turn {
  readonly fn: () => void
  readonly scope: Scope
  readonly cause: number
}

/** The turns of all workers share it. */
export interface TimeHost {
  readonly choices: Choices
  readonly trace: Trace
  /** The number of the step that is running. */
  readonly steps: number
  draw(kind: DrawKind, label: string, count: number): number
  readonly observer: StepObserver | null
}

export class VirtualTime {
  nowMs = 0
  readonly host: TimeHost
  private readonly heap: SimTimer[] = []
  private nextOrder = 0

  constructor(host: TimeHost) {
    this.host = host
  }

  /** When the next timer is due; undefined when none is set. */
  get nextDueMs(): number | undefined {
    return this.heap[0]?.dueMs
  }

  /** Jumps to the next timer, which there must be, and makes due all that are set for that moment. */
  jump(): void {
    const next = this.heap[0]
    assert(next !== undefined, 'time jumps to a timer')
    this.nowMs = next.dueMs
    this.host.trace.add(this.host.steps, this.nowMs, 'time', '', '', 0, 0)
    for (let timer = this.heap[0]; timer !== undefined && timer.dueMs <= this.nowMs; timer = this.heap[0]) {
      this.take(timer)
      timer.worker.makeDue(timer)
    }
  }

  set(delayMs: number, worker: WorkerTurns, fn: () => void): SimTimer {
    assert(!Number.isNaN(delayMs), 'a timer of NaN ms')
    const timer = new SimTimer(this.nowMs + Math.max(0, delayMs), this.nextOrder++, worker, fn)
    if (timer.dueMs <= this.nowMs) worker.makeDue(timer)
    else this.put(timer)
    return timer
  }

  private put(timer: SimTimer): void {
    this.heap.push(timer)
    this.rise(timer, this.heap.length - 1)
  }

  /** Takes a timer out of the heap from any place. */
  take(timer: SimTimer): void {
    const last = this.heap.pop()!
    if (last !== timer) {
      const { at } = timer
      this.rise(last, at)
      if (last.at === at) this.sink(last, at)
    }
    timer.at = -1
  }

  private rise(timer: SimTimer, from: number): void {
    const { heap } = this
    let at = from
    while (at > 0) {
      const parent = heap[(at - 1) >> 1]!
      if (before(parent, timer)) break
      heap[at] = parent
      parent.at = at
      at = (at - 1) >> 1
    }
    heap[at] = timer
    timer.at = at
  }

  private sink(timer: SimTimer, from: number): void {
    const { heap } = this
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (before(timer, heap[child]!)) break
      heap[at] = heap[child]!
      heap[at]!.at = at
      at = child
    }
    heap[at] = timer
    timer.at = at
  }
}

function before(a: SimTimer, b: SimTimer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)
}

/** The timers and deferred turns of one worker; as a choice: the next of them. */
export class WorkerTurns extends Choice {
  readonly clock: Clock
  /** Set and not yet fired or cancelled, due or not; a crash has to find them. */
  private readonly timers = new Set<SimTimer>()
  private readonly due = new Queue<SimTimer>()
  private readonly turns = new Queue<Turn>()
  private readonly time: VirtualTime
  private crashed = false

  constructor(worker: string, time: VirtualTime) {
    super(time.host.choices, worker, worker)
    this.time = time
    this.clock = {
      now: () => time.nowMs,
      setTimer: (delayMs, fn) => this.setTimer(delayMs, fn),
      defer: (fn) => this.defer(fn),
    }
  }

  /** The oldest deferred turn or the oldest due timer; where both wait, the schedule decides between them. */
  override happen(): void {
    const { host } = this.time
    const turn = this.turns.first
    const timer = this.due.first
    if (turn !== undefined && (timer === undefined || host.draw('turn', this.label, 2) === 0)) {
      this.turns.shift()
      host.observer?.cause(turn.cause)
      this.update()
      host.trace.add(host.steps, this.time.nowMs, 'defer', this.worker, '', 0, 0)
      callIn(turn.scope, turn.fn)
      return
    }
    assert(timer !== undefined, 'a worker without turns was chosen')
    this.due.shift()
    host.observer?.cause(timer.cause)
    this.timers.delete(timer)
    this.update()
    host.trace.add(host.steps, this.time.nowMs, 'timer', this.worker, '', 0, 0)
    callIn(timer.scope, timer.fn)
  }

  get step(): number {
    return this.time.host.steps
  }

  makeDue(timer: SimTimer): void {
    this.due.push(timer)
    this.update()
  }

  cancel(timer: SimTimer): void {
    if (!this.timers.delete(timer)) return
    this.time.host.observer?.touch(this.worker)
    if (timer.at >= 0) {
      this.time.take(timer)
      return
    }
    this.due.remove(timer)
    this.update()
  }

  /** Nothing of this worker runs any more, and what it sets from now on never does. */
  crash(): void {
    this.crashed = true
    for (const timer of [...this.timers]) this.cancel(timer)
    this.turns.truncate(0)
    this.update()
  }

  private setTimer(delayMs: number, fn: () => void): Timer {
    if (this.crashed || delayMs === Number.POSITIVE_INFINITY) return NEVER
    this.time.host.observer?.touch(this.worker)
    const timer = this.time.set(delayMs, this, fn)
    this.timers.add(timer)
    return timer
  }

  private defer(fn: () => void): void {
    if (this.crashed) return
    this.time.host.observer?.touch(this.worker)
    this.turns.push({ fn, scope: currentScope(), cause: this.step })
    this.update()
  }

  private update(): void {
    this.time.host.choices.set(this, this.turns.length > 0 || this.due.length > 0)
  }
}
