/**
 * Keeps children running: starts them in order, restarts those that end when they should not, stops them in reverse order, and gives up after
 * too many restarts. Any `Child` will do: cluster supervises workers with it, rpc supervises actors, and a supervisor is a child, too.
 * The semantics are Erlang's, the rules SUP-1 to SUP-19 in SPEC.md.
 *
 * One thing happens at a time. Exits, retries and the requests of users wait in one queue, in order of arrival:
 *
 *   child ends ────────┐
 *   start failed ──────┤ (in a turn of its own)
 *   add, remove, stop ─┴─→ queue ─→ stop some in reverse order ─→ start some in order ─→ next
 *
 * Note [Changes within a start]. A start may await a change by hand (an `onRestart` that restarts another worker). In the queue that change would wait for the
 * start that awaits it. So each start is a turn of its own within the turn that it is a part of: such changes take turns among themselves, and the start ends after them. A change
 * that the start's code asks for later waits in the queue. Other code of a turn (`stop` of a child, `onGone`) may ask, too: such a change takes turns with the starts of that turn.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { PostgradError } from '@postgrad/base'
import { checkTime } from '@postgrad/base/internal'
import type { Clock, Timer } from '@postgrad/transport'

/** How a supervised actor or worker, or a supervision, ended. */
export interface Exit {
  /** Whether the end was normal: it had nothing more to do, or was asked to end. */
  readonly normal: boolean
  /** The error that caused the end; undefined if there was none. */
  readonly reason?: unknown
}

/** Something that runs and ends once. */
export interface Child {
  /** Settles when it has ended, for whatever reason. */
  readonly exited: Promise<Exit>
  /** Asks it to end; after `deadlineMs` it is killed. A throw or a rejection kills it at once. */
  stop(deadlineMs: number): unknown
  /** Ends it, whatever it does: `exited` settles soon after. Without effect on a child that has ended. */
  kill(): void
}

/** Which other children restart with a child: none ('one-for-one'), all ('one-for-all'), or those that were started after it ('rest-for-one'). */
export type Strategy = 'one-for-one' | 'one-for-all' | 'rest-for-one'
/** When a child restarts after its end: always ('permanent'), only if it did not end normally ('transient'), or never ('temporary'). */
export type Restart = 'permanent' | 'transient' | 'temporary'

/** How a supervisor restarts its children, and when it gives up. The children are actors (`supervise`) or workers (`launch`). */
export interface RestartOptions {
  /** Which children restart when one has crashed; default 'one-for-one': that child alone. */
  readonly strategy?: Strategy
  /** How many restarts are allowed within `periodMs`; default 1, as in Erlang. With one more the supervisor gives up, and ends all children. */
  readonly intensity?: number
  /** The period over which restarts are counted, in ms; default 5000. */
  readonly periodMs?: number
  /**
   * How long the first restart waits, in ms; default 0: restarts do not wait, as in Erlang. Each time that the child ends again before it has run for
   * `periodMs`, the next wait is twice as long, up to `maxBackoffMs`. (The names are Akka's.)
   */
  readonly minBackoffMs?: number
  /** The longest wait before a restart, in ms; default 30,000. */
  readonly maxBackoffMs?: number
  /** Makes each wait longer by a random part, so that many children do not restart at once; default 0. With 0.2, up to 20 % is added. */
  readonly randomFactor?: number
}

export interface ChildSpec<C extends Child = Child> {
  /** Unique among the children. */
  readonly name: string
  /** Makes the child, the first time and at every restart. It must settle: whatever it waits for has a deadline of its own. */
  start(): Promise<C>
  readonly restart?: Restart
  /** How long the child may take to end when it is asked to, before it is killed; 0 kills at once, Infinity never. Default 5000. */
  readonly shutdownMs?: number
  /** Called if nothing restarts the child: with its exit, or why a start by hand failed; null: it was removed. A restart of others may bring it back (SUP-7). */
  onGone?(exit: Exit | null): void
}

