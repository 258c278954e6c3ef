/**
 * Runs a worker's mailbox: one item at a time, in turns of bounded length, with looks at the links between node tasks. This makes a
 * worker an actor. The rules PU-1 to PU-13 are in SPEC.md; rpc's `worker-core.ts` makes the pump of a worker.
 *
 *             wake: microtask                 mailbox empty
 *   idle ─────────────────────→ scheduled ─→ running ─────→ idle
 *     └──── runNow: at once ───────────────────↑  │ budget spent
 *                                              └─ deferred (a later turn of the event loop)
 *
 * Items are dispatched in the async context in which the pump was made. Without that, an item would find the scope and the AsyncLocalStorages of
 * the code that happened to wake the pump, which may be another program's.
 */
import { AsyncResource } from 'node:async_hooks'
import { Lane } from '@postgrad/base/internal'
import type { Clock } from '@postgrad/transport'
import { Mailbox } from './mailbox.js'

/** How long a worker works before it lets timers and I/O have a turn. */
export const BUDGET_MS = 8
/** The links are looked at after this many node tasks … */
export const POLL_EVERY_TASKS = 64
/** … or after this time, whichever comes first. */
export const POLL_EVERY_MS = 1
/** Reading the clock costs as much as dispatching an item, so it is read every n-th, with n between 1 and this by how long they take. */
const STRIDE_MAX = 32

export interface PumpOptions<T> {
  readonly clock: Clock
  /** Does what the item says, up to its first await. A throw is a bug of the caller. */
  readonly dispatch: (item: T, lane: Lane) => void
  /** Gets what a dispatch, a poll or an `onDrained` callback threw, with the item if there was one. The pump continues. */
  readonly onBug: (error: unknown, item: T | null) => void
  readonly budgetMs?: number
  readonly pollEveryTasks?: number
  readonly pollEveryMs?: number
}

// One promise that is already fulfilled serves every wake; it holds no state. Its `then` costs half of `queueMicrotask`.
const fulfilled = Promise.resolve()

type State = 'idle' | 'scheduled' | 'running' | 'deferred' | 'stopped'

export class Pump<T extends NonNullable<unknown>> {
  readonly mailbox = new Mailbox<T>()
  /** How many runs, runs cut by the budget, looks at the links and bugs there were. */
  readonly counts = { runs: 0, deferrals: 0, polls: 0, bugs: 0 }
  private readonly clock: Clock
  private readonly dispatch: (item: T, lane: Lane) => void
  private readonly onBug: (error: unknown, item: T | null) => void
  private readonly budgetMs: number
  private readonly pollEveryTasks: number
  private readonly pollEveryMs: number
  /** The async context in which the pump was made. */
  private readonly home = new AsyncResource('Mailbox')
  // Replaced when they change, never changed: a callback may remove itself, or another, while they are gone through.
  private polls: readonly (() => number)[] = []
  private drained: readonly (() => void)[] = []
  private state: State = 'idle'
  /** Time worked since the last turn of the event loop that the pump knows of. */
  private spentMs = 0
  private stride = 1
  // Of the current run: when it began, when it last read the clock and looked at the links, and the counts since.
  private startedMs = 0
  private checkedMs = 0
  private polledMs = 0
  private tasks = 0
  private untilCheck = 1
  private isSpent = false
  /** The item that ends next was counted as its last step. */
  private isCounted = false

  private readonly microtask = () => {
    if (this.state === 'scheduled') this.enter()
  }

  private readonly resume = () => {
    if (this.state !== 'deferred') return
    this.spentMs = 0
    this.enter()
  }

  constructor(options: PumpOptions<T>) {
    this.clock = options.clock
    this.dispatch = options.dispatch
    this.onBug = options.onBug
    this.budgetMs = options.budgetMs ?? BUDGET_MS
    this.pollEveryTasks = options.pollEveryTasks ?? POLL_EVERY_TASKS
    this.pollEveryMs = options.pollEveryMs ?? POLL_EVERY_MS
  }

  /** Runs the mailbox in a microtask, after those already queued. For pushes from the worker's own code. */
  wake(): void {
    if (this.state !== 'idle') return
    this.state = 'scheduled'
    fulfilled.then(this.microtask)
  }

  /** Runs the mailbox now, unless it is running already or has spent its budget. For a link's `onTurnEnd`, which is a turn of its own. */
  runNow(): void {
    if (this.state !== 'idle' && this.state !== 'scheduled') return
    this.spentMs = 0
    this.enter()
  }

