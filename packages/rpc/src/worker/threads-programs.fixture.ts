/** Functions that the workers of `threads.real.test.ts` expose, in the test's thread and in the others. */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Future } from '@postgrad/base'
import { type Tensor, tensor, zeros } from '@postgrad/tensor'
import { installKernelPause } from '@postgrad/tensor/internal'
import { Actor } from '../api/actor.js'
import { call, currentRuntime, currentSignal, remote } from '../api/api.js'
import { workerLocal } from '../api/worker-local.js'
import { asyncExecution } from '../common/async-execution.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'

export const echo = <T>(value: T): T => value
export const add = (a: number, b: number): number => a + b
export const never = (): Promise<never> => new Promise<never>(() => {})
export const callNever = (to: string): Promise<never> => call(to, never)
export const fails = (): never => {
  throw new RangeError('over there', { cause: 'why' })
}
export const exits = (): void => process.exit(3)
export const info = (): Record<string, number> => currentRuntime().debugInfo()
/** Ends when nobody waits for it any more, and notes why. */
export const untilGivenUp = async (): Promise<void> => {
  const signal = currentSignal()
  while (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1))
  log.push((signal.reason as { code: string }).code)
}
export const callUntilGivenUp = (to: string): Promise<void> => call(to, untilGivenUp)
export const log: string[] = []
export const note = (text: string): void => {
  log.push(text)
}
export const notes = (): readonly string[] => log
export const bounce = async (hops: number, to: readonly number[]): Promise<number> => {
  const [next, ...rest] = to
  return hops === 0 ? 0 : 1 + (await call(next!, bounce, [hops - 1, [...rest, next!]]))
}
/** Keeps its thread busy. */
export const spin = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}
/**
 * A product of n × n matrices, in whose pauses this worker looks at its links. It says "begun" to `to` first, which can only leave in the first
 * of them. Returns how many pauses there were and the number of the first in which something had arrived (0: none).
 */
export const product = (n: number, to: number): { readonly pauses: number; readonly seenAt: number } => {
  const worker = currentRuntime()
  let pauses = 0
  let seenAt = 0
  const remove = installKernelPause(() => {
    pauses++
    if (worker.lookAround() > 0 && seenAt === 0) seenAt = pauses
  })
  try {
    void call(to, note, ['begun'])
    zeros([n, n]).matmul(zeros([n, n]))
    return { pauses, seenAt }
  } finally {
    remove()
  }
}
export const scale = (t: Tensor, by: number): Tensor => {
  const { host: array } = t.storage as { host: Float32Array }
  for (let i = 0; i < array.length; i++) array[i]! *= by
  return t
}

/** Calls, nested calls, and values of all kinds. */
export async function manyCalls(): Promise<Readonly<Record<string, unknown>>> {
  const value = { list: [1, -0, 5n, undefined, new Date(5), new Map([[1, new Set(['x'])]]), /x/g], bytes: new Uint8Array([1, 2]) }
  const t = tensor([
    [1, 2],
    [3, 4],
  ])
  return {
    sum: await call('worker1', add, [1, 2]),
    bounced: await call('worker1', bounce, [200, [2, 0, 1]]),
    value: await call('worker1', echo, [value]),
    scaled: (await call('worker1', scale, [t, 2])).toArray(),
    t: t.toArray(),
  }
}

export class Counter {
  private n: number
  constructor(n: number) {
    this.n = n
  }
  async add(m: number): Promise<number> {
    await Promise.resolve()
    this.n += m
    return this.n
  }
}

/** Uses a reference that came from elsewhere, and gives it up. */
export const use = async (ref: RRef<Counter>): Promise<number> => {
  using counter = ref
  if (!counter.confirmedByOwner()) throw new Error('it is not confirmed')
  return counter.call('add', [1])
}

/** Makes references and forgets them, as a careless program does. */
export const forget = async (to: number, count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await remote(to, Counter, [i]).call('add', [1])
}

