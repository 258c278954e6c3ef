/**
 * The state of one actor, an object whose methods other workers call: its running, waiting and stashed calls, its timers, and how it
 * ended. `actors.ts` finds the cell of an object. The rules ACT-1 to ACT-18 are in SPEC.md.
 *
 * A serial actor serves one chain of calls at a time. A call of that chain starts at once, since the running call may wait for it:
 *
 *   call ─→ nothing runs and nothing waits? ─ yes ─→ runs ──────── its function ends ──→ the next that waits,
 *             │ no                                    ↑                                 through the mailbox
 *             ├─ of the chain that runs ──────────────┘
 *             └─ else ─→ queue, in order of arrival; a call in it has not begun, so it keeps its place in its sender's account
 */
import type { Exit } from '@postgrad/actor/internal'
import { PostgradError } from '@postgrad/base'
import { currentScope, inScope, isThenable, plainText, Scope } from '@postgrad/base/internal'
import type { Timer } from '@postgrad/transport'
import { type Outlet, OwnCall, type ServedCall, servedIn } from '../core/served-call.js'
import type { WorkerCore } from '../core/worker-core.js'
import { Invocation, type InvokeOptions } from './invocation.js'

/** At most so many calls may be stashed, and so many self-sends may wait. No account counts these. */
export const ACTOR_WAITING_MAX = 16_384

/** The optional method that an actor's class may have (`Actor` has it). */
export interface ActorHooks {
  /** Before it ends, unless it crashes. */
  onStop?(): unknown
}

/** A running method and its caller. */
interface Open {
  readonly method: string
  readonly served: ServedCall | null
  readonly reject: (error: unknown) => void
}

export class ActorCell {
  readonly value: object
  /** The name of its class, for a reader. */
  readonly what: string
  readonly isSerial: boolean
  /** Methods that are the actor's own affair. */
  hidden: ReadonlySet<string> | null = null
  /** How it ended; null while it has not. */
  exit: Exit | null = null
  /** Called once, when it ends. */
  readonly watchers = new Set<(exit: Exit) => void>()
  /** Its maker watches it, though the call of WATCH_ACTOR may not have arrived yet. */
  isMakerWatching = false
  private readonly core: WorkerCore
  /** Called once; `isKnown`: whether anybody knows how it ended. */
  private readonly onEnded: (cell: ActorCell, exit: Exit, isKnown: boolean) => void
  /** Methods that have begun and not ended. */
  private running = 0
  /** The chain of calls that a serial actor serves. */
  private chain: bigint | null = null
  /** The first call of that chain here; null if this worker made it itself. */
  holder: ServedCall | null = null
  private queue: Invocation[] = []
  /** The turn of the first in the queue is in the mailbox. */
  private isTurnSet = false
  private stashed: Invocation[] = []
  /** Self-sends that have not begun. */
  private sends = 0
  /** The method whose first stretch, up to its first await, is running now. */
  private current: Invocation | null = null
  /** Running methods without an answer. If the actor ends first, their callers get an error. */
  private readonly open = new Set<Open>()
  /** Calls whose streams are open, and their methods: they give items between the methods, and end with it. */
  private readonly streams = new Map<ServedCall, string>()
  private readonly timers = new Set<Timer>()
  /** It was asked to end. */
  private stopping: Promise<void> | null = null
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
  private settle: () => void = () => {}
  private onIdle: (() => void) | null = null

