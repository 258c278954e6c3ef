/**
 * Makes the calls of the inlined program: `call` runs the function at once, where it is made, in the scope of the worker that it names. Arguments
 * and results are copied as on the wire, and each message with tensors gets an identity node in place of the receive
 * function, so that gradients are summed in the same groups as in the distributed run. No message, no order, no link.
 */
import { AsyncResource } from 'node:async_hooks'
import { type GraphTask, gradientEdge, HIGHEST_PRIORITY, metaOfOutput, Node, setHistory, watchScopes } from '@postgrad/autograd/internal'
import { Future, PostgradError } from '@postgrad/base'
import { currentScope, inOwnScope, isThenable, Scope } from '@postgrad/base/internal'
import { DistPass } from '@postgrad/dist-autograd/internal'
import { type OwnerRRef, RemoteStream, RRef, type RRefBackwardOptions, type RRefOptions, type Target, type WorkerInfo } from '@postgrad/rpc'
import {
  type Caller,
  currentRuntime,
  iteratorOf,
  runExposed,
  valueTypeExtension,
  type WorkerOptions,
  WorkerRuntime,
} from '@postgrad/rpc/internal'
import { CPU, isReadable, raw, Tensor } from '@postgrad/tensor/internal'
import { Codec, MessageType, type Part, type ValueExtension } from '@postgrad/wire/internal'

/** One message with tensors, in the inlined graph. */
export class CallBoundary extends Node {
  /** The worker whose message it would have been: its edges lead into that worker's graph. */
  readonly sender: WorkerRuntime
  /** In which it would have been sent; a pass of another one goes no further. */
  private readonly context: object | null

  constructor(tensors: readonly Tensor[], sender: WorkerRuntime) {
    super(
      tensors.map((tensor) => gradientEdge(tensor)),
      tensors.map(metaOfOutput),
      // As the receive function has it: hooks meet the same gradients.
      HIGHEST_PRIORITY,
    )
    this.sender = sender
    this.context = currentScope().context
  }

  get name(): string {
    return 'CallBoundary'
  }

  /** Gradients are a message as well, of the receiver: under createGraph they get a boundary of their own. */
  apply(grads: readonly (Tensor | null)[], task: GraphTask): readonly (Tensor | null)[] {
    if (!(task.sink instanceof DistPass))
      throw stops('BACKWARD_CROSSES_WORKERS', 'this graph continues at another worker, where a local backward cannot follow')
    if (currentScope().context !== this.context)
      throw stops('FOREIGN_CONTEXT', 'the pass reached a tensor that was received in another context')
    const recorded = grads.filter((grad) => grad?.requiresGrad === true) as Tensor[]
    if (!currentScope().gradEnabled || recorded.length === 0) return grads
    const boundary = new CallBoundary(recorded, currentRuntime())
    let outputs = 0
    return grads.map((grad) => (grad?.requiresGrad === true ? passed(grad, boundary, outputs++) : grad))
  }
}

/** As the receive function has it. */
function stops(code: string, message: string): PostgradError {
  return new PostgradError(code, {
    op: 'backward',
    message,
    remedy: 'Use ctx.backward([loss]) of its context, or detach() what was received.',
  })
}

