/**
 * A world in one thread: a schedule (`schedule.ts`), by default from a seed, decides each next event of its links and clocks. Same seed, same run, if
 * the program takes time, chance and messages only from here. Runtimes use it as they use real links and clocks, and see no difference.
 *
 * One step is one event: frames of a pair, a due timer, a deferred turn. Between steps the world waits until the program is quiet:
 *
 *   choose ─→ happen ─→ (Node runs every nextTick and microtask that follows from it) ─→ setImmediate ─→ choose …
 *
 * Note [Quiet]: one `setImmediate` is enough. Node takes the next macrotask only when the tick queue and the microtask queue are both
 * empty, however often they filled each other, so when the immediate runs, everything has run that could without an event from
 * outside: each pending promise waits for a frame, a timer or a turn of this world, or for something real. Real timers and I/O are not
 * part of the world: their completion could fall between any two steps, so a program that waits for them is not repeatable. If it waits for
 * nothing else the world is soon idle, and `run` fails with SIM_DEADLOCK. Collections and finalizers run between steps as well, and decide
 * nothing: the world holds no weak reference. A program that never becomes quiet starves the world, and any test runner's clock with it: a loop that
 * retries at once a call that fails at once (`while (true) await call(dead).catch(…)`) stays in one step for ever, and no limit ends it.
 * It has to wait on the worker's clock between two tries. (Measured: 0.7 µs an immediate; draining several steps per phase of the event loop would
 * save half a microsecond a step and make a user's own immediates late.)
 */

import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { setImmediate } from '@postgrad/base/internal'
import type { Clock, Link } from '@postgrad/transport'
import { Session } from '@postgrad/transport/internal'
import { Choices } from './choices.js'
import { type FaultOptions, Faults } from './faults.js'
import type { StepObserver } from './observer.js'
import { imul, mix32, Random } from './random.js'
import { Decider, type DrawKind, type Schedule, SeedSchedule } from './schedule.js'
import { type FrameCounts, type LinkHost, type SimLink, simLinkPair } from './sim-link.js'
import { Trace } from './trace.js'
import { type TimeHost, VirtualTime, WorkerTurns } from './virtual-time.js'

/** A run that takes more steps is taken for an endless one. */
export const STEPS_MAX = 50_000_000
/** A day: a run in which virtual time gets this far only continues because a timer repeats. */
export const TIME_MS_MAX = 86_400_000

/** Of `SimWorld`, and of `simulate` as `world`. */
export interface SimWorldOptions {
  /** Decides what happens next, wherever more than one thing can. It belongs to this world alone. Default: all from the seed. */
  readonly schedule?: Schedule
  /** Is notified what each step uses. Default: none. */
  readonly observer?: StepObserver
  /**
   * Which of a pair's frames in flight arrive together: `seeded` asks the schedule frame by frame, also in a `poll`; `at-once` delivers all
   * of them in one turn, as posts between threads mostly arrive; `alone` delivers each in a turn of its own, and a `poll` finds none. In all three the
   * schedule decides the order between pairs. Default: seeded.
   */
  readonly arrival?: 'seeded' | 'at-once' | 'alone'
  /**
   * Frames of a pair may overtake others as far as their orders let them (`FrameOrder` in transport's `link.ts`), as they may a large one on a socket, and further: any frame may be
   * the one that is overtaken. With `faults` without effect, since a session keeps every order. Default: false, all arrive as they were sent.
   */
  readonly overtaking?: boolean
  /** How many events the trace keeps (its hash covers all); default 65,536. */
  readonly traceEventsMax?: number
  /** `run` ends with SIM_LIMIT beyond this; default 50 million. */
  readonly stepsMax?: number
  /** `run` ends with SIM_LIMIT when virtual time would pass this; default a day. */
  readonly timeMsMax?: number
  /** The faults of frames on their way (`faults.ts`). With it, also without a rule, every link runs under a session. Default: nothing. */
  readonly faults?: FaultOptions
}

