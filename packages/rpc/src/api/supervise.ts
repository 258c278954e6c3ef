/**
 * Supervised actors: the actor package's supervisor with actors on any workers as its children. The worker that calls `supervise` makes them, watches them
 * and makes them again, there or elsewhere. Users hold an `ActorHandle`, which leads to the current one. Rules ACS-1 to ACS-14 in SPEC.md. The
 * counterpart is Erlang's `supervisor`; PyTorch has none.
 */
import { type ChildSpec, type Exit, type Restart, type RestartOptions, Supervisor } from '@postgrad/actor/internal'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime, plainText } from '@postgrad/base/internal'
import { currentGenerator, Generator } from '@postgrad/tensor'
import type { Sendable } from '@postgrad/wire'
import { ACTOR_NAMES, keyOfChild } from '../actors/actor-register-host.js'
import type { AnyClass } from '../common/function-registry.js'
import type { Target } from '../common/worker-info.js'
import { type RRef, UserRRef } from '../references/rref.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { ActorHandle, type Gone } from './actor-handle.js'
import { currentRuntime } from './api.js'
import { Incarnation } from './incarnation.js'
import { checkChildren, checkSpec } from './supervise-checks.js'

/**
 * Where an actor runs: one worker, a list of workers, or a function that returns the worker. From a list the first living worker is taken; each start
 * begins to look one place later. The function receives the number of the start, from 0.
 */
export type Placement = Target | readonly Target[] | ((start: number) => Target)

/** An actor of `supervise`: its class and arguments, where it runs, and when it is made again. */
export interface ActorSpec<N extends string = string, C extends AnyClass = AnyClass> {
  /** The actor's name, unique among the children of its supervision. */
  readonly name: N
  /** The actor's class, which must be exposed. */
  readonly actor: C
  /** The constructor's arguments; default none. They are sent at each start, so do not dispose of a reference among them before the supervision ends. */
  readonly args?: readonly unknown[]
  /** Where the actor runs. */
  readonly worker: Placement
  /** When the actor is made again after its end: always ('permanent', the default), only after a crash ('transient'), or never ('temporary'). */
  readonly restart?: Restart
  /** How long the actor may take to stop, in ms; default 5000. After that it is killed. 0 kills it at once. */
  readonly shutdownMs?: number
}

/** Options of `supervise`: the actors, and when restarts happen. */
export interface SuperviseOptions<S extends readonly ActorSpec[] = readonly ActorSpec[]> extends RestartOptions {
  /** The actors, in the order in which they start. */
  readonly children: S
  /**
   * Makes this supervision a child of another one, under `name`; default none. If the child gives up, it counts as crashed: the parent's `strategy` and
   * `intensity` decide whether the parent starts the child again or gives up as well. Both run on the same worker.
   */
  readonly parent?: { readonly supervision: Supervision; readonly name: string }
  /** How long a start waits for a dead worker, in ms; default 5000. The cluster may be starting that worker again. */
  readonly workerWaitMs?: number
}

/** With its constructor's arguments. */
type WithArgs<A extends AnyClass> =
  [] extends ConstructorParameters<A>
    ? { readonly args?: Readonly<Sendable<ConstructorParameters<A>>> }
    : { readonly args: Readonly<Sendable<ConstructorParameters<A>>> }
/** The children, each checked against its own class. */
type Checked<S extends readonly ActorSpec[]> = { readonly [I in keyof S]: S[I] & WithArgs<S[I]['actor']> }
type InstanceNamed<S extends readonly ActorSpec[], N> = InstanceType<Extract<S[number], { readonly name: N }>['actor']>

