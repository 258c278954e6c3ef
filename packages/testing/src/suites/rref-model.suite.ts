/**
 * The RRef protocol against a model that is a list: who holds a reference to which value. Random programs (fast-check commands) make, share, pass on, ask for,
 * use and dispose of references on four workers, while messages are lost, repeated and put off and workers crash and come back. The rules:
 *
 *   G1     when nothing is under way, every owner counts the references of the list and no other
 *   G2     a confirmed reference of a living worker to a value of a living worker is in the owner's table, at any moment, and works
 *   once   no function runs twice, and one whose call gave a result has run
 *   ends   no promise of a living worker is pending longer than its deadline
 *   clean  when all is disposed, nothing is left on any survivor
 *
 * One number gives the program, the faults and the order of delivery. `rref-model.sim.test.ts` and `.soak.test.ts` run it.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { isPostgradError } from '@postgrad/base'
import { call, expose, type RRef, remote, rref, UserRRef } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { currentRuntime } from '@postgrad/rpc/internal'
import { MessageType } from '@postgrad/wire/internal'
import fc from 'fast-check'
import { expectClean } from '../check/expect-clean.js'
import { type FaultRule, MESSAGE_KINDS, type MessageKind } from '../faults/message-kind.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'

export const WORKERS = ['a', 'b', 'c', 'd'] as const
export const COMMANDS_MAX = 60
/** As launch has it. */
const TIMEOUT_MS = 60_000
const GRAIN_MS = 10
/** A worker that is lost by frames that are lost is found out after a session's patience. */
const SETTLE_MS = 2000
const SETTLES_MAX = 40

interface Value {
  readonly owner: WorkerRuntime
  readonly id: number
  /** Its creation has a short deadline, and may end with it. */
  readonly isHasty: boolean
}

/** One reference that a worker's program holds. */
interface Handle {
  readonly holder: WorkerRuntime
  readonly ref: RRef<Cell>
  readonly value: Value
  /**
   * False: it is the owner's and came from a parent that was not confirmed, which may have died and taken the value with it (RREF-22), or was made from such a
   * one.
   */
  readonly isSolid: boolean
  dropped: boolean
}

/** A promise of a worker's program. */
interface Operation {
  readonly what: string
  readonly by: WorkerRuntime
  readonly handle: Handle | null
  readonly wasConfirmed: boolean
  readonly isHasty: boolean
  readonly limitMs: number
}

/** How a call is made. */
interface Haste {
  readonly timeoutMs?: number
  readonly isCancelled?: boolean
}

// --- what runs on the workers; a ticket says which program it belongs to, and that it runs once

const tickets = new Map<number, Program>()
let nextTicket = 0

function arrive(ticket: number, refs: readonly RRef<Cell>[]): void {
  tickets.get(ticket)?.onRun(ticket, currentRuntime(), refs)
}

class Cell {
  readonly id: number
  constructor(id: number) {
    this.id = id
  }
  read(): number {
    return this.id
  }
  copy(id: number): Cell {
    return new Cell(id)
  }
  bump(ticket: number): number {
    arrive(ticket, [])
    return this.id
  }
}
const makeCell = (id: number) => new Cell(id)
const makeLater = async (id: number, ms: number) => {
  await new Promise<void>((resolve) => {
    currentRuntime().clock.setTimer(ms, resolve)
  })
  return new Cell(id)
}
const take = (ticket: number, ref: RRef<Cell>) => arrive(ticket, [ref])
const takeTwice = (ticket: number, { a, b }: { a: RRef<Cell>; b: Map<string, RRef<Cell>> }) => arrive(ticket, [a, b.get('x')!])
/** Hands it to the next worker, and lets its own go while that is under way. */
const passOn = async (ticket: number, ref: RRef<Cell>, to: string, next: number) => {
  arrive(ticket, [])
  const passed = call(to, take, [next, ref])
  ref.dispose()
  await passed
}
const use = async (ticket: number, ref: RRef<Cell>) => {
  arrive(ticket, [])
  try {
    return await ref.call('read', [])
  } finally {
    ref.dispose()
  }
}
const give = (ticket: number) => tickets.get(ticket)!.lend(ticket, currentRuntime())
expose({ Cell, makeCell, makeLater, take, takeTwice, passOn, use, give })

// --- the model