/** A world of virtual time and links, in which a seed decides the order of everything: what `simulate` runs workers in. */
export class SimWorld implements LinkHost, TimeHost {
  /** Decides the order. */
  readonly seed: number
  /** The world's own clock: nobody's crash stops it. For the program around the workers. */
  readonly clock: Clock
  /** The events, in order. */
  readonly trace: Trace
  readonly choices = new Choices()
  /** Steps taken so far; during a step, its number. */
  steps = 0
  readonly faults: Faults | null
  /** Counts of all frames. */
  readonly frames: FrameCounts = { sent: 0, delivered: 0, dropped: 0, repeated: 0, lost: 0, putOff: 0 }
  readonly observer: StepObserver | null
  readonly overtaking: boolean
  private readonly time: VirtualTime
  private readonly workers = new Map<string, WorkerTurns>()
  private readonly crashed = new Set<string>()
  private readonly crashListeners: ((worker: string) => void)[] = []
  private links: SimLink[] = []
  /** Of workers that live, where there are fault rules. */
  private sessions: { readonly worker: string; readonly session: Session }[] = []
  /** Which life each worker is in, by a number that no other life has. */
  private readonly lives = new Map<string, number>()
  private livesBegun = 0
  /** They crash before the next step. */
  /** Workers that a fault rule brings back later, once for each time. */
  private readonly returning: string[] = []
  private doomed: { readonly worker: string; readonly restartMs: number | null }[] = []
  private readonly arrival: 'seeded' | 'at-once' | 'alone'
  private readonly decider: Decider
  private ownRandom: Random | null = null
  private stepsMax: number
  private readonly timeMsMax: number
  private running = false
  /** Which of `decisions` are about fault rules: a run in which faults are said otherwise has no such questions. */
  readonly faultDraws: number[] = []
  /** Called when nothing is left to do but to wait: before time jumps to the next timer. */
  onIdle: ((untilMs: number) => void) | null = null
  /** Called between steps, when the program is quiet. If it throws, the run ends. */
  onQuiet: (() => void) | null = null

  /** `seed`: any integer; its low 32 bits count. */
  constructor(seed: number, options: SimWorldOptions = {}) {
    this.seed = seed
    this.decider = new Decider(options.schedule ?? new SeedSchedule(seed))
    this.observer = options.observer ?? null
    this.trace = new Trace(options.traceEventsMax, this.observer)
    this.arrival = options.arrival ?? 'seeded'
    this.overtaking = options.overtaking ?? false
    this.stepsMax = options.stepsMax ?? STEPS_MAX
    this.timeMsMax = options.timeMsMax ?? TIME_MS_MAX
    this.faults = options.faults === undefined ? null : new Faults(options.faults)
    this.time = new VirtualTime(this)
    this.clock = new WorkerTurns('', this.time).clock
  }

  /** The schedule's decisions so far: Note [Decisions] of `schedule.ts`. */
  get decisions(): readonly number[] {
    return this.decider.decisions
  }

  /** For the program around the workers: numbers from the seed, which no decision depends on. */
  get random(): Random {
    this.ownRandom ??= new Random(this.seed)
    return this.ownRandom
  }

  /** On their way to a worker that lives, now. */
  get framesInFlight(): number {
    return this.links.reduce((sum, link) => sum + link.framesInFlight, 0)
  }

  /** Virtual time, in ms from 0. */
  get nowMs(): number {
    return this.time.nowMs
  }

  /** The clock of one worker: shows the world's time; its timers and turns keep their order, and stop when the worker crashes. */
  clockOf(worker: string): Clock {
    return this.turnsOf(worker).clock
  }

  /** A new link between two workers; the first end is `a`'s. @throws SIM_CRASHED when one of them has crashed. */
  link(a: string, b: string): [Link, Link] {
    for (const worker of [a, b]) {
      if (this.crashed.has(worker)) {
        throw new PostgradError('SIM_CRASHED', {
          op: 'link',
          expected: 'two workers that live',
          got: `'${worker}', which has crashed`,
          remedy: 'Revive the worker first: it has a new clock and new links.',
          values: { worker, seed: this.seed },
        })
      }
    }
    return this.linkUnaware(a, b)
  }

  /** As `link`, for a worker that may not know yet that the other has crashed: it is notified of the link's end. */
  linkUnaware(a: string, b: string): [Link, Link] {
    this.observer?.touchAll()
    const pair = simLinkPair(a, b, this)
    this.links.push(...pair)
    for (const end of pair) if (this.crashed.has(end.worker)) this.crashEnd(end)
    if (this.faults === null) return pair
    const [of, to] = [this.lifeOf(a), this.lifeOf(b)]
    return [this.session(pair[0], of, to), this.session(pair[1], to, of)]
  }

  /** A link without fault rules and session: it loses nothing. For messages other than the workers' own. */
  bareLink(a: string, b: string): [Link, Link] {
    this.observer?.touchAll()
    const pair = simLinkPair(a, b, this, null, false)
    this.links.push(...pair)
    return pair
  }

  private session(carrier: SimLink, self: number, peer: number): Session {
    const { worker } = carrier
    const session = new Session(carrier, { clock: this.clockOf(worker), self, peer, name: `${worker}→${carrier.peer}` })
    this.sessions.push({ worker, session })
    return session
  }

  private lifeOf(worker: string): number {
    let life = this.lives.get(worker)
    if (life === undefined) {
      life = ++this.livesBegun
      this.lives.set(worker, life)
    }
    return life
  }

  /** `fn` runs in the step in which a worker crashes: for what is not linked with it and yet must know. */
  onCrash(fn: (worker: string) => void): void {
    this.crashListeners.push(fn)
  }