  /** `poll` delivers what has already arrived on a link and returns how much; it is called between node tasks. Returns its removal. */
  addPoll(poll: () => number): () => void {
    this.polls = [...this.polls, poll]
    return () => {
      this.polls = this.polls.filter((other) => other !== poll)
    }
  }

  /**
   * Looks at the links in the middle of whatever runs on this thread, so that what arrives takes its lane and what was sent leaves. Nothing is
   * dispatched before that has ended. Returns how much waits.
   */
  look(): number {
    if (this.state === 'stopped') return 0
    this.pollLinks()
    if (this.mailbox.size > 0) this.wake()
    return this.mailbox.size
  }

  /** `callback` runs each time that the mailbox has been worked empty; it may push. Returns its removal. */
  onDrained(callback: () => void): () => void {
    this.drained = [...this.drained, callback]
    return () => {
      this.drained = this.drained.filter((other) => other !== callback)
    }
  }

  get stopped(): boolean {
    return this.state === 'stopped'
  }

  /** Nothing is dispatched after this, though the item that is running ends. Hands over what still waits, in order. Idempotent. */
  stop(letter?: (item: T, lane: Lane) => void): void {
    this.state = 'stopped'
    this.mailbox.releaseAll()
    for (let item = this.mailbox.take(); item !== undefined; item = this.mailbox.take()) letter?.(item, this.mailbox.takenLane)
  }

  private enter(): void {
    this.home.runInAsyncScope(this.run, this)
  }

  private run(): void {
    const { mailbox, clock, counts } = this
    if (mailbox.size === 0) {
      this.state = 'idle'
      return
    }
    if (this.spentMs >= this.budgetMs) {
      this.putOff()
      return
    }
    this.state = 'running'
    counts.runs++
    this.checkedMs = this.polledMs = clock.now()
    this.startedMs = this.checkedMs - this.spentMs
    this.tasks = 0
    this.isCounted = false
    this.untilCheck = Math.min(this.stride, this.pollEveryTasks)
    while (this.state === 'running') {
      const item = mailbox.take()
      if (item === undefined) {
        this.notifyDrained()
        if (mailbox.size === 0) break
        continue
      }
      const lane = mailbox.takenLane
      try {
        this.dispatch(item, lane)
      } catch (error) {
        this.report(error, item)
      }
      if (this.isCounted) this.isCounted = false
      else this.isSpent = this.countAndLook(lane)
      if (this.isSpent && mailbox.size > 0 && this.state === 'running') {
        this.putOff()
        return
      }
    }
    this.spentMs = clock.now() - this.startedMs
    if (this.state === 'running') this.state = 'idle'
  }

  /**
   * A task of several steps asks between two of them whether it may continue: true if the mailbox would take it next, had it pushed itself again. A step counts
   * as an item, so the pump looks at the links, lanes age and the budget shrinks.
   */
  mayContinue(): boolean {
    this.isSpent = this.countAndLook(Lane.task)
    this.isCounted = this.isSpent || this.state !== 'running' || !this.mailbox.mayContinueTask()
    return !this.isCounted
  }

  /** Counts an item, and reads the clock and looks at the links when it is time. True if the budget was seen to be spent. */
  private countAndLook(lane: Lane): boolean {
    if (lane === Lane.task) this.tasks++
    if (--this.untilCheck > 0) return false
    const nowMs = this.clock.now()
    if (nowMs - this.checkedMs > this.pollEveryMs / 4) this.stride = Math.max(1, this.stride >> 1)
    else if (this.stride < STRIDE_MAX) this.stride *= 2
    this.checkedMs = nowMs
    this.untilCheck = Math.min(this.stride, this.pollEveryTasks)
    if (this.tasks >= this.pollEveryTasks || nowMs - this.polledMs >= this.pollEveryMs) {
      this.pollLinks()
      this.polledMs = nowMs
      this.tasks = 0
    }
    return nowMs - this.startedMs >= this.budgetMs
  }

  private putOff(): void {
    this.state = 'deferred'
    this.counts.deferrals++
    this.clock.defer(this.resume)
  }

  private pollLinks(): void {
    this.counts.polls++
    for (const poll of this.polls) {
      try {
        poll()
      } catch (error) {
        this.report(error, null)
      }
    }
  }

  private notifyDrained(): void {
    for (const callback of this.drained) {
      try {
        callback()
      } catch (error) {
        this.report(error, null)
      }
    }
  }

  /** A reporter that throws itself must not stop the worker either: its error surfaces as an uncaught one, in a turn of its own. */
  private report(error: unknown, item: T | null): void {
    this.counts.bugs++
    try {
      this.onBug(error, item)
    } catch (second) {
      this.clock.defer(() => {
        throw second
      })
    }
  }
}