/** A program while it runs: the model and the cluster. */
class Program {
  readonly sim: SimCluster
  readonly handles: Handle[] = []
  readonly pending = new Set<Operation>()
  readonly problems: Error[] = []
  private readonly values = new Map<number, Value>()
  private readonly tickets: number[] = []
  private readonly runs = new Map<number, number>()
  private readonly receivers = new Map<number, { handle: Handle; wasConfirmed: boolean }>()
  private readonly lent = new Map<number, Handle>()
  private readonly lives = new Map<string, WorkerRuntime[]>()
  private nextId = 0
  private operations = 0

  constructor(sim: SimCluster) {
    this.sim = sim
  }

  close(): void {
    for (const ticket of this.tickets) tickets.delete(ticket)
  }

  runtime(worker: number): WorkerRuntime {
    const { runtime } = this.sim.on(WORKERS[worker]!)
    const { name } = runtime.info
    const lives = this.lives.get(name) ?? []
    if (!lives.includes(runtime)) this.lives.set(name, [...lives, runtime])
    return runtime
  }

  isAlive(runtime: WorkerRuntime): boolean {
    return this.sim.on(runtime.info.name).runtime === runtime && !this.sim.world.isCrashed(runtime.info.name)
  }

  /** The current workers that live. */
  get living(): WorkerRuntime[] {
    return WORKERS.map((_, worker) => this.runtime(worker)).filter((runtime) => this.isAlive(runtime))
  }

  get anyDied(): boolean {
    return this.living.length < WORKERS.length || [...this.lives.values()].some((lives) => lives.length > 1)
  }

  handle(at: number): Handle | undefined {
    const live = this.handles.filter(({ holder }) => this.isAlive(holder))
    return live.length === 0 ? undefined : live[at % live.length]
  }

  /** `shared`: what a function receives under it. */
  ticket(shared: Handle | null): number {
    const ticket = nextTicket++
    this.tickets.push(ticket)
    tickets.set(ticket, this)
    if (shared !== null) this.receivers.set(ticket, { handle: shared, wasConfirmed: shared.ref.confirmedByOwner() })
    return ticket
  }

  fail(what: string): void {
    this.problems.push(new Error(`at ${this.sim.world.nowMs} ms: ${what}`))
  }

  // --- what happens on the workers

  onRun(ticket: number, on: WorkerRuntime, refs: readonly RRef<Cell>[]): void {
    const runs = (this.runs.get(ticket) ?? 0) + 1
    this.runs.set(ticket, runs)
    if (runs > 1) this.fail(`once: function ${ticket} ran ${runs} times`)
    for (const ref of refs) {
      if (!ref.confirmedByOwner()) this.fail(`RREF-14: an unconfirmed reference in the arguments of function ${ticket}`)
      const { handle, wasConfirmed } = this.receivers.get(ticket)!
      this.receive(on, ref, handle, wasConfirmed)
    }
  }

  private receive(holder: WorkerRuntime, ref: RRef<Cell>, parent: Handle, wasConfirmed: boolean): void {
    const isSolid = parent.isSolid && (wasConfirmed || ref instanceof UserRRef)
    this.handles.push({ holder, ref, value: parent.value, isSolid, dropped: false })
  }

  lend(ticket: number, by: WorkerRuntime): RRef<Cell> {
    this.onRun(ticket, by, [])
    const { ref, holder } = this.lent.get(ticket)!
    if (holder !== by) throw new RangeError('asked of a former life')
    return ref
  }

  // --- what the program does

  make(from: number, to: number, how: number, haste: Haste): void {
    const holder = this.runtime(from)
    const owner = this.runtime(to)
    const id = this.nextId++
    const value = { owner, id, isHasty: haste.timeoutMs !== undefined }
    this.values.set(id, value)
    const options = haste.timeoutMs === undefined ? {} : { timeoutMs: haste.timeoutMs }
    try {
      const ref = holder.run(() => {
        if (how === 0 && from === to) return rref(new Cell(id))
        const name = owner.info.name
        if (how <= 1) return remote(name, Cell, [id], options)
        return how === 2 ? remote(name, makeCell, [id], options) : remote(name, makeLater, [id, 30], options)
      }) as RRef<Cell>
      // The name may have a new life of which the maker does not know yet.
      if (ref.owner().id !== owner.info.id) return
      this.handles.push({ holder, ref, value, isSolid: true, dropped: false })
    } catch (error) {
      const isGone = isPostgradError(error, 'WORKER_DIED') || isPostgradError(error, 'UNKNOWN_WORKER')
      if (!isGone || !this.anyDied) this.fail(`remote threw ${error}`)
    }
  }

