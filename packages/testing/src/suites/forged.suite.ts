/**
 * Every kind of message with every field wrong, sent by real peers to workers in the middle of their work: messages of a run of calls, references,
 * streams, actors, groups and passes are kept, and sent again, changed: in one field of head or body, in their bytes, to another worker, or at another
 * time. Each must be a dead letter or a typed error of a wait; every wait ends by its deadline, and every worker continues.
 */
import { isPostgradError, workerOf } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { allReduce, destroyProcessGroup, initProcessGroup, isInitialized, recv, send } from '@postgrad/process-group'
import { call, currentWorker, expose, leave, monitor, type RRef, shutdown, stopActor, stream, type WorkerRuntime } from '@postgrad/rpc'
import { currentRuntime, meet, type Wait } from '@postgrad/rpc/internal'
import { Random } from '@postgrad/sim/internal'
import { isTensor, ones, type Tensor } from '@postgrad/tensor'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, MessageType, type OutgoingMessage } from '@postgrad/wire/internal'
import { type SimCluster, simulate } from '../simulate/simulate.js'
import { type Account, type Cell, failsBackward, freshAccount, lives, makeCell, served, sleep } from './faulty.suite.js'

const NAMES = ['worker0', 'worker1', 'worker2', 'worker3']
const TIMEOUT_MS = 200
/** A wait for a leader has so much more. */
const LEADER_GRACE_MS = 1000
const PROGRAM_MS = 600
/** The longest wait, and a bit more. */
const SETTLE_MS = 4000
const KEPT = 6
const UNCAUGHT = 'uncaught'
/** The function that a monitor calls on the worker of its actor. */
const WATCH_ACTOR = 'postgrad.watchActor'
const UNKNOWN_WORKERS = [999, 65_535]

const failing = async (x: Tensor, next: string): Promise<Tensor> => failsBackward(await call(next, served.doubleAlong, ['failing', x, []]))
expose({ 'forged.failing': failing })

type Mutation = 'as it was' | 'head' | 'body' | 'head and body' | 'bytes'
const MUTATIONS: readonly Mutation[] = ['as it was', 'head', 'head', 'body', 'body', 'head and body', 'bytes']

/**
 * Not sent by simulated workers in the middle of a run: progress of calls and lineage ahead leave after thousands of calls, frames arrive whole, and groups
 * end at the end.
 */
const NOT_SENT: readonly (readonly [MessageType, readonly unknown[]])[] = [
  [MessageType.PROGRESS, [1, 1, 64, 0, 0, []]],
  [MessageType.LINEAGE, []],
  [MessageType.UNREADABLE, [1]],
  // SEEN, JOIN, REPORT, RELEASE, DONE, FAILED, ASK, ANSWER, OVER
  [MessageType.GROUP_UPDATE, [1, null, null]],
  [MessageType.GROUP_UPDATE, [2, [TIMEOUT_MS], null]],
  [MessageType.GROUP_UPDATE, [3, [0, [[1, 2, 3]]], null]],
  [MessageType.GROUP_UPDATE, [4, [0, 1, 2, 3], null]],
  [MessageType.GROUP_UPDATE, [5, null, null]],
  [MessageType.GROUP_UPDATE, [6, null, new RangeError('forged')]],
  [MessageType.GROUP_UPDATE, [7, [1, ['1']], null]],
  [MessageType.GROUP_UPDATE, [8, [1, [true, [], [[1, 2, 3]]]], null]],
  [MessageType.GROUP_UPDATE, [9, ['1', 1], null]],
  // Goes ahead of tens of thousands of messages; its context and lineage are put in where it is sent.
  [MessageType.LINEAGE, []],
]

const HEAD = ['requestId', 'context', 'autogradId', 'pass', 'deadlineMs', 'trace', 'lineage'] as const

/** A message and its sender. */
type Kept = Pick<OutgoingMessage, 'type' | 'body' | (typeof HEAD)[number]> & { readonly by: WorkerRuntime; readonly to: number }

/** The receiver's state when a forged message was sent to it. */
export const STATES = ['idle', 'serving', 'forward', 'root', 'participant', 'passive', 'released', 'leaving', 'restarted'] as const
export type State = (typeof STATES)[number]