const WORKER_WAIT_MS = 5000
/** A start checks this often whether its worker is back. */
const WORKER_LOOK_MS = 10
/**
 * Makes actors and keeps them running. Resolves with the supervision when all actors have started. If an actor crashes or its worker dies, the supervision
 * makes the actor again. `strategy` says which other actors are made again with it: none ('one-for-one', the default), all ('one-for-all'), or the later
 * ones ('rest-for-one').
 *
 * Up to `intensity` (1) restarts are allowed within `periodMs` (5000). One more ends the supervision and all its actors, with SUPERVISOR_GAVE_UP
 * (`supervision.exited`). The supervision runs on the worker that calls `supervise`, and its actors end with that worker. PyTorch has no counterpart.
 * @throws SUPERVISOR_START_FAILED if an actor fails to start; the actors that had started are stopped
 * @throws CHILD_NAME_TAKEN if two actors have the same name
 * @throws INVALID_ARGUMENT if an option or an actor's description is wrong
 * @throws TIMEOUT_INVALID if a time is not a number ≥ 0
 * @example
 * await using supervision = await supervise({
 *   strategy: 'one-for-all',
 *   children: [
 *     { name: 'policy', actor: Linear, args: [2, 4], worker: 'worker0' },
 *     { name: 'value', actor: Linear, args: [2, 1], worker: ['worker0', 'worker1'] }, // the first that lives
 *   ],
 * })
 * const y = await supervision.actor('value').call('forward', [x])
 * y.shape // [2, 1]
 */
export async function supervise<const S extends readonly ActorSpec[]>(
  options: Omit<SuperviseOptions, 'children'> & { readonly children: Checked<S> },
): Promise<Supervision<S>> {
  const supervision = new Supervision<S>(currentRuntime(), options as SuperviseOptions<S>)
  await supervision.start()
  return supervision
}

/**
 * A group of supervised actors; `supervise` returns it. `actor(name)` returns the handle of an actor, `stop()` ends all actors. With `await using` they end
 * with the block.
 * @example
 * await using supervision = await supervise({ children: [{ name: 'policy', actor: Linear, args: [2, 4], worker: 'worker1' }] })
 * await supervision.restart('policy')
 * await supervision.add({ name: 'value', actor: Linear, args: [2, 1], worker: 'worker0' })
 * supervision.names // ['policy', 'value']
 */
export class Supervision<S extends readonly ActorSpec[] = readonly ActorSpec[]> {
  private readonly worker: WorkerRuntime
  private readonly options: SuperviseOptions<S>
  /** With a parent: the one that runs now. */
  private supervisor: Supervisor
  private readonly handles = new Map<string, ActorHandle<unknown>>()
  private readonly workerWaitMs: number
  /** On its worker. */
  private readonly number: number
  private readonly random: () => number
  private readonly ended: Promise<Exit>
  private settle!: (exit: Exit) => void
  private isEndWatched = false
  private isStopping = false

  /** @internal */
  constructor(worker: WorkerRuntime, options: SuperviseOptions<S>) {
    checkChildren(options)
    this.worker = worker
    this.options = options
    this.number = running(worker).next++
    this.workerWaitMs = checkTime('workerWaitMs', options.workerWaitMs ?? WORKER_WAIT_MS, '0 for no wait')
    checkParent(worker, options.parent)
    // A copy: what the program draws does not depend on what crashes.
    const generator = new Generator()
    generator.restore(currentGenerator().state())
    this.random = () => generator.uniform()
    this.ended = new Promise((resolve) => {
      this.settle = resolve
    })
    this.supervisor = this.make()
    for (const spec of options.children) this.keep(spec.name, this.handle(spec))
    void this.ended.then((exit) => this.onEnd(exit))
  }

  private make(): Supervisor {
    const { children, workerWaitMs: _, parent: __, ...restarts } = this.options
    return new Supervisor({
      ...restarts,
      clock: this.worker.clock,
      children: children.map((spec) => this.childSpec(spec, () => this.handles.get(spec.name) ?? this.keep(spec.name, this.handle(spec)))),
      random: this.random,
      onBadStop: (name, { reason }) => {
        // A worker's death is reported elsewhere.
        if (!isPostgradError(reason, 'WORKER_DIED'))
          this.worker.letter('unwatched-crash', `supervise: '${name}', asked to end: ${textOf(reason)}`)
      },
    })
  }