  /** A value that is made of another, where that is. */
  derive({ holder, ref, value, isSolid }: Handle, haste: Haste): void {
    const id = this.nextId++
    const options = haste.timeoutMs === undefined ? {} : { timeoutMs: haste.timeoutMs }
    const derived = { owner: value.owner, id, isHasty: value.isHasty || haste.timeoutMs !== undefined }
    const wasConfirmed = ref.confirmedByOwner()
    try {
      const made = holder.run(() => ref.remote(options).copy(id))
      this.handles.push({ holder, ref: made, value: derived, isSolid: isSolid && wasConfirmed, dropped: false })
    } catch (error) {
      const failed = ref instanceof UserRRef ? ref.failure : null
      if (error !== failed && !(isPostgradError(error, 'WORKER_DIED') && this.anyDied)) this.fail(`remote() threw ${error}`)
    }
  }

  share(handle: Handle, to: number, haste: Haste): void {
    const ticket = this.ticket(handle)
    this.start(`share ${ticket} with ${WORKERS[to]}`, handle, haste, ticket, (options) =>
      call(WORKERS[to]!, take, [ticket, handle.ref], options),
    )
  }

  shareTwice(handle: Handle, to: number, haste: Haste): void {
    const ticket = this.ticket(handle)
    const refs = { a: handle.ref, b: new Map([['x', handle.ref]]) }
    this.start(`share ${ticket} twice`, handle, haste, ticket, (options) => call(WORKERS[to]!, takeTwice, [ticket, refs], options))
  }

  passOn(handle: Handle, to: number, next: number, haste: Haste): void {
    const ticket = this.ticket(null)
    const then = this.ticket(handle)
    this.start(`pass on ${ticket}`, handle, haste, ticket, (options) =>
      call(WORKERS[to]!, passOn, [ticket, handle.ref, WORKERS[next]!, then], options),
    )
  }

  useThere(handle: Handle, to: number, haste: Haste): void {
    const ticket = this.ticket(null)
    this.start(`use ${ticket} on ${WORKERS[to]}`, handle, haste, ticket, async (options) => {
      const future = call(WORKERS[to]!, use, [ticket, handle.ref], options)
      this.sameId(handle, await future)
    })
  }

  /** Another worker asks the holder for it and gets it as a result. */
  ask(handle: Handle, from: number, haste: Haste): void {
    const ticket = this.ticket(null)
    this.lent.set(ticket, handle)
    const by = this.runtime(from)
    const holder = handle.holder.info.name
    const wasConfirmed = handle.ref.confirmedByOwner()
    const asked = this.start(`ask ${ticket} of ${holder}`, handle, haste, ticket, (options) => call(holder, give, [ticket], options), by)
    void asked?.then(
      (ref) => this.receive(by, ref, handle, wasConfirmed),
      () => {},
    )
  }

  bump(handle: Handle, haste: Haste): void {
    const ticket = this.ticket(null)
    this.start(`bump ${ticket}`, handle, haste, ticket, async (options) =>
      this.sameId(handle, await handle.ref.call('bump', [ticket], options)),
    )
  }

  created(handle: Handle, haste: Haste): void {
    this.start('created', handle, haste, null, (options) => handle.ref.created(options))
  }

  drop(handle: Handle): void {
    handle.dropped = true
    this.handles.splice(this.handles.indexOf(handle), 1)
    handle.holder.run(() => handle.ref.dispose())
  }

  crash(worker: number): void {
    if (this.living.length > 2) this.sim.crash(this.runtime(worker).info.id)
  }

  restart(worker: number): void {
    if (!this.isAlive(this.runtime(worker))) this.sim.restart(WORKERS[worker]!)
  }

  private sameId(handle: Handle, id: number): void {
    if (id !== handle.value.id) this.fail(`value ${handle.value.id} reads as ${id}`)
  }

  // --- what becomes of it