export interface ForgedReport {
  readonly seed: number
  /** How many were sent. */
  readonly forged: number
  /** Of every type, in which states of the receiver. */
  readonly met: ReadonlyMap<string, number>
  /** Dead letters by reason, and how waits ended. */
  readonly letters: Readonly<Record<string, number>>
  readonly ends: ReadonlyMap<string, number>
  /** Waits that ended late, or never; empty. */
  readonly late: readonly string[]
  /** Other problems; empty. */
  readonly problems: readonly string[]
}

class Forger {
  readonly met = new Map<string, number>()
  forged = 0
  private readonly random: Random
  private readonly sim: SimCluster
  private readonly kept = new Map<number, Kept[]>()
  private readonly ids: bigint[] = []
  private readonly requests: number[] = []
  private readonly tapped = new Set<WorkerRuntime>()
  private readonly leaving = new Set<WorkerRuntime>()
  /** Nothing is forged; what was sent is kept. */
  paused = false
  private isSending = false
  private damage: ((frame: Frame) => Frame) | null = null
  private readonly count: number
  private left: number

  constructor(sim: SimCluster, random: Random, count: number) {
    this.sim = sim
    this.random = random
    this.left = count
    this.count = count
  }

  /** Sees what this worker sends from now on. */
  tap(worker: WorkerRuntime): void {
    if (this.tapped.has(worker)) return
    this.tapped.add(worker)
    const { messages } = worker
    const send = messages.send.bind(messages)
    messages.send = (peer, out) => {
      send(peer, out)
      if (peer.link !== null && !this.isSending) this.onSent(worker, peer.info.id, out)
    }
    const { codec } = messages
    const encode = codec.encode.bind(codec)
    codec.encode = (out, env, blocks) => {
      const frame = encode(out, env, blocks)
      return this.damage === null ? frame : this.damage(frame)
    }
    for (const [type, body] of NOT_SENT) {
      this.keep({
        type,
        body,
        requestId: 0,
        context: null,
        autogradId: null,
        pass: null,
        deadlineMs: null,
        trace: null,
        lineage: null,
        by: worker,
        to: 0,
      })
    }
  }

  noteLeaving(worker: WorkerRuntime): void {
    this.leaving.add(worker)
  }

  /** Sends the rest, but for so many, after the program: to workers that are idle, about things that have ended. */
  async finish(reserved: number): Promise<void> {
    while (this.left > reserved) {
      const before = this.left
      this.forge()
      if (this.left === before) this.left--
      await new Promise<void>((resolve) => this.sim.world.clock.setTimer(this.random.below(20), resolve))
    }
  }

  private onSent(by: WorkerRuntime, to: number, out: OutgoingMessage): void {
    const { type, body, requestId, context, autogradId, pass, deadlineMs, trace, lineage } = out
    this.keep({ type, body, requestId, context, autogradId, pass, deadlineMs, trace, lineage, by, to })
    for (const id of [context, autogradId, pass, ...body]) if (typeof id === 'bigint') note(this.ids, id)
    if (requestId > 0) note(this.requests, requestId)
    // Spread over the program.
    const share = 0.1 + this.sim.world.nowMs / PROGRAM_MS
    if (this.paused || this.left === 0 || this.forged > share * this.count || this.random.coin()) return
    // From this message, or from any earlier one, at once or in a while.
    const one = this.random.coin() ? this.kept.get(type)!.find((each) => each.body === body) : undefined
    if (this.random.below(3) > 0) this.forge(one)
    else this.sim.world.clock.setTimer(this.random.below(60), () => this.forge(one))
  }

  private keep(one: Kept): void {
    const list = this.kept.get(one.type) ?? []
    this.kept.set(one.type, list)
    if (list.length < KEPT) list.push(one)
    else list[this.random.below(KEPT)] = one
  }