  /** @internal */
  async start(): Promise<void> {
    running(this.worker).all.add(this)
    await this.worker.run(() => (this.options.parent === undefined ? this.startAlone() : this.startUnder(this.options.parent)))
  }

  private startAlone(): Promise<void> {
    void this.supervisor.exited.then(this.settle)
    return this.supervisor.start()
  }

  /** Its parent starts it, each time with a supervisor of its own. */
  private async startUnder({ supervision, name }: NonNullable<SuperviseOptions['parent']>): Promise<void> {
    let isFirst = true
    void supervision.ended.then(this.settle)
    try {
      await supervision.supervisor.add({
        name,
        shutdownMs: Number.POSITIVE_INFINITY,
        start: async () => {
          if (!isFirst) this.beginAnew()
          isFirst = false
          await this.supervisor.start()
          return this.supervisor
        },
        onGone: (exit) => this.settle(exit ?? { normal: true }),
      })
    } catch (reason) {
      this.settle({ normal: false, reason })
      throw reason
    }
  }

  /** With the children that it was made with. */
  private beginAnew(): void {
    const kept = new Set(this.options.children.map(({ name }) => name))
    for (const [name, handle] of [...this.handles]) {
      if (kept.has(name)) continue
      const why = 'its supervision was started again, and it was added by hand'
      handle.over({ why, remedy: 'Use add() to have it again.', cause: undefined, isForGood: true })
      this.drop(name)
    }
    this.supervisor = this.make()
  }

  private onEnd({ normal, reason }: Exit): void {
    this.isStopping = true
    running(this.worker).all.delete(this)
    for (const name of this.handles.keys()) ACTOR_NAMES.of(this.worker).delete(this.keyOf(name))
    const why = normal ? 'its supervision was stopped' : `its supervision has ended: ${textOf(reason)}`
    for (const handle of this.handles.values()) handle.over({ why, remedy: 'Call supervise() again.', cause: reason, isForGood: true })
    // With a parent, the parent or the caller of `supervise` knows of the end.
    const isKnown = this.isEndWatched || this.options.parent !== undefined || isPostgradError(reason, 'SUPERVISOR_START_FAILED')
    if (!normal && !isKnown) this.worker.letter('unwatched-crash', `supervise: ${textOf(reason)}`)
  }

  /**
   * Resolves when all actors have ended: after `stop` with `normal: true`, else with SUPERVISOR_GAVE_UP as the reason. It never rejects. If no code has read
   * `exited`, giving up becomes a dead letter. With a parent, `exited` resolves when the parent will not start this supervision again.
   */
  get exited(): Promise<Exit> {
    this.isEndWatched = true
    return this.ended
  }

  /** The number of restarts within the last `periodMs`. Restarts by `restart` do not count. */
  get restarts(): number {
    return this.supervisor.restarts
  }

  // --- changes by hand: they touch that one actor, and do not count as restarts

  /**
   * Makes one more actor, after the others, and resolves with its handle. If the actor fails to start, `add` rejects with its error, and the supervision
   * does not keep the actor.
   * @throws CHILD_NAME_TAKEN if an actor has that name
   * @throws SUPERVISOR_NOT_RUNNING if the supervision has ended
   * @throws INVALID_ARGUMENT if the description is wrong
   */
  async add<N extends string, C extends AnyClass>(spec: ActorSpec<N, C> & WithArgs<C>): Promise<ActorHandle<InstanceType<C>>> {
    checkSpec('add', spec)
    const handle = this.handle(spec)
    let isGone = false
    const forget = () => {
      isGone = true
      if (this.handles.get(spec.name) === handle) this.drop(spec.name)
    }
    await this.worker.run(() => this.supervisor.add(this.childSpec(spec, () => handle, forget)))
    if (!isGone) this.keep(spec.name, handle)
    return handle as ActorHandle<InstanceType<C>>
  }

  /**
   * Stops one actor and forgets it. Another actor may then have its name.
   * @throws UNKNOWN_CHILD if no actor has that name
   * @throws CHILD_STARTING if the actor's own start asks for this
   * @throws SUPERVISOR_NOT_RUNNING if the supervision has ended
   */
  async remove(name: string): Promise<void> {
    await this.worker.run(() => this.supervisor.remove(name))
    this.drop(name)
  }