  private start<T>(
    what: string,
    handle: Handle,
    haste: Haste,
    ticket: number | null,
    act: (options: { timeoutMs?: number; signal?: AbortSignal }) => PromiseLike<T>,
    by: WorkerRuntime = handle.holder,
  ): Promise<T> | null {
    if (!this.isAlive(by)) return null
    const operation: Operation = {
      what: `${++this.operations} ${what} by ${by.info.name}`,
      by,
      handle,
      wasConfirmed: handle.ref.confirmedByOwner(),
      isHasty: haste.timeoutMs !== undefined || haste.isCancelled === true,
      limitMs: this.sim.world.nowMs + (haste.timeoutMs ?? TIMEOUT_MS) + GRAIN_MS,
    }
    this.pending.add(operation)
    const controller = haste.isCancelled ? new AbortController() : null
    const options = {
      ...(haste.timeoutMs === undefined ? {} : { timeoutMs: haste.timeoutMs }),
      ...(controller === null ? {} : { signal: controller.signal }),
    }
    const promise = Promise.resolve(by.run(() => act(options)))
    if (controller !== null) void turn().then(() => by.run(() => controller.abort()))
    promise.then(
      () => this.onEnd(operation, ticket, null),
      (error: unknown) => this.onEnd(operation, ticket, error),
    )
    return promise
  }

  private onEnd(operation: Operation, ticket: number | null, error: unknown): void {
    this.pending.delete(operation)
    const { what, by, limitMs } = operation
    if (!this.isAlive(by)) return
    // A step of the world at a time that has come may be taken after others of the same time.
    if (this.sim.world.nowMs > limitMs) this.fail(`ends: ${what} ended ${this.sim.world.nowMs - limitMs} ms late with ${error}`)
    if (error === null && ticket !== null && this.runs.get(ticket) !== 1) this.fail(`once: ${what} gave a result and did not run`)
    if (error !== null && !this.mayFail(operation, error)) this.fail(`${what} failed: ${error instanceof Error ? error.stack : error}`)
  }

  private mayFail({ handle, wasConfirmed, isHasty }: Operation, error: unknown): boolean {
    // Also of a creation that timed out, for those who share what it was to make.
    if (isPostgradError(error, 'RPC_TIMEOUT') || isPostgradError(error, 'CALL_CANCELLED')) return isHasty || handle?.value.isHasty === true
    if (isPostgradError(error, 'RREF_CREATION_TIMEOUT')) return handle?.value.isHasty === true
    // G2. A parent that died may take the value with it before its child is confirmed (RREF-22).
    if (isPostgradError(error, 'RREF_DELETED')) return handle?.dropped === true || (this.anyDied && !(wasConfirmed && handle?.isSolid))
    // A worker that began again knows no worker that had died before.
    if (isPostgradError(error, 'UNKNOWN_WORKER')) return this.anyDied
    if (error instanceof RangeError) return this.anyDied && error.message === 'asked of a former life'
    return isPostgradError(error, 'WORKER_DIED') && this.anyDied && !this.isAliveId(error.values.workerId)
  }

  private isAliveId(id: unknown): boolean {
    return this.living.some(({ info }) => info.id === id)
  }

  // --- invariants

  /** Handles that the protocol counts: of living holders to values of living owners, neither disposed nor failed. */
  private counted(): { handle: Handle; user: UserRRef }[] {
    return this.handles.flatMap((handle) => {
      const { ref, holder, value } = handle
      if (!(ref instanceof UserRRef) || !this.isAlive(holder) || !this.isAlive(value.owner) || ref.failure !== null) return []
      return [{ handle, user: ref }]
    })
  }

  private checkFailures(): void {
    for (const { ref, holder, value } of this.handles) {
      if (!(ref instanceof UserRRef) || ref.failure === null || !this.isAlive(holder)) continue
      const { failure } = ref
      const justified =
        (isPostgradError(failure, 'WORKER_DIED') && !this.isAlive(value.owner)) ||
        (isPostgradError(failure, 'RREF_CREATION_TIMEOUT') && value.isHasty) ||
        (isPostgradError(failure, 'RREF_DELETED') && this.anyDied) ||
        (isPostgradError(failure, 'WORKER_DIED') && this.anyDied && !this.isAliveId(failure.values.workerId))
      if (!justified) this.fail(`G2: a reference to value ${value.id} failed: ${failure}`)
    }
  }