  private forge(one = pick(this.random, this.kept.get(pick(this.random, [...this.kept.keys()]))!)): void {
    const { random, sim } = this
    if (this.left === 0) return
    const { by, type } = one
    if (!lives(sim, by) || by.isClosed) return
    // Those that leave as well, as long as there is a link.
    const others = [...by.peers].filter(({ info, link }) => link !== null && by.reachable(info.id)).map(({ info }) => info)
    const to = random.below(3) > 0 ? others.find(({ id }) => id === one.to) : others[random.below(others.length)]
    if (to === undefined) return
    const mutation = pick(random, MUTATIONS)
    const body = mutation === 'body' || mutation === 'head and body' ? this.otherBody(one.body) : one.body
    const state = this.stateOf(sim.on(to.id).runtime, one)
    this.isSending = true
    if (mutation === 'bytes') this.damage = (frame) => damaged(random, frame)
    try {
      const peer = by.peers.resolve(to.id)
      const out = by.messages.prepare(peer, type, body, 'forged')
      const head: Record<string, unknown> = {}
      for (const field of HEAD) head[field] = one[field]
      if (mutation === 'head' || mutation === 'head and body') {
        for (let fields = 1 + (random.below(4) === 0 ? 1 : 0); fields > 0; fields--) {
          const field = this.fieldOf(one)
          head[field] = this.other(head[field], field)
        }
      }
      if (type === MessageType.LINEAGE) {
        head.context = random.below(8) === 0 ? null : pick(random, [...this.ids, 5n])
        head.lineage = this.otherNumbers([0, 0, 0, 1, 2, 1, 0, 0])
      }
      if (type === MessageType.PROPAGATE_GRADIENTS && mutation === 'head' && random.below(3) === 0) {
        // A pass that begins with this, for which there is a plan.
        head.pass = this.otherId((BigInt(pick(random, [0, 1, 2, 3, ...UNKNOWN_WORKERS])) << 48n) | BigInt(5000 + this.forged))
        head.lineage = this.otherNumbers([0, to.id, 1, 0, 1])
      }
      Object.assign(out, head)
      by.messages.send(peer, out)
    } catch {
      // It cannot be written, or nobody takes it.
      return
    } finally {
      this.isSending = false
      this.damage = null
    }
    this.left--
    this.forged++
    const key = `${MESSAGE_TABLE[type].name} ${state}`
    this.met.set(key, (this.met.get(key) ?? 0) + 1)
  }

  /** Mostly one that the message has. */
  private fieldOf(one: Kept): (typeof HEAD)[number] {
    const used = HEAD.filter((field) => one[field] !== null && one[field] !== 0)
    return this.random.below(5) === 0 || used.length === 0 ? pick(this.random, HEAD) : pick(this.random, used)
  }

  private stateOf(worker: WorkerRuntime, { context, pass }: Kept): State {
    const { container, engine } = installDistAutograd(worker)
    const found = context === null ? undefined : container.find(context)
    const under = pass === null ? undefined : found?.passes.get(pass)
    if (this.leaving.has(worker)) return 'leaving'
    if (worker.info.id >= NAMES.length) return 'restarted'
    if (under !== undefined) return workerOf(under.id) === worker.info.id ? 'root' : under.gathered ? 'passive' : 'participant'
    if (context !== null && found === undefined) return 'released'
    if (engine.currentBackwardPasses > 0) return this.isRoot(worker) ? 'root' : 'participant'
    if (container.size > 0) return 'forward'
    return worker.debugInfo().servingCalls! > 0 ? 'serving' : 'idle'
  }

  private isRoot(worker: WorkerRuntime): boolean {
    for (const { passes } of installDistAutograd(worker).container.values())
      for (const { root } of passes.values()) if (root === worker.info.id) return true
    return false
  }

  private otherBody(body: readonly unknown[]): readonly unknown[] {
    const { random } = this
    if (body.length === 0) return [this.other(null)]
    if (random.below(12) === 0) return random.coin() ? body.slice(1) : [...body, this.other(null)]
    const at = random.below(body.length)
    return body.map((value, i) => (i === at ? this.other(value) : value))
  }