export interface SupervisorOptions<C extends Child = Child> extends RestartOptions {
  readonly clock: Clock
  /** In the order in which they start. */
  readonly children: readonly ChildSpec<C>[]
  /** Uniform in [0, 1), for `randomFactor`; default always 0. */
  readonly random?: () => number
  /** Called if a child that was asked to end failed, or had to be killed: nobody else is notified. */
  onBadStop?(name: string, exit: Exit): void
}

export const INTENSITY = 1
export const PERIOD_MS = 5000
export const SHUTDOWN_MS = 5000
export const MAX_BACKOFF_MS = 30_000

interface Running<C> {
  readonly child: C
  /** Never rejects. */
  readonly exited: Promise<Exit>
  hasEnded: boolean
}

class Slot<C extends Child> {
  readonly spec: ChildSpec<C>
  readonly restart: Restart
  readonly shutdownMs: number
  /** Null while it is not running, or is being stopped. */
  running: Running<C> | null = null
  /** It waits for its restart: its last start failed, or it is held back. */
  isRetried = false
  /** When it was last started; null: that start failed, or there was none. */
  startedMs: number | null = null
  /** Its ends in a row, each soon after its start. */
  ends = 0
  /** It ended and need not run. */
  isDone = false
  isStarting = false

  constructor(spec: ChildSpec<C>) {
    this.spec = spec
    this.restart = spec.restart ?? 'permanent'
    this.shutdownMs = checkTime('shutdownMs', spec.shutdownMs ?? SHUTDOWN_MS, '0 to kill at once')
    if (!RESTARTS.includes(this.restart)) throw invalid('restart', RESTARTS.join(', '), this.restart)
  }
}

/** A thing that happens, with the changes that are asked for within it. */
class Turn {
  isOver = false
  private inner: Promise<unknown> = Promise.resolve()

  add<T>(task: () => Promise<T>): Promise<T> {
    const done = this.inner.then(task)
    // Without the child that it gives, which may have ended long before the next.
    this.inner = done.then(nothing, nothing)
    return done
  }

  async end(): Promise<void> {
    let last: unknown
    while (last !== this.inner) {
      last = this.inner
      await last
    }
    this.isOver = true
  }
}

function nothing(): void {}

const STRATEGIES: readonly Strategy[] = ['one-for-one', 'one-for-all', 'rest-for-one']
const RESTARTS: readonly Restart[] = ['permanent', 'transient', 'temporary']

export class Supervisor<C extends Child = Child> implements Child {
  /** Settles when all children have ended: normal after `stop`, else with SUPERVISOR_GAVE_UP or SUPERVISOR_START_FAILED as its reason. */
  readonly exited: Promise<Exit>
  private readonly clock: Clock
  private readonly strategy: Strategy
  private readonly intensity: number
  private readonly periodMs: number
  private readonly backoff: { readonly minMs: number; readonly maxMs: number; readonly factor: number; random(): number }
  private readonly onBadStop: (name: string, exit: Exit) => void
  /** Restarts that are held back. */
  private readonly timers = new Set<Timer>()
  private slots: Slot<C>[] = []
  /** Everything that was started and has not ended, those that are being stopped included. */
  private readonly alive = new Set<Running<C>>()
  /** When there were restarts, the last period's only. */
  private restartsMs: number[] = []
  private queue: Promise<unknown> = Promise.resolve()
  /** The turn of which the running code is a part. */
  private readonly turn = new AsyncLocalStorage<Turn>()
  private isStarted = false
  private isEnding = false
  private isKilled = false
  private end!: (exit: Exit) => void

  /** @throws INVALID_ARGUMENT, TIMEOUT_INVALID, CHILD_NAME_TAKEN */
  constructor(options: SupervisorOptions<C>) {
    const { clock, strategy = 'one-for-one', intensity = INTENSITY, periodMs = PERIOD_MS, children, onBadStop = () => {} } = options
    if (!STRATEGIES.includes(strategy)) throw invalid('strategy', STRATEGIES.join(', '), strategy)
    if (!(intensity >= 0)) throw invalid('intensity', 'a number of restarts, 0 or more', intensity)
    this.clock = clock
    this.strategy = strategy
    this.intensity = intensity
    this.periodMs = checkTime('periodMs', periodMs, '0 for no memory of earlier restarts')
    this.backoff = checkBackoff(options)
    this.onBadStop = onBadStop
    this.exited = new Promise((resolve) => {
      this.end = resolve
    })
    for (const spec of children) this.slots.push(this.slot(spec))
  }