  /** At any moment. */
  checkNow(): void {
    this.checkFailures()
    const forks = new Map(this.living.map((runtime) => [runtime, new Set<bigint>()]))
    for (const [runtime, set] of forks) {
      for (const { holders } of runtime.references().owned) for (const { forkId } of holders) set.add(forkId)
    }
    for (const { handle, user } of this.counted()) {
      if (user.confirmed && !forks.get(handle.value.owner)!.has(user.forkId)) {
        this.fail(`G2: ${handle.holder.info.name} has a confirmed reference to value ${handle.value.id} that its owner does not know`)
      }
    }
    if (this.problems.length > 0) throw this.problems[0]
  }

  /** Differences between the tables and the list. */
  private differences(): string[] {
    const differences: string[] = []
    const counted = this.counted()
    for (const runtime of this.living) {
      const { ownerRRefs, forks, userRRefs, pendingUsers, pendingChildren, pendingCalls, servingCalls } = runtime.debugInfo()
      const mine = counted.filter(({ handle }) => handle.value.owner === runtime)
      const want = {
        ownerRRefs: new Set(mine.map(({ handle }) => handle.value)).size,
        forks: mine.length,
        userRRefs: counted.filter(({ handle }) => handle.holder === runtime).length,
        pendingUsers: 0,
        pendingChildren: 0,
        pendingCalls: 0,
        servingCalls: 0,
      }
      const have = { ownerRRefs, forks, userRRefs, pendingUsers, pendingChildren, pendingCalls, servingCalls }
      if (JSON.stringify(have) !== JSON.stringify(want)) {
        differences.push(`${runtime.info.name}: has ${JSON.stringify(have)}, the model ${JSON.stringify(want)}`)
      }
    }
    return differences
  }

  /** Lets everything under way end, then compares the tables with the list. */
  async settle(): Promise<void> {
    let differences: string[] = []
    for (let i = 0; i < SETTLES_MAX; i++) {
      await this.wait(SETTLE_MS)
      this.checkNow()
      const pending = [...this.pending].filter(({ by }) => this.isAlive(by))
      for (const { what, limitMs } of pending) if (this.sim.world.nowMs > limitMs) this.fail(`ends: ${what} is pending`)
      differences = this.differences()
      if (pending.length === 0 && differences.length === 0) return
    }
    throw new Error(`G1: when nothing is under way:\n  ${differences.join('\n  ')}`)
  }

  async finish(): Promise<void> {
    await this.settle()
    for (const handle of [...this.handles]) this.bump(handle, {})
    await this.settle()
    for (const handle of [...this.handles]) if (this.isAlive(handle.holder)) this.drop(handle)
    await this.settle()
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.sim.world.clock.setTimer(ms, resolve)
    })
  }
}

// --- programs

class Command implements fc.AsyncCommand<object, Program> {
  private readonly text: string
  private readonly act: (program: Program) => unknown

  constructor(text: string, act: (program: Program) => unknown) {
    this.text = text
    this.act = act
  }

  check(): boolean {
    return true
  }

  async run(_: object, program: Program): Promise<void> {
    await this.act(program)
    program.checkNow()
  }

  toString(): string {
    return this.text
  }
}

const worker = fc.nat(WORKERS.length - 1)
const at = fc.nat(31)
const haste = fc.constantFrom<Haste>({}, {}, {}, {}, {}, { timeoutMs: 15 }, { isCancelled: true })
const told = ({ timeoutMs, isCancelled }: Haste) => (timeoutMs ? ', hasty' : isCancelled ? ', cancelled' : '')

const onHandle = (name: string, act: (program: Program, handle: Handle, to: number, how: Haste) => unknown) =>
  fc.tuple(at, worker, haste).map(
    ([index, to, how]) =>
      new Command(`${name}(${index}, ${WORKERS[to]}${told(how)})`, (program) => {
        const handle = program.handle(index)
        if (handle !== undefined) act(program, handle, to, how)
      }),
  )

const make = fc
  .tuple(worker, worker, fc.nat(3), haste)
  .map(
    ([from, to, how, hasty]) =>
      new Command(`make(${WORKERS[from]}, ${WORKERS[to]}, ${how}${told(hasty)})`, (program) => program.make(from, to, how, hasty)),
  )