  /** Something else: of the same kind, of another, or nothing. */
  private other(value: unknown, field = ''): unknown {
    const { random } = this
    if (random.below(5) === 0) return pick(random, ODD)()
    if (field !== '' && random.below(8) === 0) return null
    if (field === 'lineage') return this.otherNumbers(Array.isArray(value) ? value : [])
    if (field === 'requestId' || (field === '' && Number.isSafeInteger(value))) return pick(random, [...NUMBERS, ...this.requests])
    if (field === 'deadlineMs' || typeof value === 'number') return pick(random, NUMBERS)
    if (typeof value === 'bigint' || value === null) return this.otherId((value ?? 0n) as bigint)
    if (Array.isArray(value) && value.length > 0) {
      const at = random.below(value.length)
      switch (random.below(4)) {
        case 0:
          return value.slice(0, at)
        case 1:
          return [...value, ...value]
        default:
          return value.map((element, i) => (i === at ? this.other(element) : element))
      }
    }
    if (Array.isArray(value)) return [this.other(null)]
    if (isTensor(value)) return pick(random, [ones([3]), ones([2, 2]), ones([0])])
    return pick(random, ODD)()
  }

  private otherId(id: bigint): bigint {
    const { random, ids } = this
    const worker = BigInt(pick(random, [...UNKNOWN_WORKERS, 0, 1, 2, 3]))
    const odd = [
      0n,
      1n,
      (1n << 48n) - 1n,
      (1n << 64n) - 1n,
      id + 1n,
      (worker << 48n) | (id & 0xffffn),
      (worker << 48n) | BigInt(random.below(100)),
    ]
    return random.coin() && ids.length > 0 ? pick(random, ids) : pick(random, odd)
  }

  private otherNumbers(room: readonly number[]): unknown {
    const { random } = this
    const at = random.below(room.length + 1)
    switch (random.below(4)) {
      case 0:
        return room.slice(0, at)
      case 1:
        return [...room, pick(random, NUMBERS), pick(random, UNKNOWN_WORKERS), 1, 0]
      case 2:
        // A plan of nothing but aborted passes.
        return [1, pick(random, [0, 5, 2 ** 36, 2 ** 48, 2 ** 52])]
      default:
        return [...room.slice(0, at), pick(random, [...NUMBERS, ...UNKNOWN_WORKERS]), ...room.slice(at + 1)]
    }
  }
}

const NUMBERS: readonly number[] = [
  -1,
  0,
  1,
  2,
  3,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 31,
  2 ** 36,
  2 ** 48,
  Number.MAX_SAFE_INTEGER,
]
const ODD: readonly (() => unknown)[] = [
  () => null,
  () => undefined,
  () => -1,
  () => Number.NaN,
  () => 2 ** 48,
  () => -1n,
  () => (1n << 64n) - 1n,
  () => '',
  () => 'odd',
  () => true,
  () => false,
  () => [],
  () => [[]],
  () => ({}),
  () => new Array(5000).fill(0),
  () => new Array(50).fill([65_535, 1]),
  () => ones([2]),
  () => new RangeError('forged'),
]

/** Other bytes: one, some, none at the end, or more of them. */
function damaged(random: Random, { header, segments }: Frame): Frame {
  let bytes = new Uint8Array(header)
  switch (random.below(5)) {
    case 0:
      bytes = bytes.slice(0, random.below(bytes.length))
      break
    case 1: {
      const longer = new Uint8Array(bytes.length + 1 + random.below(9))
      longer.set(bytes)
      bytes = longer
      break
    }
    default:
      // Mostly near the head.
      for (let hits = 1 + random.below(3); hits > 0; hits--) {
        const within = random.coin() ? Math.min(bytes.length, 40) : bytes.length
        bytes[random.below(within)] = random.below(256)
      }
  }
  return { header: bytes, segments: random.below(10) === 0 ? segments.slice(1) : segments }
}

function note<T>(list: T[], value: T): void {
  list.push(value)
  if (list.length > 40) list.shift()
}

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)] as T
}