  /**
   * Stops one actor, if it runs, and makes it again. Resolves when the actor has started. If the start fails, `restart` rejects with its error, and the
   * actor stays down.
   * @throws UNKNOWN_CHILD if no actor has that name
   * @throws CHILD_STARTING if the actor's own start asks for this
   * @throws SUPERVISOR_NOT_RUNNING if the supervision has ended
   */
  async restart(name: string): Promise<void> {
    await this.worker.run(() => this.supervisor.restart(name))
  }

  /** The names of the actors, in the order of their start. Temporary actors that have ended are not among them. */
  get names(): readonly string[] {
    return this.supervisor.names
  }

  /**
   * Returns the handle of the actor with this name. The handle always leads to the instance that runs.
   * @throws UNKNOWN_CHILD if no actor has that name
   */
  actor<N extends S[number]['name']>(name: N): ActorHandle<InstanceNamed<S, N>> {
    const handle = this.handles.get(name)
    if (handle !== undefined) return handle as ActorHandle<InstanceNamed<S, N>>
    throw new PostgradError('UNKNOWN_CHILD', {
      op: 'actor',
      expected: `one of ${[...this.handles.keys()].map((known) => `'${known}'`).join(', ')}`,
      got: `'${name}'`,
      remedy: 'Use the name that was given to supervise().',
      values: { child: name },
    })
  }

  /** Stops the actors in reverse order, one after the other. Resolves when all have ended. */
  async stop(): Promise<void> {
    this.isStopping = true
    const { parent } = this.options
    // The parent would start this again. If the parent has ended or is about to, it ends this one.
    if (parent?.supervision.names.includes(parent.name)) await parent.supervision.remove(parent.name).catch(() => {})
    else await this.worker.run(() => this.supervisor.stop())
    await this.ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** @internal */
  isOn(worker: WorkerRuntime): boolean {
    return worker === this.worker
  }

  /** Its worker ends. @internal */
  kill(): void {
    this.isStopping = true
    this.worker.run(() => this.supervisor.kill())
  }

  private handle({ name, actor }: ActorSpec): ActorHandle<unknown> {
    return new ActorHandle(name, actor.name, { home: this.worker.info, key: this.keyOf(name) })
  }

  /** Others find it by its name, too. */
  private keep(name: string, handle: ActorHandle<unknown>): ActorHandle<unknown> {
    this.handles.set(name, handle)
    ACTOR_NAMES.of(this.worker).set(this.keyOf(name), handle)
    return handle
  }

  private drop(name: string): void {
    this.handles.delete(name)
    ACTOR_NAMES.of(this.worker).delete(this.keyOf(name))
  }

  private keyOf(name: string): string {
    return keyOfChild(this.number, name)
  }

  /**
   * `handleOf` gives the handle that users hold, whichever supervisor makes the actor. `forget` runs when the supervisor forgets an actor added by hand: there may be any number of those.
   */
  private childSpec(spec: ActorSpec, handleOf: () => ActorHandle<unknown>, forget: () => void = () => {}): ChildSpec {
    const { name, restart, shutdownMs } = spec
    let starts = 0
    return {
      name,
      ...(restart === undefined ? {} : { restart }),
      ...(shutdownMs === undefined ? {} : { shutdownMs }),
      start: () => this.worker.run(() => this.begin(spec, handleOf(), starts++)),
      onGone: (exit) => {
        handleOf().over(goneBy(name, restart, exit))
        if (restart === 'temporary' || exit === null) forget()
      },
    }
  }

  /** Makes an actor, and waits until it has been made. */
  private async begin(
    { name, actor, args = [], worker: place }: ActorSpec,
    handle: ActorHandle<unknown>,
    start: number,
  ): Promise<Incarnation> {
    const { worker } = this
    const to = await this.place(place, start)
    const rref = worker.remote(to, actor, args, { isWatched: true })
    try {
      await rref.created()
    } catch (error) {
      rref.dispose()
      throw error
    }
    const watch = worker.watches.watchActor(rref)
    const incarnation = new Incarnation(worker, rref, watch)
    handle.begin(rref)
    void incarnation.exited.then(({ reason }) => {
      handle.end()
      worker.watches.unwatch(watch)
      retire(worker, rref, staleError(name, actor.name, reason))
    })
    return incarnation
  }

  /** The first living worker, from the one whose turn it is. If none lives, waits: one may be about to be started again. */
  private async place(place: Placement, start: number): Promise<Target> {
    const { clock } = this.worker
    const untilMs = clock.now() + this.workerWaitMs
    for (;;) {
      const candidates = typeof place === 'function' ? [place(start)] : isList(place) ? place : [place]
      for (let i = 0; i < candidates.length; i++) {
        const target = candidates[(start + i) % candidates.length] as Target
        if (this.lives(target)) return target
      }
      const first = candidates[start % candidates.length]
      if (first === undefined || clock.now() >= untilMs || this.isStopping) return first as Target
      await new Promise<void>((resolve) => clock.setTimer(WORKER_LOOK_MS, resolve))
    }
  }

  private lives(target: Target): boolean {
    try {
      return this.worker.deathOf(this.worker.resolve(target).id) === null
    } catch {
      // It may be on its way, or had died before this worker began.
      return false
    }
  }
}

/** @throws INVALID_ARGUMENT */
function checkParent(worker: WorkerRuntime, parent: SuperviseOptions['parent']): void {
  if (parent === undefined) return
  if (parent?.supervision instanceof Supervision && typeof parent.name === 'string' && parent.supervision.isOn(worker)) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'supervise',
    expected: 'parent: { supervision, name }, with a supervision of this worker',
    got: parent?.supervision instanceof Supervision ? 'one of another worker, or no name' : typeof parent,
    remedy: 'Call both on the same worker; leave parent out for a supervision without one.',
  })
}