  constructor(core: WorkerCore, value: object, onEnded: (cell: ActorCell, exit: Exit, isKnown: boolean) => void) {
    this.core = core
    this.onEnded = onEnded
    this.value = value
    this.what = value.constructor?.name || 'an actor'
    this.isSerial = isSerialClass(value.constructor)
    this.ended = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  /** Calls that wait for their turn, and those that were put aside. */
  get waiting(): number {
    return this.queue.length + this.stashed.length
  }

  get timerCount(): number {
    return this.timers.size
  }

  // --- calls

  /** Runs a method in the current scope, now or when its turn has come, and gives its result or a promise of it. @throws ACTOR_STOPPED, MAILBOX_FULL */
  invoke(method: string, run: () => unknown, options: InvokeOptions = {}): unknown {
    const scope = currentScope()
    // A running method may wait for a call of its own chain, also after the actor was asked to end.
    const isNested = this.isSerial && this.running > 0 && scope.chain !== null && scope.chain === this.chain
    if (this.exit !== null || (this.stopping !== null && !isNested)) throw this.refusal(method, scope)
    const invocation = new Invocation(method, run, scope, options)
    if (!this.isSerial || isNested || (this.running === 0 && this.queue.length === 0)) return this.begin(invocation)
    servedIn(scope)?.putOff(this)
    this.queue.push(invocation)
    return invocation.promise()
  }

  /** The result, or a promise of it. */
  private begin(invocation: Invocation): unknown {
    let { scope } = invocation
    if (this.isSerial) {
      if (scope.chain === null) scope = new Scope({ chain: this.core.ids.take() }, scope)
      this.chain = scope.chain
      if (this.running === 0) this.holder = servedIn(scope)
    }
    this.running++
    const served = servedIn(scope)
    if (served !== null && served.outlet !== null) this.keepStream(served, served.outlet, invocation.method)
    const before = this.current
    this.current = invocation
    let result: unknown
    try {
      result = inScope(scope, invocation.run)
    } catch (error) {
      this.release()
      throw error
    } finally {
      this.current = before
    }
    if (invocation.isStashed || !isThenable(result)) {
      this.release()
      return result
    }
    const followed = this.follow(Promise.resolve(result), invocation)
    if (invocation.endsAtReturn) this.release()
    return followed
  }

  private keepStream(served: ServedCall, outlet: Outlet, method: string): void {
    this.streams.set(served, method)
    void outlet.ended.then(() => this.streams.delete(served))
  }

  /** A promise of the same. The actor's end rejects it, though the function may continue. */
  private follow(result: Promise<unknown>, { method, endsAtReturn, scope }: Invocation): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const open: Open = { method, served: servedIn(scope), reject }
      this.open.add(open)
      const ended = () => {
        this.open.delete(open)
        if (!endsAtReturn) this.release()
      }
      result.then(
        (value) => {
          resolve(value)
          ended()
        },
        (error) => {
          reject(error)
          ended()
        },
      )
    })
  }

  /** A method has ended. */
  private release(): void {
    this.running--
    this.next()
  }

  /** When nothing runs, the first waiting call gets its turn through the mailbox, so that a long queue leaves room for everything else. */
  private next(): void {
    if (this.running > 0) return
    this.chain = null
    this.holder = null
    if (this.queue.length === 0) this.onIdle?.()
    else if (!this.isTurnSet) {
      this.isTurnSet = true
      this.core.later(this.turn)
    }
  }

  private readonly turn = (): void => {
    this.isTurnSet = false
    const invocation = this.queue.shift()
    if (invocation !== undefined) this.rerun(invocation)
    this.next()
  }

  /** Runs a call that had to wait, unless its caller has given up. */
  private rerun(invocation: Invocation): void {
    const { scope, method, resolve, reject } = invocation
    const served: ServedCall | null = servedIn(scope)
    const isCancelled = (served?.givenUp ?? null) !== null
    const problem = served?.givenUp ?? (scope.deadlineMs < this.core.clock.now() ? this.expiredError(method) : null)
    if (problem !== null) {
      served?.refuse()
      // So a caller that no longer waits is not answered.
      served?.giveUp(problem)
      this.core.letter(isCancelled ? 'cancelled' : 'expired', `call of '${method}' of ${this.what}`)
      reject(problem)
      return
    }
    invocation.isStashed = false
    served?.begin()
    try {
      resolve(this.begin(invocation))
    } catch (error) {
      reject(error)
    }
  }

  // --- stash

  /** Puts the call that runs now aside. @throws STASH_OUTSIDE_CALL, MAILBOX_FULL */
  stash(): Promise<unknown> {
    const { current } = this
    if (current === null || current.isStashed) {
      throw new PostgradError('STASH_OUTSIDE_CALL', {
        op: 'stash',
        message: `no method of ${this.what} has just begun here`,
        remedy: "Write `return this.stash()` in a method, before its first await; it puts that method's call aside.",
      })
    }
    this.checkRoom('stash', this.stashed.length)
    current.isStashed = true
    this.stashed.push(current)
    const again = current.promise()
    // If the method does not return it, nobody handles a rejection.
    again.catch(() => {})
    return again
  }

  /** Stashed calls go before waiting ones, in their own order. */
  unstashAll(): void {
    const { stashed } = this
    this.stashed = []
    if (this.isSerial) {
      this.queue.unshift(...stashed)
      this.next()
    } else {
      for (const invocation of stashed) {
        // A later stop waits for it.
        this.running++
        this.core.later(() => {
          if (this.exit === null) this.rerun(invocation)
          else this.refuse([invocation])
          this.release()
        })
      }
    }
  }

  // --- self-sends and timers: nobody waits for them, so their errors end the actor

  /** Runs after the calls that wait in the mailbox, outside of any chain, without a deadline. */
  send(method: string, run: () => unknown): void {
    if (this.exit !== null) throw this.stoppedError(method)
    this.checkRoom('send', this.sends)
    this.sends++
    let waits = true
    const begin = () => {
      // Once, though it may be put aside and start again.
      if (waits) this.sends--
      waits = false
      return run()
    }
    this.core.later(() => this.perform(method, begin))
  }

  /** @returns what cancels it */
  setTimer(delayMs: number, method: string, run: () => unknown): Timer {
    if (this.exit !== null) throw this.stoppedError(method)
    const timer = this.core.clock.setTimer(delayMs, () => {
      this.timers.delete(timer)
      inScope(this.core.scope, () => this.perform(method, run))
    })
    const own: Timer = {
      cancel: () => {
        this.timers.delete(timer)
        timer.cancel()
      },
    }
    this.timers.add(timer)
    return own
  }

  private perform(method: string, run: () => unknown): void {
    if (this.exit !== null || this.stopping !== null) return
    const own = new OwnCall(this.core.info, () => this.core.requests.shutdownSignal)
    const fail = (error: unknown) => this.end({ normal: false, reason: error })
    const begin = () => this.invoke(method, run, { isOwn: true })
    try {
      const result = inScope(new Scope({ serving: own }, this.core.scope), begin)
      if (isThenable(result))
        void Promise.resolve(result)
          .catch(fail)
          .then(() => own.close())
      else own.close()
    } catch (error) {
      own.close()
      fail(error)
    }
  }

  // --- ends

  /**
   * Serves earlier calls (stashed ones are refused), ends the streams (`endsStreams`) or awaits them, and runs `onStop`. The actor then ends normally, unless
   * `onStop` throws. After `deadlineMs` it is ended in any case.
   */
  stop(deadlineMs: number, { endsStreams = true } = {}): Promise<void> {
    if (this.exit !== null) return Promise.resolve()
    if (deadlineMs === 0) {
      this.end({ normal: false, reason: this.killedError(0) })
      return Promise.resolve()
    }
    if (this.stopping === null) {
      this.refuse(this.stashed.splice(0))
      this.stopping = this.wind(endsStreams)
    }
    if (deadlineMs !== Number.POSITIVE_INFINITY) {
      const timer = this.core.clock.setTimer(deadlineMs, () => this.end({ normal: false, reason: this.killedError(deadlineMs) }))
      void this.ended.then(() => timer.cancel())
    }
    return this.ended
  }

  private async wind(endsStreams: boolean): Promise<void> {
    if (this.running > 0 || this.queue.length > 0) {
      await new Promise<void>((resolve) => {
        this.onIdle = resolve
      })
    }
    if (this.exit === null && this.streams.size > 0) await this.endStreams(endsStreams)
    if (this.exit !== null) return
    try {
      await inScope(this.core.scope, () => (this.value as ActorHooks).onStop?.())
      // Answers that it has just given go first.
      if (this.open.size > 0) await this.laterTurn()
      this.end({ normal: true })
    } catch (reason) {
      this.end({ normal: false, reason })
    }
  }

  /** Waits until the generators have ended. */
  private async endStreams(isAsked: boolean): Promise<void> {
    if (isAsked) {
      // A generator that stops its actor may be at its own end.
      await this.laterTurn()
      for (const [served, method] of [...this.streams]) this.endStream(served, this.stoppedError(method))
    }
    await Promise.race([Promise.all([...this.streams.keys()].map(({ outlet }) => outlet!.ended)), this.ended])
  }

  private endStream(served: ServedCall, error: PostgradError): void {
    served.outlet!.fail(error)
    served.stop(error)
  }

  private laterTurn(): Promise<void> {
    return new Promise((resolve) => this.core.clock.defer(resolve))
  }

  /** Only the first end counts. Waiting callers get an error; watchers are notified. */
  end(exit: Exit, { isKnown = this.isMakerWatching || this.watchers.size > 0 } = {}): void {
    if (this.exit !== null) return
    this.exit = exit
    for (const timer of this.timers) timer.cancel()
    this.timers.clear()
    this.refuse([...this.stashed.splice(0), ...this.queue.splice(0)])
    this.endOpen(!exit.normal)
    this.onIdle?.()
    this.onEnded(this, exit, isKnown)
    this.settle()
    const watchers = [...this.watchers]
    this.watchers.clear()
    for (const watcher of watchers) watcher(exit)
  }

  /** Callers of running methods get an error, and the methods' signals abort. */
  private endOpen(isCrash: boolean): void {
    const streams = [...this.streams].map(([served, method]) => ({ method, served, reject: () => {} }))
    for (const { method, served, reject } of [...streams, ...this.open]) {
      const error = this.stoppedError(method)
      reject(error)
      if (served === null) continue
      if (isCrash) this.lose(served, error)
      if (served.outlet === null) served.stop(error)
      else this.endStream(served, error)
    }
    this.open.clear()
  }

  /** Cancels the calls made for it, once its caller has the error. */
  private lose(served: ServedCall, error: PostgradError): void {
    if (served instanceof OwnCall) this.core.requests.giveUp([served], error)
    else served.crash = error
  }

  /** Self-sends are dropped: an error of one would be a crash. */
  private refuse(waiting: readonly Invocation[]): void {
    for (const { isOwn, method, reject, scope } of waiting) if (!isOwn) reject(this.refusal(method, scope))
  }

  private refusal(method: string, scope: Scope): PostgradError {
    servedIn(scope)?.refuse()
    return this.stoppedError(method)
  }

  // --- errors

  stoppedError(method: string): PostgradError {
    const { what, exit } = this
    const how = exit === null ? 'is being stopped' : exit.normal ? 'has been stopped' : `has crashed: ${textOf(exit.reason)}`
    return new PostgradError('ACTOR_STOPPED', {
      op: `call of '${method}'`,
      message: `this ${what} ${how}`,
      remedy: 'Make a new one with remote(); supervise() does so by itself.',
      values: { actor: what, crashed: exit !== null && !exit.normal },
      ...(exit?.reason === undefined ? {} : { cause: exit.reason }),
    })
  }

  private killedError(shutdownMs: number): PostgradError {
    const isAtOnce = shutdownMs === 0
    return new PostgradError('ACTOR_KILLED', {
      op: 'stopActor',
      message: `this ${this.what} ${isAtOnce ? 'was ended at once, as { shutdownMs: 0 } asks' : `had not ended by itself within ${shutdownMs} ms`}`,
      remedy: isAtOnce
        ? 'Give it a { shutdownMs } if it is to end what it does, and to run its onStop.'
        : 'Give it a longer { shutdownMs }, or look at the method that it is in.',
      values: { actor: this.what },
    })
  }

  private expiredError(method: string): PostgradError {
    return new PostgradError('RPC_TIMEOUT', {
      op: `call of '${method}'`,
      message: `its time had passed before ${this.what} was free`,
      remedy: 'Pass a longer { timeoutMs }, or look at what keeps the actor busy.',
      values: { actor: this.what, method },
    })
  }

  private checkRoom(op: 'stash' | 'send', waiting: number): void {
    if (waiting < ACTOR_WAITING_MAX) return
    throw new PostgradError('MAILBOX_FULL', {
      op,
      message: `${waiting} ${op === 'stash' ? 'calls are stashed' : 'self-sends wait'} in this ${this.what} already`,
      remedy:
        op === 'stash' ? 'Call unstashAll() before, or refuse calls by throwing.' : 'Send the next one from the method that was sent to.',
      values: { actor: this.what, waiting },
    })
  }
}

/** `static readonly serial = true`, the class's own or inherited. */
export function isSerialClass(target: unknown): boolean {
  return typeof target === 'function' && (target as { serial?: unknown }).serial === true
}

function textOf(reason: unknown): string {
  return plainText(reason)
}