  /**
   * Starts the children, each when the one before it has started.
   * @throws (rejects) SUPERVISOR_START_FAILED after it has stopped those that had started; SUPERVISOR_NOT_RUNNING
   */
  start(): Promise<void> {
    return this.inTurn(async () => {
      if (this.isStarted) throw notRunning('start', 'has been started already', 'Start it once.')
      this.isStarted = true
      this.checkRunning('start')
      for (const slot of this.slots) {
        this.checkRunning('start')
        const failed = await this.startDue(slot)
        if (failed === null) continue
        const error = new PostgradError('SUPERVISOR_START_FAILED', {
          op: 'start',
          message: `child '${slot.spec.name}' did not start: ${textOf(failed.reason)}`,
          remedy: 'Look at the cause; the children that had started were stopped.',
          values: { child: slot.spec.name },
          cause: failed.reason,
        })
        await this.endAll({ normal: false, reason: error })
        throw error
      }
    })
  }

  /** The child that runs under this name now; undefined while none does. @throws UNKNOWN_CHILD */
  child(name: string): C | undefined {
    const { running } = this.find('child', name)
    return running === null || running.hasEnded ? undefined : running.child
  }

  /** The names of the children, in the order of their start. */
  get names(): readonly string[] {
    return this.slots.map(({ spec }) => spec.name)
  }

  /** How many restarts there were within the last period. */
  get restarts(): number {
    this.forget()
    return this.restartsMs.length
  }

  /** It does not run, and will not unless somebody asks; certain only when all is `settled`. @throws UNKNOWN_CHILD */
  isDown(name: string): boolean {
    const { running, isRetried, isDone } = this.find('isDown', name)
    return running === null && !isRetried && isDone
  }

  /** When all that was asked for and has happened so far is done: true if no child runs, and none will unless somebody asks. */
  async settled(): Promise<boolean> {
    let turn: Promise<unknown>
    do {
      turn = this.queue
      await turn
    } while (turn !== this.queue)
    return !this.isEnding && this.slots.every(({ running, isRetried }) => running === null && !isRetried)
  }

  // --- changes by hand; none of them counts as a restart

  /** Starts one more child, after the others. @throws (rejects) CHILD_NAME_TAKEN, SUPERVISOR_NOT_RUNNING, what its start throws; then it is not kept */
  add(spec: ChildSpec<C>): Promise<C> {
    return this.byHand(async () => {
      this.checkRunning('add')
      const slot = this.slot(spec)
      this.slots.push(slot)
      try {
        return await this.startChild(slot)
      } catch (error) {
        this.drop(slot)
        throw error
      }
    })
  }

  /** Stops one child and forgets it. @throws (rejects) UNKNOWN_CHILD, CHILD_STARTING, SUPERVISOR_NOT_RUNNING */
  remove(name: string): Promise<void> {
    return this.byHand(async () => {
      this.checkRunning('remove')
      const slot = this.findStarted('remove', name)
      const behind = this.waitingBehind(slot)
      await this.stopChild(slot)
      this.drop(slot)
      slot.spec.onGone?.(null)
      await this.startAll(behind)
    })
  }

  /** Stops one child, if it runs, and starts it again. @throws (rejects) UNKNOWN_CHILD, CHILD_STARTING, SUPERVISOR_NOT_RUNNING, what its start throws; then it stays down */
  restart(name: string): Promise<C> {
    return this.byHand(async () => {
      this.checkRunning('restart')
      const slot = this.findStarted('restart', name)
      const behind = this.waitingBehind(slot)
      await this.stopChild(slot)
      slot.isDone = true
      // Meanwhile it may have been stopped, and starts nothing more.
      this.checkRunning('restart')
      try {
        return await this.within(() => this.startChild(slot))
      } catch (reason) {
        slot.spec.onGone?.({ normal: false, reason })
        throw reason
      } finally {
        await this.startAll(behind)
      }
    })
  }