const steps = fc.integer({ min: 1, max: 12 }).map(
  (count) =>
    new Command(`steps(${count})`, async ({ sim: { world } }) => {
      for (let i = 0; i < count && world.choices.size > 0; i++) await turn()
    }),
)
const wait = fc.constantFrom(1, 20, 100, 1500).map((ms) => new Command(`wait(${ms})`, (program) => program.wait(ms)))

/** Weighted by repetition. */
const commands = fc.commands<object, Program, false>(
  [
    make,
    make,
    make,
    onHandle('share', (program, handle, to, how) => program.share(handle, to, how)),
    onHandle('share', (program, handle, to, how) => program.share(handle, to, how)),
    onHandle('handOver', (program, handle, to, how) => {
      program.share(handle, to, how)
      program.drop(handle)
    }),
    onHandle('handOver', (program, handle, to, how) => {
      program.share(handle, to, how)
      program.drop(handle)
    }),
    onHandle('shareTwice', (program, handle, to, how) => program.shareTwice(handle, to, how)),
    onHandle('passOn', (program, handle, to, how) => program.passOn(handle, to, (to + 1) % WORKERS.length, how)),
    onHandle('useThere', (program, handle, to, how) => program.useThere(handle, to, how)),
    onHandle('ask', (program, handle, to, how) => program.ask(handle, to, how)),
    onHandle('derive', (program, handle, _, how) => program.derive(handle, how)),
    onHandle('bump', (program, handle, _, how) => program.bump(handle, how)),
    onHandle('created', (program, handle, _, how) => program.created(handle, how)),
    onHandle('drop', (program, handle) => program.drop(handle)),
    onHandle('drop', (program, handle) => program.drop(handle)),
    onHandle('drop', (program, handle) => program.drop(handle)),
    steps,
    steps,
    steps,
    wait,
    worker.map((victim) => new Command(`crash(${WORKERS[victim]})`, (program) => program.crash(victim))),
    worker.map((victim) => new Command(`restart(${WORKERS[victim]})`, (program) => program.restart(victim))),
  ] as fc.Arbitrary<Command>[],
  { maxCommands: COMMANDS_MAX, size: 'max' },
)

const often = fc.constantFrom(0, 0.05, 0.2)
const kill = fc.record({ kind: fc.constantFrom(...MESSAGE_KINDS), nth: fc.integer({ min: 1, max: 5 }), restarts: fc.boolean() })
/** Null: links without sessions, which lose nothing. */
const faults = fc.option(fc.record({ drop: often, duplicate: often, delay: often, kill: fc.option(kill) }))

interface Faults {
  readonly drop: number
  readonly duplicate: number
  readonly delay: number
  readonly kill: { readonly kind: MessageKind; readonly nth: number; readonly restarts: boolean } | null
}

/** Each acts on messages of every kind, acknowledgements included. */
function rulesOf({ drop, duplicate, delay, kill }: Faults): FaultRule[] {
  const rules: FaultRule[] = [
    { match: { probability: drop }, do: 'drop' },
    { match: { probability: duplicate }, do: 'duplicate', delayMs: 3 },
    { match: { probability: delay }, do: 'delay', delayMs: 30 },
  ]
  if (kill !== null) {
    const match = { kind: kill.kind, nth: kill.nth }
    rules.unshift(kill.restarts ? { match, do: 'restart', delayMs: 40 } : { match, do: 'crash' })
  }
  return rules
}

const scenarios = fc.record({ faults, commands })
type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never

/** Breaks the protocol of a worker, to see whether that is found. */
export type Sabotage = (runtime: WorkerRuntime) => void

async function runScenario(seed: number, { faults, commands }: Scenario, sabotage: Sabotage | null): Promise<void> {
  const died = new Set<string>()
  const simulation = await simulate({ workers: WORKERS, seed, ...(faults && { faults: rulesOf(faults) }) }, async (sim) => {
    if (sabotage !== null) for (const name of WORKERS) sabotage(sim.on(name).runtime)
    const program = new Program(sim)
    try {
      await fc.asyncModelRun(() => ({ model: {}, real: program }), commands)
      await program.finish()
    } finally {
      program.close()
      for (const name of WORKERS) if (sim.world.isCrashed(name)) died.add(name)
    }
  })
  // A message for a worker that died, or has disposed of it, is a dead letter.
  expectClean(simulation, { except: [...died], allow: ['deadLetters'] })
}