/** Some steps, several under way at once. */
async function program(account: Account, random: Random): Promise<void> {
  const { info, clock } = currentWorker()
  const held: RRef<Cell>[] = []
  const underWay: Promise<unknown>[] = []
  const endMs = clock.now() + PROGRAM_MS - 100
  // A worker that is not there has no map.
  for (const name of NAMES) if (name !== info.name) attempt(() => currentRuntime().setDeviceMap(name, {}))
  const collective = () => account.wait(`${info.name}#${info.id} collectives`, COLLECTIVES_MS, collectives)
  if (RANKS.includes(info.name)) underWay.push(collective())
  for (let step = 0; clock.now() < endMs && step < 14; step++) {
    const key = `${info.name}#${info.id}/${step}`
    const to = pick(random, NAMES)
    const next = pick(random, NAMES)
    const timeoutMs = TIMEOUT_MS
    const ms = random.coin() ? random.below(60) : 0
    const wait = <T>(what: string, make: () => PromiseLike<T>, limitMs = timeoutMs) =>
      underWay.push(account.wait(`${key} ${what}`, limitMs, async () => make()))
    const ref = held.length === 0 ? null : pick(random, held)
    switch (random.below(17)) {
      case 0:
        wait('echo', () => call(to, served.echo, [key, { x: [step] }, ms], { timeoutMs }))
        break
      case 1:
        wait('relay', () => call(to, served.relay, [key, [next, to]], { timeoutMs }))
        break
      case 2: {
        const called = attempt(() => call(to, served.echo, [key, 'cancelled', 400], { timeoutMs }))
        if (called === null) break
        wait('cancelled', () => called)
        underWay.push(sleep(ms).then(() => called.cancel()))
        break
      }
      case 3:
        wait('stream', () => takeAll(to, key, timeoutMs), 12 * timeoutMs)
        break
      case 4:
        wait('gather', () => meet(key, NAMES.slice(0, 3), { timeoutMs: timeoutMs / 2 }), timeoutMs / 2 + LEADER_GRACE_MS)
        break
      case 5:
        if (ref !== null) wait('use', () => call(to, served.useRef, [key, ref], { timeoutMs }))
        break
      case 6:
        if (ref !== null) wait('pass on', () => call(to, served.passOn, [key, ref, next], { timeoutMs }))
        break
      case 7:
        if (ref !== null) wait('fetch', () => ref.toHere({ timeoutMs }))
        break
      case 8:
        if (ref !== null) wait('watch', () => watched(ref, timeoutMs), 3 * timeoutMs)
        break
      case 9:
        wait('fail', () => call(to, served.fail, [key, ms], { timeoutMs }))
        break
      case 10:
        if (RANKS.includes(info.name)) underWay.push(collective())
        break
      default:
        underWay.push(passes(account, key, random, to, next))
    }
    if (held.length < 3) {
      const made = attempt(() => makeCell(to, key, { timeoutMs }))
      if (made !== null) held.push(made)
    } else if (random.below(3) === 0) held.shift()!.dispose()
    if (random.coin()) await underWay.at(-1)
    else if (random.below(2) === 0) await sleep(random.below(30))
  }
  await Promise.all(underWay)
  for (const ref of held) ref.dispose()
  if (isInitialized()) destroyProcessGroup()
}

const RANKS = NAMES.slice(0, 3)
/** A group is made, and used three times. */
const COLLECTIVES_MS = TIMEOUT_MS + LEADER_GRACE_MS + 3 * TIMEOUT_MS

/** Ranks meet or do not, as each comes here when it draws that. A group that is broken is made again. */
async function collectives(): Promise<void> {
  const timeoutMs = TIMEOUT_MS
  if (!isInitialized()) await initProcessGroup({ ranks: RANKS, timeoutMs })
  try {
    await allReduce(ones([3]), { timeoutMs })
    await send(ones([2]), 0)
  } catch (error) {
    if (isInitialized()) destroyProcessGroup()
    throw error
  }
  await recv(ones([2]), undefined, { timeoutMs })
  await allReduce(ones([1]), { timeoutMs })
}

/** Null if it throws at once, as a call to a worker that left. */
function attempt<T>(make: () => T): T | null {
  try {
    return make()
  } catch (error) {
    if (isPostgradError(error)) return null
    throw error
  }
}

async function takeAll(to: string, key: string, timeoutMs: number): Promise<void> {
  for await (const _ of stream(to, served.count, [key, 9], { timeoutMs, window: 2 })) await sleep(1)
}