  // --- the end

  /** Stops the children in reverse order, each when the one after it has ended. Idempotent; it resolves when all have. */
  async stop(): Promise<void> {
    if (!this.isEnding) {
      // `endAll` waits for a start that is under way; no further start begins.
      this.isEnding = true
      void this.inTurn(() => this.endAll({ normal: true }))
    }
    await this.exited
  }

  /** Ends all children at once. */
  kill(): void {
    if (this.isKilled) return
    this.isKilled = true
    for (const { child } of [...this.alive].reverse()) child.kill()
    void this.stop()
  }

  // --- restarts

  private async onExit(slot: Slot<C>, running: Running<C>, exit: Exit): Promise<void> {
    // It was stopped, or its supervisor ends: an expected exit.
    if (slot.running !== running || this.isEnding) return
    slot.running = null
    slot.isDone = true
    if (slot.restart === 'permanent' || (slot.restart === 'transient' && !exit.normal)) await this.recover(slot, exit)
    else {
      if (slot.restart === 'temporary') this.drop(slot)
      slot.spec.onGone?.(exit)
    }
  }

  /** Starts a child again, with those that the strategy binds to it, if it has not come to that too often. */
  private async recover(slot: Slot<C>, exit: Exit): Promise<void> {
    this.forget()
    this.restartsMs.push(this.clock.now())
    if (this.restartsMs.length > this.intensity) {
      await this.giveUp(slot, exit)
      return
    }
    const at = this.slots.indexOf(slot)
    const bound = this.strategy === 'one-for-one' ? [slot] : this.strategy === 'one-for-all' ? this.slots : this.slots.slice(at)
    const affected = [...bound]
    for (const other of affected.toReversed()) {
      await this.stopChild(other)
      other.isDone = false
      if (other.restart !== 'temporary') continue
      this.drop(other)
      other.spec.onGone?.(null)
    }
    const restarted = affected.filter(({ restart }) => restart !== 'temporary')
    const waitMs = this.waitOf(slot)
    if (waitMs === 0) await this.startAll(restarted)
    else this.startLater(slot, restarted, waitMs)
  }

  /** How long the restart of a child that has ended is held back. */
  private waitOf(slot: Slot<C>): number {
    const { minMs, maxMs, factor, random } = this.backoff
    const ranMs = slot.startedMs === null ? 0 : this.clock.now() - slot.startedMs
    slot.ends = ranMs >= this.periodMs && slot.startedMs !== null ? 1 : slot.ends + 1
    return Math.min(maxMs, minMs * 2 ** (slot.ends - 1)) * (1 + factor * random())
  }

  /** Meanwhile all else continues: other restarts, changes by hand, the end. */
  private startLater(slot: Slot<C>, restarted: readonly Slot<C>[], waitMs: number): void {
    slot.isRetried = true
    const timer = this.clock.setTimer(waitMs, () => {
      this.timers.delete(timer)
      void this.inTurn(async () => {
        if (slot.isRetried) await this.startAll(restarted.filter((other) => this.slots.includes(other)))
      })
    })
    this.timers.add(timer)
  }

  private async startAll(slots: readonly Slot<C>[]): Promise<void> {
    for (const slot of slots) {
      if (this.isEnding) return
      const failed = await this.startDue(slot)
      if (failed === null) continue
      // The children after it wait. It has a turn of its own, so that a start that fails at once leaves room for everything else.
      slot.isRetried = true
      this.clock.defer(() => void this.inTurn(() => this.retry(slot, { normal: false, reason: failed.reason })))
      return
    }
  }

  /** Starts one of several, unless a change that was asked for meanwhile has started or removed it, or its own start is what asks. Gives why it did not start; null: it is not down for that. */
  private startDue(slot: Slot<C>): Promise<{ readonly reason: unknown } | null> {
    return this.within(async () => {
      if (this.isEnding || slot.running !== null || slot.isDone || slot.isStarting || !this.slots.includes(slot)) return null
      try {
        await this.startChild(slot)
        return null
      } catch (reason) {
        return { reason }
      }
    })
  }