  /**
   * Ends a worker between two of its turns, as a killed thread ends: its timers and deferred turns never run, frames to it vanish, of its
   * frames in flight a drawn number still arrives, in order, and then its peers learn that the link has closed. Its code may still run
   * (a simulated worker cannot be stopped in the middle), but nobody notices. Idempotent.
   */
  crash(worker: string): void {
    if (this.crashed.has(worker)) return
    this.crashed.add(worker)
    this.observer?.touchAll()
    this.trace.add(this.steps, this.nowMs, 'crash', worker, '', 0, 0)
    this.turnsOf(worker).crash()
    for (const link of this.links) if (link.worker === worker) this.crashEnd(link)
    for (const listener of this.crashListeners) listener(worker)
    this.links = this.links.filter((link) => link.worker !== worker)
    this.sessions = this.sessions.filter((each) => each.worker !== worker)
  }

  private crashEnd(end: SimLink): void {
    end.crash(`worker '${end.worker}' crashed`)
  }

  /** Whether a worker has crashed and was not brought back. */
  isCrashed(worker: string): boolean {
    return this.crashed.has(worker)
  }

  /** Whether a fault rule has crashed this worker and will bring it back. */
  isReturning(worker: string): boolean {
    return this.returning.includes(worker)
  }

  /**
   * A crashed worker may begin another life under its name: `clockOf` and `link` give new ones from now on; those of the former life stay dead.
   * @throws SIM_ALIVE when it has not crashed
   */
  revive(worker: string): void {
    if (!this.crashed.delete(worker)) {
      throw new PostgradError('SIM_ALIVE', {
        op: 'revive',
        expected: 'a worker that has crashed',
        got: `'${worker}', which has not`,
        remedy: 'Crash it first.',
        values: { worker, seed: this.seed },
      })
    }
    this.observer?.touchAll()
    this.workers.delete(worker)
    this.lives.delete(worker)
    this.trace.add(this.steps, this.nowMs, 'restart', worker, '', 0, 0)
  }

  later(delayMs: number, fn: () => void): void {
    this.clock.setTimer(delayMs, fn)
  }

  doom(worker: string, restartMs: number | null): void {
    // They crash before the next step, so it is this one that does it.
    this.observer?.touchAll()
    this.doomed.push({ worker, restartMs })
  }

  private crashDoomed(): void {
    const { doomed } = this
    this.doomed = []
    for (const { worker, restartMs } of doomed) {
      if (!this.workers.has(worker)) throw noSuchWorker(worker, [...this.workers.keys()])
      this.crash(worker)
      if (restartMs === null) continue
      this.returning.push(worker)
      this.later(restartMs, () => {
        this.returning.splice(this.returning.indexOf(worker), 1)
        if (this.crashed.has(worker)) this.faults?.restart(worker)
      })
    }
  }

  /** For observers: code outside the workers uses something that belongs to one; `` for something of the program around them. */
  touch(worker: string): void {
    this.observer?.touch(worker)
  }

  /** A seed of its own for each name, for generators of random numbers inside the program; takes nothing from the world's chance. */
  seedFor(name: string): number {
    let seed = mix32(this.seed ^ 0x5eed)
    for (let i = 0; i < name.length; i++) seed = mix32(imul(seed, 31) ^ name.charCodeAt(i))
    return seed
  }

  /** Does one thing of those that are possible; if there is none, jumps to the next timer. Returns false when nothing is left to do. */
  step(): boolean {
    if (this.doomed.length > 0) this.crashDoomed()
    const { choices, time } = this
    if (choices.size === 0 && time.nextDueMs === undefined) return false
    this.checkLimit('steps', this.steps + 1, this.stepsMax)
    this.steps++
    if (choices.size === 0) {
      this.checkLimit('timeMs', time.nextDueMs!, this.timeMsMax)
      // Code that looks at the workers now is not part of the last step.
      this.observer?.jump()
      this.onIdle?.(time.nextDueMs!)
      time.jump()
    }
    const choice = choices.get(this.decider.next(choices))
    choices.renew(choice)
    this.observer?.begin(choice)
    choice.happen()
    return true
  }

  /**
   * Runs the world until `main` settles, and settles the same. Frames in flight then stay so: `run` again, or `drain`. One at a time.
   * @throws SIM_DEADLOCK when nothing can happen any more and `main` is pending; SIM_LIMIT; and what a receiver, a timer or a deferred
   * turn throws, which on real threads would be an uncaught exception.
   */
  run<T>(main: PromiseLike<T>): Promise<T> {
    const before = activeResources()
    return new Promise<T>((resolve, reject) => {
      let settle: (() => void) | null = null
      main.then(
        (value) => {
          settle = () => resolve(value)
        },
        (error) => {
          settle = () => reject(error)
        },
      )
      const end = () => {
        if (settle === null) reject(this.deadlock(before))
        else settle()
      }
      this.drive(() => settle !== null, end, reject)
    })
  }

