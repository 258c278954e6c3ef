/**
 * The moment of a save, on all workers: from the call on, each keeps a capture of its state (Note [The state of the call] in `capture.ts`), until the save has written it or ended.
 */
import { noGrad } from '@postgrad/autograd'
import { type CallOptions, call, getWorkerInfos, type RRef, stream, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { add, begin, capture, end, take } from './capture.js'
import type { Found, Reference } from './entry.js'
import { askOwners, byOwner, type CheckpointParts, rootsOf } from './parts.js'

type Limits = Pick<CallOptions, 'timeoutMs' | 'signal'>
type Asked = Parameters<typeof askOwners>[0][number]

/** How long a save waits at most until other workers know of its end. */
export const RELEASE_MS = 1_000

export class Moment {
  readonly token = currentRuntime().ids.take()
  /** Writers of files, by name. */
  readonly workers = new Map<string, WorkerInfo>()
  private readonly self = currentRuntime().info
  private readonly limits: Limits
  /** One for each other worker, which ends its capture. */
  private readonly holds: { return(): Promise<unknown> }[]
  private readonly made: RRef[] = []
  private readonly first: Asked[]
  private readonly later: readonly Promise<readonly Reference[]>[]

  /** Takes the state of what is known at once, and asks the owners of the rest. @throws INVALID_ARGUMENT, CHECKPOINT_UNSUPPORTED, and as `stateDict` of what is here */
  constructor(parts: CheckpointParts, workers: readonly WorkerInfo[], limits: Limits) {
    this.limits = { timeoutMs: 0, ...limits }
    const { here, there, later } = rootsOf(parts)
    this.later = later
    for (const info of [this.self, ...workers]) this.workers.set(info.name, info)
    begin(this.token)
    try {
      for (const { key, kind, value } of here) take(this.token, key, kind, value)
    } catch (error) {
      end(this.token)
      throw error
    }
    // All: a module that some worker owns may have modules of any other in it.
    this.holds = getWorkerInfos()
      .filter(({ id }) => id !== this.self.id)
      .map((info) => this.hold(info))
    this.first = this.asked(there)
  }

  /** Waits until every worker has the state of what it owns. @throws as `add` of the owners, CHECKPOINT_FAILED */
  async complete(): Promise<void> {
    const late = this.asked((await Promise.all(this.later)).flat())
    const entries = await askOwners([...this.first, ...late], (owner, references) => this.ask(owner, references), this.made, 'save')
    for (const { owner } of entries) this.workers.set(owner.name, owner)
  }

  /** Idempotent. Resolves when the other workers know of it, or after RELEASE_MS: a worker may be computing. */
  async end(): Promise<void> {
    end(this.token)
    for (const ref of this.made.splice(0)) ref.dispose()
    // The save has met a failure of `later`, unless it had ended before.
    await soon(Promise.allSettled([...this.later, ...this.holds.splice(0).map((hold) => hold.return())]))
  }

  private hold(info: WorkerInfo): { return(): Promise<unknown> } {
    const held = noGrad(() => stream(info, capture.hold, [this.token], { timeoutMs: 0 }))
    // Where a worker cannot be reached, what is asked of it next says so, if it has a part in this at all.
    held.next().catch(() => {})
    return held
  }

  private asked(references: readonly Reference[]): Asked[] {
    return byOwner(references).map(([owner, list]) => {
      const found = this.ask(owner, list)
      // Read by `complete`, which comes later.
      found.then(undefined, () => {})
      return { owner, references: list, found }
    })
  }

  private ask(owner: WorkerInfo, references: readonly Reference[]): PromiseLike<readonly Found[]> {
    if (owner.id === this.self.id) return add(this.token, references)
    return noGrad(() => call(owner, capture.add, [this.token, references as Reference[]], this.limits))
  }
}

/** The promise, or RELEASE_MS, whichever is sooner. */
export function soon(promise: Promise<unknown>): Promise<void> {
  const { clock } = currentRuntime()
  return new Promise<void>((resolve) => {
    const timer = clock.setTimer(RELEASE_MS, resolve)
    void promise
      .catch(() => {})
      .then(() => resolve())
      .then(() => timer.cancel())
  })
}