async function watched(ref: RRef<Cell>, timeoutMs: number): Promise<void> {
  const [kept, given] = [monitor(ref), monitor(ref)]
  given.dispose()
  try {
    await stopActor(ref, { shutdownMs: 0 })
    await Promise.race([kept.down, sleep(timeoutMs)])
  } finally {
    kept.dispose()
  }
}

/** Two passes of one context, over two workers. */
async function passes(account: Account, key: string, random: Random, to: string, next: string): Promise<void> {
  const timeoutMs = TIMEOUT_MS
  const mode = random.below(3) === 0 ? 'fast' : 'smart'
  const createGraph = mode === 'smart' && random.below(3) === 0
  const fails = random.below(4) === 0
  const pauseMs = random.coin() ? random.below(40) : 0
  await account.wait(`${key} passes`, 6 * timeoutMs, () =>
    distAutograd.context(
      async (ctx) => {
        const x = ones([2], { requiresGrad: true })
        const args = fails ? ([failing, [x, next]] as const) : ([served.doubleAlong, [key, x, [next]]] as const)
        const y = await call(to, args[0] as typeof failing, args[1] as never, { timeoutMs })
        if (pauseMs > 0) await sleep(pauseMs)
        const backward = () =>
          account.wait(`${key} backward`, timeoutMs, () => ctx.backward([y.sum()], { timeoutMs, retainGraph: true, createGraph }))
        await Promise.all(random.coin() ? [backward(), backward()] : [backward()])
        if (pauseMs > 0) await sleep(pauseMs)
        await backward()
        ctx.gradients()
      },
      { mode },
    ),
  )
}

const after = (sim: SimCluster, ms: number) => new Promise<void>((resolve) => sim.world.clock.setTimer(ms, resolve))

/**
 * Whether a monitor's request was discarded, because a forged one with its number is still being served. A monitor sets no deadline, so it waits until that one has ended.
 * @param asked the worker that the monitor waits for
 */
export function isDiscardedMonitor({ what, requestId }: Wait, asker: WorkerRuntime, asked: WorkerRuntime): boolean {
  if (what !== WATCH_ACTOR || requestId === null) return false
  const served = [...asked.peers].find(({ info }) => info.id === asker.info.id)?.served.get(requestId)
  return served !== undefined && served.functionName !== WATCH_ACTOR
}

/** One run with so many forged messages. */
export async function forgedRun(seed: number, count: number): Promise<ForgedReport> {
  const account = freshAccount()
  const random = new Random(seed)
  const letters: Record<string, number> = {}
  const problems: string[] = []
  const state: { forger: Forger | null } = { forger: null }
  const how = random.below(4)
  try {
    await simulate({ workers: NAMES, seed, rpcTimeoutMs: TIMEOUT_MS, countMessages: false, shrink: false }, async (sim) => {
      const forger = new Forger(sim, random, count)
      state.forger = forger
      const begin = (name: string) => {
        const worker = sim.on(name)
        forger.tap(worker.runtime)
        const own = new Random(sim.world.seedFor(`${name}#${worker.info.id}`))
        return worker
          .run(program, account, own)
          .catch((error: unknown) => lives(sim, worker.runtime) && !isPostgradError(error) && problems.push(`${name} threw ${error}`))
      }
      const programs = NAMES.map(begin)
      await after(sim, PROGRAM_MS / 3)
      if (how === 1) programs.push(begin(sim.restart('worker2').info.name))
      if (how === 2) {
        const { runtime } = sim.on('worker3')
        forger.noteLeaving(runtime)
        const left = sim.on('worker3').run(() => account.wait('leave', TIMEOUT_MS, () => leave({ timeoutMs: TIMEOUT_MS })))
        programs.push(left as Promise<never>)
      }
      await Promise.all(programs)
      // Some are for the end of the group.
      await forger.finish(how === 3 ? 20 : 0)
      forger.paused = true
      await after(sim, SETTLE_MS)
      const living = NAMES.map((name) => sim.on(name)).filter(({ runtime }) => lives(sim, runtime) && !runtime.isClosed)
      for (const worker of living) {
        for (const { info } of living) {
          const ask = () => call(info.name, served.echo, ['alive', 1, 0], { timeoutMs: TIMEOUT_MS })
          let answer: unknown
          // A forged request may have the number of the next one, whose deadline ends it then.
          for (let tries = 0; tries < 4 && answer !== 1; tries++) answer = await worker.run(() => ask().catch((error) => error))
          // One of them may have said that the other, or itself, leaves.
          const hasLeft = isPostgradError(answer, 'WORKER_DIED') && answer.values.cause === 'left'
          if (answer !== 1 && !hasLeft) problems.push(`${worker.info.name} calls ${info.name}: ${answer}`)
        }
        // A forged request that is served (a value, an arrival at a gather) waits as long as that says; but for monitors nothing else is without a deadline.
        const { runtime } = worker
        const isDiscarded = (wait: Wait) =>
          living.some((other) => wait.on.some(({ id }) => id === other.runtime.info.id) && isDiscardedMonitor(wait, runtime, other.runtime))
        const unbound = runtime.waits().waits.filter(({ kind, within }) => within === null || !['value', 'gather'].includes(kind))
        for (const wait of unbound.filter((each) => !isDiscarded(each))) problems.push(`${worker.info.name} still waits for ${wait.what}`)
      }
      forger.paused = false
      if (how === 3) {
        await Promise.all(
          living.map((worker) =>
            worker.run(() => account.wait('shutdown', TIMEOUT_MS + LEADER_GRACE_MS, () => shutdown({ timeoutMs: TIMEOUT_MS }))),
          ),
        )
        await after(sim, SETTLE_MS)
      }
      for (const { runtime } of living) {
        for (const [reason, times] of Object.entries(runtime.deadLetters().counts)) letters[reason] = (letters[reason] ?? 0) + times
      }
      account.close(sim)
    })
  } catch (error) {
    problems.push(`${UNCAUGHT}: ${(error as Error).stack}`)
  }
  const late = account.problems.filter((problem) => !problem.includes('was run'))
  return { seed, forged: state.forger?.forged ?? 0, met: state.forger?.met ?? new Map(), letters, ends: account.ends, late, problems }
}

