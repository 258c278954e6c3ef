/**
 * The contexts of one worker: makes them, joins those in messages, releases them everywhere, remembers released ones. PyTorch:
 * `DistAutogradContainer`, a singleton; here each WorkerRuntime has one.
 */
import { PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { globalId, type IdCounter, LOCAL_ID_MAX, Tombstones } from '@postgrad/base/internal'
import { type BackwardMode, type BackwardRunner, contextReleased, DistAutogradContext } from './dist-autograd-context.js'

/** So many ids of released contexts of other workers are kept at least. A message that is later makes a context which lives until its maker dies. */
export const TOMBSTONES_MIN = 4096

/** A message of a context in this mode says nothing of it, one of the other says so (`lineage-field.ts`). */
export const DEFAULT_MODE: BackwardMode = 'smart'

/** What the container needs of its worker. */
export interface ContextHome {
  readonly workerId: WorkerId
  readonly ids: IdCounter
  readonly runner: BackwardRunner
  deathOf(worker: WorkerId): PostgradError | null
  /** The context is leaving: fail its passes with `error` (null: CONTEXT_RELEASED), notify the workers that it knows, except `except`. */
  onRelease(context: DistAutogradContext, error: PostgradError | null, except: WorkerId | null): void
}

export class DistAutogradContainer {
  /** Of the contexts that are made here without one. */
  defaultMode: BackwardMode = DEFAULT_MODE
  private readonly home: ContextHome
  private readonly contexts = new Map<bigint, DistAutogradContext>()
  private readonly tombstones = new Tombstones(TOMBSTONES_MIN)
  /** The newest context made here. */
  private newest = -1n
  /** Messages of one context come in runs, and looking up a bigint costs 50 ns. */
  private last: DistAutogradContext | null = null

  constructor(home: ContextHome) {
    this.home = home
  }

  get size(): number {
    return this.contexts.size
  }

  /** The largest id that this worker can give. PyTorch: `_get_max_id`. */
  get maxId(): bigint {
    return globalId(this.home.workerId, LOCAL_ID_MAX)
  }

  values(): IterableIterator<DistAutogradContext> {
    return this.contexts.values()
  }

  newContext(mode: BackwardMode = this.defaultMode): DistAutogradContext {
    this.newest = this.home.ids.take()
    return this.add(this.newest, mode)
  }

  find(contextId: bigint): DistAutogradContext | undefined {
    if (this.last !== null && this.last.contextId === contextId) return this.last
    const context = this.contexts.get(contextId)
    if (context !== undefined) this.last = context
    return context
  }

  /** @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED */
  retrieve(contextId: bigint, op = 'retrieve'): DistAutogradContext {
    const context = typeof contextId === 'bigint' ? this.find(contextId) : undefined
    if (context !== undefined) return context
    throw this.absent(contextId, op)
  }

  /** Why the context is missing. */
  absent(contextId: bigint, op: string): PostgradError {
    if (typeof contextId === 'bigint' && this.isReleased(contextId)) return contextReleased(contextId, op)
    return new PostgradError('CONTEXT_NOT_FOUND', {
      op,
      message:
        typeof contextId === 'bigint'
          ? `could not find autograd context with id ${contextId}`
          : `expected a context or its id (a bigint), got ${contextId === null ? 'null' : typeof contextId}`,
      remedy: 'Pass the ctx of distAutograd.context(async (ctx) => …), in which the forward pass ran, or ctx.id.',
      values: { contextId: String(contextId) },
    })
  }

  /**
   * The context that a message names; a worker joins it with its first message.
   * @throws CONTEXT_RELEASED (also when the context's maker has died: nobody is left to release it), CONTEXT_NOT_FOUND (an id of this
   * worker that it never gave)
   */
  getOrCreate(contextId: bigint, mode: BackwardMode, op: string): DistAutogradContext {
    const context = this.join(contextId, mode)
    if (context !== null) return context
    if (this.isReleased(contextId) || this.home.deathOf(workerOf(contextId)) !== null) throw contextReleased(contextId, op)
    throw this.absent(contextId, op)
  }

  /** The same; null where that throws. */
  join(contextId: bigint, mode: BackwardMode): DistAutogradContext | null {
    const context = this.find(contextId)
    if (context !== undefined) return context
    const maker = workerOf(contextId)
    // Only the maker itself makes ids of its own.
    if (maker === this.home.workerId || this.isReleased(contextId) || this.home.deathOf(maker) !== null) return null
    return this.add(contextId, mode)
  }

  /**
   * Forgets the context here and notifies the workers that it knows, except `except`, which did so first. Its passes fail with `error`,
   * by default CONTEXT_RELEASED (made only when it is needed: an error's stack costs microseconds).
   * @throws CONTEXT_NOT_FOUND, CONTEXT_RELEASED
   */
  release(contextId: bigint, error: PostgradError | null = null, except: WorkerId | null = null): void {
    const context = this.retrieve(contextId, 'release')
    this.contexts.delete(contextId)
    if (this.last === context) this.last = null
    if (workerOf(contextId) !== this.home.workerId) this.tombstones.add(contextId)
    context.released = true
    this.home.onRelease(context, error, except)
    context.clear()
  }

  private add(contextId: bigint, mode: BackwardMode): DistAutogradContext {
    const context = new DistAutogradContext(contextId, mode, this.home.workerId, this.home.runner)
    this.contexts.set(contextId, context)
    this.last = context
    return context
  }

  /** The maker needs no tombstones: its counter never gives an id twice, so what is not newer than its newest and not there is released. */
  private isReleased(contextId: bigint): boolean {
    if (workerOf(contextId) === this.home.workerId) return contextId <= this.newest
    return this.tombstones.has(contextId)
  }
}
