/**
 * The account of the tests under faults: how often each request was run, and that everything that a worker waited for ended by its deadline.
 * The functions that count are exposed here; the account in force is the one that `use` made, since simulated workers share their modules.
 */
import { defineFunction, mul } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { type CallOptions, call, expose, type RRef, remote, type WorkerRuntime } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import type { SimCluster } from '../simulate/simulate.js'

/** The identity, whose backward throws. */
export const failsBackward = defineFunction({
  name: 'FailsBackward',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: () => {
    throw new TypeError('a backward that fails on purpose')
  },
}) as unknown as (x: Tensor) => Tensor

/** A deadline is so late at most on an exact clock (RPC-25). */
const GRAIN_MS = 10

interface Wait {
  readonly what: string
  readonly worker: WorkerRuntime
  readonly dueMs: number
}

export class Account {
  /** How often each way to end was met: 'value', or a code. */
  readonly ends = new Map<string, number>()
  /** Broken promises. */
  readonly problems: string[] = []
  private readonly runs = new Map<string, number>()
  private readonly waits = new Map<number, Wait>()
  private waited = 0
  private closed = false

  get requestsRun(): number {
    return this.runs.size
  }

  /** A request is run here. */
  ran(key: string): void {
    const times = (this.runs.get(key) ?? 0) + 1
    this.runs.set(key, times)
    if (times > 1) this.problems.push(`${key} was run ${times} times`)
  }

  /** Waits as the current worker, and gives how it ended: the value, or the code of the error. */
  async wait<T>(what: string, timeoutMs: number, make: () => PromiseLike<T>): Promise<T | string> {
    const worker = currentRuntime()
    const startMs = worker.clock.now()
    const id = this.waited++
    this.waits.set(id, { what: `${what} on ${worker.info.name} (id ${worker.info.id})`, worker, dueMs: startMs + timeoutMs })
    let end = 'value'
    try {
      return await make()
    } catch (error) {
      end = isPostgradError(error) ? error.code : String(error)
      return end
    } finally {
      if (!this.closed) this.count(id, what, end, worker.clock.now() - startMs - timeoutMs)
    }
  }

  private count(id: number, what: string, end: string, lateMs: number): void {
    this.ends.set(end, (this.ends.get(end) ?? 0) + 1)
    this.waits.delete(id)
    if (lateMs > GRAIN_MS) this.problems.push(`${what} ended with ${end} ${lateMs} ms after its deadline`)
  }

  /** Counts what a living worker still waits for though its time is over; nothing is counted after it, as the end of a simulation shuts the dead down too. */
  close(sim: SimCluster): void {
    const nowMs = sim.world.nowMs
    const late = [...this.waits.values()].filter(({ worker, dueMs }) => dueMs + GRAIN_MS < nowMs && lives(sim, worker))
    this.problems.push(...late.map(({ what, dueMs }) => `${what} should have ended at ${dueMs} ms`))
    this.closed = true
  }
}

export function lives(sim: SimCluster, worker: WorkerRuntime): boolean {
  const { name } = worker.info
  return sim.on(name).runtime === worker && !sim.world.isCrashed(name)
}

let account = new Account()

/** From now on runs are counted in a fresh account. */
export function freshAccount(): Account {
  account = new Account()
  return account
}

export class Cell {
  private sum: number
  constructor(key: string, sum: number) {
    account.ran(key)
    this.sum = sum
  }
  add(key: string, n: number): number {
    account.ran(key)
    this.sum += n
    return this.sum
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => currentRuntime().clock.setTimer(ms, resolve))

/** Comes back after a while. */
const echo = async (key: string, value: unknown, ms: number): Promise<unknown> => {
  account.ran(key)
  if (ms > 0) await sleep(ms)
  return value
}
const fail = async (key: string, ms: number): Promise<never> => {
  account.ran(key)
  if (ms > 0) await sleep(ms)
  throw new RangeError('thrown on purpose')
}
/** Calls on, through the workers that are left. */
const relay = async (key: string, path: readonly string[]): Promise<string> => {
  account.ran(key)
  const [next, ...rest] = path
  if (next === undefined) return key
  return await call(next, relay, [`${key}/${next}`, rest])
}
/** Uses a reference that it was sent, and gives it up. */
const useRef = async (key: string, ref: RRef<Cell>): Promise<number> => {
  account.ran(key)
  try {
    return await ref.call('add', [`${key}/add`, 1])
  } finally {
    ref.dispose()
  }
}
/** Sends on a reference that it was sent, then gives it up. */
const passOn = async (key: string, ref: RRef<Cell>, to: string): Promise<number> => {
  account.ran(key)
  try {
    return await call(to, useRef, [`${key}/${to}`, ref])
  } finally {
    ref.dispose()
  }
}
function* count(key: string, to: number): Generator<number> {
  account.ran(key)
  for (let n = 0; n < to; n++) yield n
}
/** Doubles, here and on the workers of the path. */
const doubleAlong = async (key: string, x: Tensor, path: readonly string[]): Promise<Tensor> => {
  account.ran(key)
  const y = mul(x, 2)
  const [next, ...rest] = path
  return next === undefined ? y : await call(next, doubleAlong, [`${key}/${next}`, y, rest])
}
expose({
  'faults.doubleAlong': doubleAlong,
  'faults.count': count,
  'faults.Cell': Cell,
  'faults.echo': echo,
  'faults.fail': fail,
  'faults.relay': relay,
  'faults.useRef': useRef,
  'faults.passOn': passOn,
})

export const served = { echo, fail, relay, useRef, passOn, doubleAlong, count }

/** Makes a cell elsewhere; null where that cannot even be tried. */
export function makeCell(to: string, key: string, options: CallOptions): RRef<Cell> | null {
  try {
    return remote(to, Cell, [key, 0], options) as RRef<Cell>
  } catch (error) {
    if (isPostgradError(error, 'WORKER_DIED')) return null
    throw error
  }
}