/** The program, the faults and the order that `seed` gives. A failure names the seed, the shortest program that fails, and what repeats it. */
export async function runSeed(seed: number, sabotage: Sabotage | null = null, shrinks = true): Promise<void> {
  try {
    const property = fc.asyncProperty(scenarios, (scenario) => runScenario(seed, scenario, sabotage))
    await fc.assert(property, {
      seed,
      numRuns: 1,
      endOnFailure: !shrinks,
      interruptAfterTimeLimit: SHRINK_MS,
      markInterruptAsFailure: true,
    })
  } catch (error) {
    const { message, cause } = error as Error
    const repeat = `POSTGRAD_RREF_SEED=${seed} npm test -- testing/dist/rref-model`
    throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : cause}\nto repeat it: ${repeat}\n${message}`, { cause })
  }
}

/** How long a program that fails is made shorter. */
const SHRINK_MS = 60_000

// biome-ignore lint/suspicious/noExplicitAny: the protocol's private parts
type Inside = any

/** How many seeds, from `first` on, find a protocol that is broken so; null if none of them does. */
export async function seedsToFind(sabotage: Sabotage, seedsMax: number, first = 0): Promise<number | null> {
  for (let seed = first; seed < first + seedsMax; seed++) {
    try {
      await runSeed(seed, sabotage, false)
    } catch {
      return seed - first + 1
    }
  }
  return null
}

/** Ways to break the protocol. */
export const SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'a parent does not wait for RREF_CHILD_ACCEPT': ({ rrefs }) => {
    const inside = rrefs as Inside
    const { sent } = inside
    inside.sent = function (forks: { rref: RRef; forkId: bigint }[], to: unknown) {
      sent.call(this, forks, to)
      for (const { rref: ref } of forks) if (ref instanceof UserRRef) ref.children--
    }
  },
  'a child is accepted before its owner has confirmed it': ({ rrefs }) => {
    const inside = rrefs as Inside
    const { requestFork } = inside
    inside.requestFork = function (user: UserRRef, from: unknown) {
      this.sendAccept(user.forkId, from)
      return requestFork.call(this, user, from)
    }
  },
  'a function does not wait for its references': ({ rrefs }) => {
    const inside = rrefs as Inside
    const { accept } = inside
    inside.accept = function (...args: unknown[]) {
      accept.apply(this, args)
      return null
    }
  },
  'a fork is counted twice': ({ rrefs }) => {
    const inside = rrefs as Inside
    const { onForkRequest } = inside
    inside.onForkRequest = function (rrefId: bigint, forkId: bigint, from: number) {
      onForkRequest.call(this, rrefId, forkId, from)
      onForkRequest.call(this, rrefId, forkId + (1n << 40n), from)
    }
  },
  'the owner drops its value with the last fork but one': ({ rrefs }) => {
    const inside = rrefs as Inside
    inside.dropFork = function (rrefId: bigint, forkId: bigint) {
      const owned = this.owned.get(rrefId)
      if (owned === undefined) return
      owned.forks.delete(forkId)
      if (owned.forks.size <= 1 && owned.admitted) this.drop(rrefId)
    }
  },
  'the owner is not told of the end of a reference whose child it waited for': ({ rrefs }) => {
    const inside = rrefs as Inside
    inside.onChildAccept = function (forkId: bigint) {
      const child = this.pendingChildren.get(forkId)
      if (child === undefined) return
      this.pendingChildren.delete(forkId)
      child.parent.children--
    }
  },
  'the forks of a dead worker stay': ({ rrefs }) => {
    const inside = rrefs as Inside
    const { onPeerDeath } = inside
    inside.onPeerDeath = function (peer: unknown, error: unknown) {
      const { owned } = this
      this.owned = new Map()
      onPeerDeath.call(this, peer, error)
      this.owned = owned
    }
  },
  'a call is run twice': ({ messages }) => {
    const inside = messages as Inside
    const { deliverCall } = inside
    let calls = 0
    inside.deliverCall = function (call: { type: number }) {
      const isCall = call.type === MessageType.CALL
      deliverCall.call(this, call)
      if (isCall && ++calls === 5) deliverCall.call(this, call)
    }
  },
}