  /**
   * Runs the world until nothing can happen without time passing: every frame is delivered, due timers have fired. Sets no clock forward, unless
   * there are fault rules: what they have lost is sent again in its time.
   */
  drain(): Promise<void> {
    return new Promise((resolve, reject) => this.drive(() => this.isDrained, resolve, reject))
  }

  private get isDrained(): boolean {
    return this.choices.size === 0 && this.doomed.length === 0 && !this.sessions.some(({ session }) => session.unacknowledged > 0)
  }

  hasArrived(channel: string, hasFrame: boolean): boolean {
    if (this.arrival === 'alone') return false
    this.observer?.look(channel)
    if (!hasFrame || this.arrival === 'at-once') return hasFrame
    return this.decider.draw('arrival', channel, 2) === 1
  }

  draw(kind: DrawKind, label: string, count: number, chance?: number): number {
    if (kind === 'fault') this.faultDraws.push(this.decider.decisions.length)
    return this.decider.draw(kind, label, count, chance)
  }

  /** Steps, with quiet between them, until `isDone` or nothing is left; then `end`. See Note [Quiet]. */
  private drive(isDone: () => boolean, end: () => void, fail: (error: unknown) => void): void {
    assert(!this.running, 'a world is run by one caller at a time')
    this.running = true
    // A user's own immediate may be pending when nothing else is: the world looks twice before it takes itself for idle.
    let idleTurns = 0
    const turn = () => {
      try {
        this.onQuiet?.()
        const isOver = isDone()
        if (!isOver) idleTurns = this.step() ? 0 : idleTurns + 1
        if (isOver || idleTurns === 2) {
          this.running = false
          end()
          return
        }
      } catch (error) {
        this.running = false
        fail(error)
        return
      }
      setImmediate(turn)
    }
    setImmediate(turn)
  }

  private turnsOf(worker: string): WorkerTurns {
    let turns = this.workers.get(worker)
    if (turns === undefined) {
      turns = new WorkerTurns(worker, this.time)
      this.workers.set(worker, turns)
    }
    return turns
  }

  /** `run` ends with SIM_LIMIT after so many more steps, whatever was said before. */
  limitSteps(steps: number): void {
    this.stepsMax = this.steps + steps
  }

  private checkLimit(what: 'steps' | 'timeMs', value: number, max: number): void {
    if (value <= max) return
    throw new PostgradError('SIM_LIMIT', {
      op: 'run',
      message: `the simulation has reached ${value} ${what === 'steps' ? 'steps' : 'ms of virtual time'} (limit ${max}), and its main promise is still pending`,
      remedy: `Something repeats without end (a timer that sets itself again, two workers that answer each other for ever): look at the end of the trace. A longer run needs a higher ${what}Max.`,
      values: { seed: this.seed, steps: this.steps, timeMs: this.nowMs },
    })
  }

  private deadlock(before: readonly string[]): PostgradError {
    const unopened = this.links.filter((link) => link.framesWaitForOpen).map((link) => `${link.peer}→${link.worker}`)
    const real = added(before, activeResources())
    const also = [
      unopened.length > 0 && ` Frames wait on links that were never opened: ${unopened.join(', ')}.`,
      real.length > 0 && ` Since the run began this process has started: ${real.join(', ')}.`,
    ]
    return new PostgradError('SIM_DEADLOCK', {
      op: 'run',
      message:
        'the main promise is pending, and nothing can happen any more: no frame is in flight, and no timer is set on a simulated clock.' +
        also.filter(Boolean).join(''),
      remedy:
        "Either the program waits for a message that nobody sends, or it waits for something real: real timers and I/O do not run in a simulation. Wait on the worker's clock (clock.setTimer, clock.defer) instead of setTimeout, and read files or call the network before the run.",
      values: { seed: this.seed, steps: this.steps, timeMs: this.nowMs, unopened, real },
    })
  }
}

function noSuchWorker(worker: string, known: readonly string[]): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: `one of the workers ${known.join(', ')}`,
    got: `a rule that crashes '${worker}'`,
    remedy: 'Name a worker that is there when the rule applies.',
    values: { worker },
  })
}

/** The kinds of real things that keep this process busy; what the run added hints at what the program waits for. */
function activeResources(): readonly string[] {
  return process.getActiveResourcesInfo?.() ?? []
}

function added(before: readonly string[], after: readonly string[]): string[] {
  const rest = [...before]
  return after.filter((kind) => {
    const at = rest.indexOf(kind)
    if (at >= 0) rest.splice(at, 1)
    return at < 0 && kind !== 'Immediate'
  })
}