function passed(tensor: Tensor, boundary: CallBoundary, outputNr: number): Tensor {
  const out = tensor.detach().clone()
  setHistory(out, boundary, outputNr)
  return out
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

interface OpenCall {
  readonly by: string
  readonly what: string
  readonly on: string
}

/** The workers of one program share it. */
export class InlinedProgram {
  readonly callers = new Map<string, InlinedCaller>()
  /** How many messages with tensors that require grad each worker would have sent; counted at the first. */
  readonly recordedCrossings = new Map<string, number>()
  private readonly open = new Set<OpenCall>()

  /** Runs `work`; until its end the program waits for it. */
  async whileOpen<T>(call: OpenCall, work: () => Promise<T>): Promise<T> {
    this.open.add(call)
    try {
      return await work()
    } finally {
      this.open.delete(call)
    }
  }

  /** One line for each call that has not ended, in the words of a simulation. */
  get waits(): readonly string[] {
    return [...this.open].map(({ by, what, on }) => `${by} waits for ${what} from worker '${on}'`)
  }

  /** A worker whose calls are function calls. */
  start(options: WorkerOptions): WorkerRuntime {
    const worker = new WorkerRuntime({ ...options, caller: (made) => new InlinedCaller(made, this) })
    this.callers.set(worker.info.name, worker.caller as InlinedCaller)
    return worker
  }

  get workers(): WorkerRuntime[] {
    return [...this.callers.values()].map(({ worker }) => worker)
  }

  /** The one that has what belongs to the whole program. */
  get first(): WorkerRuntime {
    return this.workers[0]!
  }
}

export class InlinedCaller implements Caller {
  readonly worker: WorkerRuntime
  readonly program: InlinedProgram
  /** Where the worker was made: what it serves finds the AsyncLocalStorages of there, as on a worker of its own (RPC-58). */
  private readonly home = new AsyncResource('InlinedWorker')
  private readonly crossing = new Codec({ extensions: [references, valueTypeExtension], deviceOf: (device) => device })

  constructor(worker: WorkerRuntime, program: InlinedProgram) {
    this.worker = worker
    this.program = program
  }

  call(to: Target, name: string, args: readonly unknown[]): Future<unknown> {
    return settle(async () => {
      const callee = this.find(to)
      const passed = this.sender.cross(args)
      return this.program.whileOpen(this.opened(name, callee), async () => callee.cross(await callee.serve(name, passed)))
    })
  }

  /** A call is a function call here: none waits. */
  ready(to: Target): Future<void> {
    return settle(async () => void this.find(to))
  }

  /** Makes no item ahead: the generator continues when the next one is asked for. */
  stream(to: Target, name: string, args: readonly unknown[]): RemoteStream<unknown> {
    const callee = this.find(to)
    const { registry, info } = callee.worker
    const stream = new RemoteStream<unknown>(1)
    const scope = callee.scopeOfServing()
    const passed = this.sender.cross(args)
    let iterator: ReturnType<typeof iteratorOf> | null = null
    const step = async (work: (items: ReturnType<typeof iteratorOf>) => unknown): Promise<void> => {
      try {
        iterator ??= iteratorOf(name, await callee.runAs(scope, runExposed, registry.lookup(name, info.name), passed))
        const items = iterator
        const { done, value } = (await callee.runAs(scope, work, items)) as IteratorResult<unknown, unknown>
        if (done === true) stream.onReply({ body: [callee.cross(value)] })
        else stream.onItem({ value: callee.cross(await value), received: null })
      } catch (error) {
        stream.onError(error)
      }
    }
    const what = `a stream of ${name}`
    const wait = (work: Parameters<typeof step>[0]) => this.program.whileOpen(this.opened(what, callee), () => step(work))
    stream.begin({
      taken: () => {},
      stop: () => void wait(async (generator) => (await generator.return?.()) ?? { done: true, value: undefined }),
      cancel: () => {},
      wait: () => {
        if (stream.isOpen) void wait((generator) => generator.next())
        return () => {}
      },
      discard: () => {},
      ended: () => {},
    })
    return stream
  }

  remote(to: Target, name: string, args: readonly unknown[]): RRef {
    const callee = this.find(to)
    const owner = callee.worker.rrefs.createOwner()
    const passed = this.sender.cross(args)
    try {
      const value = callee.serve(name, passed)
      // A value without a wait is there before the next message, as when messages keep their order.
      if (!isThenable(value)) owner.setValue(value)
      else
        value.then(
          (made) => owner.setValue(made),
          (error) => owner.setError(error),
        )
    } catch (error) {
      owner.setError(error)
    }
    return new InlinedRRef(owner, callee.worker, this.program)
  }

  /** The sender: a call through a reference is made on the runtime of its owner. */
  private get sender(): InlinedCaller {
    const { worker } = currentScope()
    const caller = worker instanceof WorkerRuntime ? worker.caller : null
    return caller instanceof InlinedCaller ? caller : this
  }

  private opened(what: string, callee: InlinedCaller): OpenCall {
    return { by: this.sender.worker.info.name, what, on: callee.worker.info.name }
  }

  /** The value as it arrives at another worker. */
  cross<T>(value: T): T {
    const env: InlinedEnv = { references: [] }
    const out = this.crossing.prepare(MessageType.RESULT, [value], env)
    // One output for each place, also if a tensor is in the message twice.
    const recorded = carriedContext() === null ? [] : out.tensors.map((tensor, i) => (tensor.requiresGrad ? i : -1)).filter((i) => i >= 0)
    const boundary = new CallBoundary(
      recorded.map((i) => out.tensors[i]!),
      this.worker,
    )
    const { name } = this.worker.info
    const { recordedCrossings } = this.program
    if (recorded.length > 0) recordedCrossings.set(name, (recordedCrossings.get(name) ?? 0) + 1)
    const { tensors, parts } = out
    const isLate = (part: Part): part is Tensor => !ArrayBuffer.isView(part) && !isReadable(part)
    // A device's bytes come later on the wire. Here others take their place, and the device copies its own.
    if (tensors.some(isLate)) out.parts = parts.map((part) => (isLate(part) ? Tensor.empty(part.dtype, part.shape, CPU) : part))
    const message = this.crossing.decode(this.crossing.encode(out, env), env)
    for (const [i, tensor] of tensors.entries()) if (isLate(tensor)) raw.copy_(message.tensors[i]!, tensor)
    recorded.forEach((i, outputNr) => {
      setHistory(message.tensors[i]!, boundary, outputNr)
    })
    return message.body[0] as T
  }

  /** Workers of an inlined program have no links. */
  workers(): WorkerInfo[] {
    return this.program.workers.map(({ info }) => info)
  }

  resolve(target: Target, op?: string): WorkerInfo {
    for (const { info } of this.program.workers) {
      if (target === info.name || target === info.id || (typeof target === 'object' && target.name === info.name)) return info
    }
    return this.worker.peers.resolve(target, op).info
  }

  private find(target: Target): InlinedCaller {
    return this.program.callers.get(this.resolve(target).name)!
  }

  private serve(name: string, args: readonly unknown[]): unknown {
    return this.runAs(this.scopeOfServing(), runExposed, this.worker.registry.lookup(name, this.worker.info.name), args)
  }

  private runAs<A extends unknown[], T>(scope: Scope, fn: (...args: A) => T, ...args: A): T {
    return this.home.runInAsyncScope(() => inOwnScope(scope, fn, ...args))
  }

  /** With the parts that a message from the running code has (DA-6): the context, and with it the anomaly mode. */
  private scopeOfServing(): Scope {
    const { chain, anomaly } = currentScope()
    const context = carriedContext()
    if (context === null || anomaly === null) return new Scope({ context, chain }, this.worker.scope)
    watchScopes()
    return new Scope({ context, chain, anomaly }, this.worker.scope)
  }
}

/** The context that a message from here would have: none under `noGrad`. */
function carriedContext(): object | null {
  const { context, gradEnabled } = currentScope()
  return gradEnabled ? context : null
}

/** A reference that any worker of the inlined program may hold. */
export class InlinedRRef<T = unknown> extends RRef<T> {
  private readonly held: OwnerRRef<T>
  private readonly worker: WorkerRuntime
  private readonly program: InlinedProgram

  constructor(held: OwnerRRef<T>, worker: WorkerRuntime, program: InlinedProgram) {
    super(held.rrefId, worker.rrefs.operations)
    this.held = held
    this.worker = worker
    this.program = program
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

  toHere(options: RRefOptions = {}): Future<T> {
    if (this.isOwner()) return this.held.toHere(options)
    return settle(async () => (this.worker.caller as InlinedCaller).cross(await this.held.toHere(options)))
  }

  localValue(): T {
    return this.held.localValue()
  }

  override backward(this: InlinedRRef<Tensor>, contextId: bigint | null = null, options: RRefBackwardOptions = {}): Promise<void> {
    return this.program.first.rrefs.operations.backward(this, contextId, options)
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