/** The sums of many runs. */
export interface ForgedSums extends Omit<ForgedReport, 'seed' | 'letters' | 'problems' | 'late'> {
  readonly letters: Record<string, number>
  readonly uncaught: number
  /** With their seeds; the first few. */
  readonly late: string[]
  readonly problems: string[]
}

const PROBLEMS_KEPT = 20

/** So many forged messages, over as many seeds as it takes; prints what became of them. */
export async function forgedRuns(first: number, messages: number, perRun: number): Promise<ForgedSums> {
  const sums = {
    forged: 0,
    uncaught: 0,
    met: new Map<string, number>(),
    ends: new Map<string, number>(),
    letters: {} as Record<string, number>,
  }
  const [late, problems]: [string[], string[]] = [[], []]
  const startMs = performance.now()
  let seed = first
  for (; sums.forged < messages; seed++) {
    const report = await forgedRun(seed, perRun)
    sums.forged += report.forged
    for (const [reason, times] of Object.entries(report.letters)) sums.letters[reason] = (sums.letters[reason] ?? 0) + times
    for (const part of ['met', 'ends'] as const)
      for (const [key, times] of report[part]) sums[part].set(key, (sums[part].get(key) ?? 0) + times)
    sums.uncaught += report.problems.filter((problem) => problem.startsWith(UNCAUGHT)).length
    for (const [from, to] of [
      [report.late, late],
      [report.problems, problems],
    ] as const) {
      for (const problem of from) if (to.length < PROBLEMS_KEPT) to.push(`seed ${seed}: ${problem}`)
    }
    // Whatever is wrong with every run need not be seen in all of them.
    if (problems.length === PROBLEMS_KEPT || late.length === PROBLEMS_KEPT) break
  }
  const seconds = Math.round((performance.now() - startMs) / 1000)
  console.log(
    `seeds ${first} to ${seed - 1}, ${perRun} messages each, ${seconds} s: ${sums.forged} forged messages, ${sums.uncaught} uncaught errors, ` +
      `${late.length} late waits, dead letters ${JSON.stringify(sums.letters)}, waits that ended with ${JSON.stringify(Object.fromEntries(sums.ends))}`,
  )
  return { ...sums, late, problems }
}