function goneBy(name: string, restart: Restart = 'permanent', exit: Exit | null): Gone {
  if (exit === null) return { why: 'it was taken away', remedy: 'Use add() to have it again.', cause: undefined, isForGood: true }
  const { normal, reason } = exit
  const how = normal ? 'it has ended normally' : `it has ended: ${textOf(reason)}`
  const why =
    restart === 'permanent' ? `its restart by hand has failed: ${textOf(reason)}` : `${how}; '${restart}' as it is, it is not made again`
  const remedy = restart === 'temporary' ? 'Use add() to have it again.' : `Use restart('${name}') to have it again.`
  return { why, remedy, cause: reason, isForGood: false }
}

/** The supervisions of a worker, which end with it. */
const SUPERVISIONS = Symbol('postgrad.supervisions')

function running(worker: WorkerRuntime): { readonly all: Set<Supervision>; next: number } {
  return worker.slot(SUPERVISIONS, () => {
    const all = new Set<Supervision>()
    worker.onClose(() => {
      for (const supervision of [...all]) supervision.kill()
    })
    return { all, next: 0 }
  })
}

/** Disposes of a reference. A later use of it fails with `error`. */
function retire(worker: WorkerRuntime, rref: RRef, error: PostgradError): void {
  if (!(rref instanceof UserRRef)) return
  worker.rrefs.failUser(rref, error)
  rref.failure = error
}

function staleError(name: string, what: string, cause: unknown): PostgradError {
  return new PostgradError('ACTOR_STOPPED', {
    op: `supervised actor '${name}'`,
    message: `this reference is to an earlier ${what}, which has ended${cause instanceof Error ? `: ${cause.message}` : ''}`,
    remedy: `Use supervision.actor('${name}'), which always leads to the actor that runs now.`,
    values: { actor: what, child: name, stale: true },
    ...(cause === null || cause === undefined ? {} : { cause }),
  })
}

function isList(place: Placement): place is readonly Target[] {
  return Array.isArray(place)
}

function textOf(reason: unknown): string {
  return plainText(reason)
}