  /** Children that wait for a start that fails: it keeps them down. */
  private waitingBehind(slot: Slot<C>): readonly Slot<C>[] {
    return slot.isRetried && this.strategy !== 'one-for-one' ? this.slots.slice(this.slots.indexOf(slot) + 1) : []
  }

  private async retry(slot: Slot<C>, exit: Exit): Promise<void> {
    // Meanwhile it was removed, or started with others.
    if (slot.isRetried && !this.isEnding && this.slots.includes(slot)) await this.recover(slot, exit)
  }

  private async giveUp(slot: Slot<C>, exit: Exit): Promise<void> {
    const { intensity, periodMs } = this
    const error = new PostgradError('SUPERVISOR_GAVE_UP', {
      op: 'supervisor',
      message: `child '${slot.spec.name}' ended (${exit.normal ? 'normally' : textOf(exit.reason)}), and ${this.restartsMs.length} restarts within ${periodMs} ms are more than intensity (${intensity}) allows`,
      remedy: 'Look at the cause, the last end of that child; or allow more with { intensity, periodMs }.',
      values: { child: slot.spec.name, intensity, periodMs },
      cause: exit.reason,
    })
    this.isEnding = true
    await this.endAll({ normal: false, reason: error })
  }

  private forget(): void {
    const sinceMs = this.clock.now() - this.periodMs
    this.restartsMs = this.restartsMs.filter((atMs) => atMs >= sinceMs)
  }

  // --- one child

  /** If it is down: a change that came before may have started it. */
  private async startChild(slot: Slot<C>): Promise<C> {
    const { running } = slot
    if (running !== null) return running.child
    const turn = new Turn()
    let child: C
    try {
      child = await this.turn.run(turn, () => this.makeChild(slot))
    } finally {
      await turn.end()
    }
    // A change that was asked for within the start may have been about this child.
    return slot.running?.child ?? child
  }

  private async makeChild(slot: Slot<C>): Promise<C> {
    slot.isRetried = false
    slot.startedMs = null
    slot.isStarting = true
    let child: C
    try {
      child = await slot.spec.start()
    } finally {
      slot.isStarting = false
    }
    slot.isDone = false
    slot.startedMs = this.clock.now()
    const exited = child.exited.catch((reason: unknown): Exit => ({ normal: false, reason }))
    const running: Running<C> = { child, exited, hasEnded: false }
    slot.running = running
    this.alive.add(running)
    void exited.then((exit) => {
      running.hasEnded = true
      this.alive.delete(running)
      void this.inTurn(() => this.onExit(slot, running, exit))
    })
    if (this.isKilled) child.kill()
    return child
  }

  /** Asks it to end, kills it at its deadline, and waits until it has ended. */
  private async stopChild(slot: Slot<C>): Promise<void> {
    const { running, shutdownMs } = slot
    if (running === null) return
    slot.running = null
    const isAsked = shutdownMs > 0 && !this.isKilled && !running.hasEnded
    if (isAsked) await this.askToEnd(running, shutdownMs)
    if (!running.hasEnded && !this.isKilled) running.child.kill()
    const exit = await running.exited
    if (!exit.normal && isAsked && !this.isKilled) this.onBadStop(slot.spec.name, exit)
  }

