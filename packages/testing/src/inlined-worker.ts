/**
 * A worker of the inlined program: `call` runs the function at once, where it is made, in the scope of the worker that it names. Arguments
 * and results are copied as on the wire, and every tensor that crosses leaves an identity node behind, one per message as the receive
 * function would be, so that gradients are summed in the same groups as in the distributed run. No message, no order, no other worker.
 */
import { gradientEdge, Node, setHistory } from '@postgrad/autograd/internal'
import { currentScope, inScope, Scope } from '@postgrad/base'
import { type AnyClass, type AnyFunction, type OwnerRRef, RRef, type RRefOptions, type Target, type WorkerInfo } from '@postgrad/rpc'
import { Future, type Peer, type WorkerOptions, WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { Codec, MessageType, type ValueExtension } from '@postgrad/wire/internal'

/** What one message with tensors is in the inlined graph. */
class CallBoundary extends Node {
  get name(): string {
    return 'CallBoundary'
  }

  apply(grads: readonly (Tensor | null)[]): readonly (Tensor | null)[] {
    return grads
  }
}

/** References travel as places in this list: they are objects of one thread. */
interface InlinedEnv {
  readonly references: RRef[]
}

const references: ValueExtension = {
  tag: 0x20,
  matches: (value) => value instanceof RRef,
  encode: (value, env) => (env as InlinedEnv).references.push(value as RRef) - 1,
  decode: (at, env) => (env as InlinedEnv).references[at as number],
}

export class InlinedWorker extends WorkerRuntime {
  private readonly cluster: Map<string, InlinedWorker>
  private readonly crossing = new Codec({ extensions: [references] })

  constructor(options: WorkerOptions, cluster: Map<string, InlinedWorker>) {
    super(options)
    this.cluster = cluster
    cluster.set(options.name, this)
  }

  override resolve(target: Target): WorkerInfo {
    return this.find(target).info
  }

  override workers(): WorkerInfo[] {
    return [...this.cluster.values()].map((worker) => worker.info)
  }

  /** One container for all of them: contexts are the program's, whatever worker it is at. */
  override slot<T>(key: symbol, make: () => T): T {
    const first = this.cluster.values().next().value as InlinedWorker
    return first === this ? super.slot(key, make) : first.slot(key, make)
  }

  override call(to: Target, fn: AnyFunction, args: readonly unknown[], _options?: RRefOptions): Future<unknown> {
    return settle(async () => {
      const callee = this.find(to)
      const name = this.registry.nameOf(fn)
      return this.cross(await callee.serve(name, this.cross(args)))
    })
  }

  protected override callByName(peer: Peer, name: string, args: readonly unknown[]): Future<unknown> {
    return settle(async () => this.cross(await this.find(peer.info).serve(name, this.cross(args))))
  }

  override remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[]): RRef {
    const callee = this.find(to)
    const name = this.registry.nameOf(fn)
    const owner = callee.rrefs.createOwner()
    const passed = this.cross(args)
    settle(() => callee.serve(name, passed)).then(
      (value) => owner.setValue(value),
      (error) => owner.setError(error),
    )
    return new InlinedRRef(owner, callee)
  }

  /** The value as it arrives at another worker. */
  cross<T>(value: T): T {
    const env: InlinedEnv = { references: [] }
    const out = this.crossing.prepare(MessageType.RESULT, [value], env)
    const recorded = currentScope().context !== null
    const sources = out.tensors.filter((tensor) => recorded && tensor.requiresGrad)
    const boundary = new CallBoundary(
      sources.map(gradientEdge),
      sources.map(({ shape, dtype }) => ({ shape, dtype })),
    )
    const sent = out.tensors.map((tensor) => sources.indexOf(tensor))
    const message = this.crossing.decode(this.crossing.encode(out, env), env)
    message.tensors.forEach((tensor, i) => {
      if (sent[i]! >= 0) setHistory(tensor, boundary, sent[i]!)
    })
    return message.body[0] as T
  }

  private find(target: Target): InlinedWorker {
    for (const worker of this.cluster.values()) {
      if (target === worker.info.name || target === worker.info.id || (typeof target === 'object' && target.name === worker.info.name))
        return worker
    }
    super.resolve(target)
    throw new Error('unreachable: an unknown worker was resolved')
  }

  private serve(name: string, args: readonly unknown[]): Promise<unknown> {
    const { target, isClass } = this.registry.lookup(name, this.info.name)
    const scope = new Scope({ context: currentScope().context }, this.scope)
    return inScope(scope, async () => (isClass ? new (target as AnyClass)(...args) : await (target as AnyFunction)(...args)))
  }
}

/** A reference that any worker of the inlined program may hold. */
export class InlinedRRef<T = unknown> extends RRef<T> {
  private readonly held: OwnerRRef<T>
  private readonly worker: InlinedWorker

  constructor(held: OwnerRRef<T>, worker: InlinedWorker) {
    super(held.rrefId, worker.rrefs)
    this.held = held
    this.worker = worker
  }

  isOwner(): boolean {
    return currentScope().worker === this.worker
  }

  owner(): WorkerInfo {
    return this.worker.info
  }

  confirmedByOwner(): boolean {
    return true
  }

  toHere(): Future<T> {
    if (this.isOwner()) return this.held.toHere()
    return settle(async () => this.worker.cross(await this.held.toHere()))
  }

  localValue(): T {
    return this.held.localValue()
  }

  dispose(): void {
    this.held.dispose()
  }
}

function settle<T>(work: () => Promise<T>): Future<T> {
  const future = new Future<T>()
  let promise: Promise<T>
  try {
    promise = work()
  } catch (error) {
    return Future.rejected(error)
  }
  promise.then(
    (value) => future.resolve(value),
    (error) => future.reject(error),
  )
  return future
}
