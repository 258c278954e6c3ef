/**
 * Typed slots, by which the parts of a worker (its references, its actors, those of other packages) are found. A part is made when it is first asked for,
 * and installs itself then, by the methods that `worker-core.ts` has for all parts. The core knows none of them.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { WorkerCore } from './worker-core.js'

/** A place for one object per worker: a plugin's state. `make` makes the object when the worker is first asked for it. */
export class WorkerSlot<T> {
  private readonly key: symbol
  private readonly make: (worker: WorkerCore) => T

  constructor(name: string, make: (worker: WorkerCore) => T) {
    this.key = Symbol(`postgrad.${name}`)
    this.make = make
  }

  /** Returns the object of `worker`, which is made at the first call. */
  of(worker: WorkerCore): T {
    return worker.slot(this.key, () => this.make(worker))
  }

  /**
   * The object of the worker that runs this code.
   * @throws RPC_NOT_INITIALIZED if no worker runs this code
   */
  get here(): T {
    return this.of(currentCore())
  }
}

/** The worker that runs this code. @throws RPC_NOT_INITIALIZED outside of any */
export function currentCore(): WorkerCore {
  const { worker } = currentScope()
  if (worker === null) {
    throw new PostgradError('RPC_NOT_INITIALIZED', {
      op: 'currentWorker',
      message: 'no worker is current here',
      remedy:
        "Run this inside cluster.on(name).run(fn), cluster.runHere(fn), member.run(fn) after init, a simulation's sim.on(name).run(fn), or a function that a worker serves. " +
        'To end a process of init from outside of run: member.shutdown() or member.leave(); all workers of launch: cluster.close().',
    })
  }
  return worker as WorkerCore
}