  private askToEnd({ child, exited }: Running<C>, shutdownMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = shutdownMs === Number.POSITIVE_INFINITY ? null : this.clock.setTimer(shutdownMs, resolve)
      const ended = () => {
        timer?.cancel()
        resolve()
      }
      void exited.then(ended)
      const ask = async () => await child.stop(shutdownMs)
      ask().catch(ended)
    })
  }

  private async endAll(exit: Exit): Promise<void> {
    this.isEnding = true
    for (const timer of this.timers) timer.cancel()
    this.timers.clear()
    for (const slot of this.slots.toReversed()) await this.stopChild(slot)
    this.end(exit)
  }

  private slot(spec: ChildSpec<C>): Slot<C> {
    if (this.slots.some((other) => other.spec.name === spec.name)) {
      throw new PostgradError('CHILD_NAME_TAKEN', {
        op: 'supervisor',
        message: `there is a child '${spec.name}' already`,
        remedy: 'Give every child a name of its own.',
        values: { child: spec.name },
      })
    }
    return new Slot(spec)
  }

  private find(op: string, name: string): Slot<C> {
    const slot = this.slots.find(({ spec }) => spec.name === name)
    if (slot !== undefined) return slot
    throw new PostgradError('UNKNOWN_CHILD', {
      op,
      expected: `one of the children ${this.names.map((known) => `'${known}'`).join(', ') || '(there are none)'}`,
      got: `'${name}'`,
      remedy: 'Use the name of its specification; a temporary child that has ended is forgotten.',
      values: { child: name },
    })
  }

  /** A child that is not starting: a change that its own start asks for would wait for that start. */
  private findStarted(op: string, name: string): Slot<C> {
    const slot = this.find(op, name)
    if (!slot.isStarting) return slot
    throw new PostgradError('CHILD_STARTING', {
      op,
      expected: 'a child that is not being started',
      got: `'${name}', whose own start asks for this change`,
      remedy: 'To fail this start, throw: it is tried again. To change the child, ask after it has started.',
      values: { child: name },
    })
  }

  private drop(slot: Slot<C>): void {
    this.slots = this.slots.filter((other) => other !== slot)
  }

  /** Runs after all earlier requests, whether those succeeded or not. */
  private inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.queue.then(() => this.runTurn(task))
    this.queue = done.then(nothing, nothing)
    return done
  }

  /** A change: a part of the turn whose start asks for it, else a turn of its own. */
  private byHand<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.turn.getStore()
    return turn === undefined || turn.isOver ? this.inTurn(task) : turn.add(() => this.runTurn(task))
  }

  /** A start of this turn: it and the changes that are asked for within the turn come one after another. */
  private within<T>(task: () => Promise<T>): Promise<T> {
    return this.turn.getStore()!.add(task)
  }

  private runTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = new Turn()
    return this.turn.run(turn, async () => {
      try {
        return await task()
      } finally {
        await turn.end()
      }
    })
  }

  private checkRunning(op: string): void {
    if (!this.isStarted) throw notRunning(op, 'has not been started', 'Start it first.')
    if (this.isEnding) throw notRunning(op, 'has been stopped or has given up', ENDED)
  }
}

const ENDED = 'Call supervise() again: a supervision that has ended does not start again.'

function notRunning(op: string, what: string, remedy: string): PostgradError {
  return new PostgradError('SUPERVISOR_NOT_RUNNING', {
    op,
    message: `the supervisor ${what}`,
    remedy,
  })
}

/** @throws INVALID_ARGUMENT, TIMEOUT_INVALID */
function checkBackoff({ minBackoffMs = 0, maxBackoffMs, randomFactor = 0, random = () => 0 }: Partial<SupervisorOptions>) {
  const minMs = checkTime('minBackoffMs', minBackoffMs, '0 for no wait')
  const maxMs = checkTime('maxBackoffMs', maxBackoffMs ?? Math.max(minMs, MAX_BACKOFF_MS), 'at least minBackoffMs')
  if (!Number.isFinite(minMs)) throw invalid('minBackoffMs', 'a finite number of ms, 0 or more', minBackoffMs)
  if (!Number.isFinite(maxMs) || maxMs < minMs)
    throw invalid('maxBackoffMs', `a finite number of ms, at least minBackoffMs (${minMs})`, maxBackoffMs)
  if (!(randomFactor >= 0 && randomFactor <= 1)) throw invalid('randomFactor', 'a number from 0 to 1', randomFactor)
  return { minMs, maxMs, factor: randomFactor, random }
}

function invalid(op: string, expected: string, got: unknown): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op, expected, got: String(got), remedy: 'Leave it out for the default.' })
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}