/** The sum of what so many callers bring, which all of them get. */
export class Meeting {
  private readonly size: number
  private brought: number[] = []
  private future = new Future<number>()
  constructor(size: number) {
    this.size = size
  }
  bring(n: number): Future<number> {
    const { future } = this
    this.brought.push(n)
    if (this.brought.length === this.size) {
      future.setResult(this.brought.reduce(add))
      this.brought = []
      this.future = new Future<number>()
    }
    return future
  }
}
asyncExecution(Meeting.prototype.bring)

export const bringOften = async (ref: RRef<Meeting>, times: number): Promise<number[]> => {
  using meeting = ref
  const sums: number[] = []
  for (let i = 0; i < times; i++) sums.push(await meeting.call('bring', [i]))
  return sums
}

/** How many numbers have been given, and whether it has ended. */
export const given = { numbers: 0, ended: false }
export const howMany = (): { numbers: number; ended: boolean } => given
export async function* numbers(n: number): AsyncGenerator<number> {
  Object.assign(given, { numbers: 0, ended: false })
  try {
    for (let i = 0; i < n; i++) {
      given.numbers++
      yield i
    }
  } finally {
    given.ended = true
  }
}

/** How many connections this thread has open. */
export const connections = (kind: 'PipeWrap' | 'TCPSocketWrap'): number =>
  process.getActiveResourcesInfo().filter((name) => name === kind).length

/** Collects what is forgotten, and lets finalizers run. */
export const collect = async (): Promise<number> => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let i = 0; i < 5; i++) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return currentRuntime().rrefs.finalized
}

export class Observer {
  async run(agent: RRef<Agent>, steps: number): Promise<number> {
    using ref = agent
    let sum = 0
    for (let i = 0; i < steps; i++) sum += await ref.call('act', [i])
    return sum
  }
}

/** Awaits its observers, which ask it. */
export class Agent extends Actor {
  static readonly serial = true
  private episodes = 0
  private inside = 0

  act(state: number): number {
    return state
  }

  async runEpisode(observers: readonly RRef<Observer>[], steps: number): Promise<readonly number[]> {
    if (++this.inside > 1) throw new Error('two episodes at once')
    const sums = await Promise.all(observers.map((observer) => observer.call('run', [this.self, steps])))
    for (const observer of observers) observer.dispose()
    this.inside--
    this.setTimer(1, this.count, [])
    return sums
  }

  private count(): void {
    this.episodes++
  }

  counted(): number {
    return this.episodes
  }
}

/** Episodes that are called all at once, and what the agent has counted of them in the end. */
export async function manyEpisodes(count: number): Promise<{ readonly sums: readonly (readonly number[])[]; readonly counted: number }> {
  using agent = remote('worker1', Agent, [])
  const observers = ['worker0', 'worker1', 'worker2'].map((name) => remote(name, Observer, []))
  const sums = await Promise.all(Array.from({ length: count }, () => agent.call('runEpisode', [observers, 10])))
  for (const observer of observers) observer.dispose()
  let counted = 0
  // By a timer of the agent.
  while (counted < count) counted = await agent.call('counted', [])
  return { sums, counted }
}

export class Part extends Actor {
  private readonly name: string
  constructor(name: string) {
    super()
    this.name = name
  }
  where(): string {
    return `${this.name} on ${currentRuntime().info.name}`
  }
  /** Gives items until it is ended. */
  async *items(): AsyncGenerator<number> {
    try {
      for (let i = 0; ; i++) {
        yield i
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    } finally {
      log.push(`${this.name} gives no more`)
    }
  }
  crash(): void {
    this.send(this.fails, [])
  }
  private fails(): never {
    throw new RangeError(`${this.name} broke`)
  }
}

const visits = workerLocal(() => ({ n: 0 }))
export const visit = (): number => ++visits().n

expose({
  Part,
  manyCalls,
  manyEpisodes,
  visit,
  untilGivenUp,
  callUntilGivenUp,
  echo,
  add,
  callNever,
  fails,
  exits,
  info,
  connections,
  note,
  notes,
  spin,
  product,
  scale,
  Counter,
  use,
  forget,
  collect,
})
expose({ Meeting, bringOften, howMany, numbers })
// Other names, since `places.real.test.ts` also has programs that expose an agent of their own.
expose({ serialAgent: Agent, askingObserver: Observer, neverEnds: never, bounceAround: bounce })
