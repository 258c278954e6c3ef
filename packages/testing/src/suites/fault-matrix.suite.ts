/**
 * Every kind of message under every fault, in a program that uses all of them: losses, repeats and delays change no result; after a crash or a
 * restart no wait ends late, nothing runs twice, and survivors keep nothing.
 */
import { expect } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { allReduce, destroyProcessGroup, initProcessGroup } from '@postgrad/process-group'
import { call, currentWorker, expose, monitor, type RRef, stopActor, stream } from '@postgrad/rpc'
import { currentRuntime, meet } from '@postgrad/rpc/internal'
import type { FaultAction } from '@postgrad/sim'
import { ones, type Tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import type { FaultRule } from '../faults/message-kind.js'
import { MESSAGE_KINDS, type MessageKind } from '../faults/message-kind.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'
import { type Account, type Cell, failsBackward, freshAccount, lives, makeCell, served, sleep } from './faulty.suite.js'

export const WORKERS = ['worker0', 'worker1', 'worker2']
export const TIMEOUT_MS = 3000
/** A wait for the others' leader has a second more. */
const GATHER_MS = 1500

/** Kinds that this program does not send, and why. */
const ABSENT: Readonly<Record<string, string>> = {
  LINEAGE: 'goes to a worker that joins behind some 26,000 messages',
  UNREADABLE: 'no fault damages what a frame holds',
  GROUP_UPDATE: 'of leave and shutdown, which end a worker: see below',
}

const double = (x: Tensor): Tensor => mul(x, 2)
/** Over both other workers, and back. */
const doubleBoth = async (x: Tensor): Promise<Tensor> => mul(await call('worker2', double, [x]), 3)
const failing = async (x: Tensor): Promise<Tensor> => failsBackward(await call('worker2', double, [x]))
function* upTo(to: number): Generator<number> {
  for (let n = 0; n < to; n++) yield n
}
const streamed = async (): Promise<string> => {
  const items: number[] = []
  for await (const n of stream('worker1', upTo, [5], { window: 2 })) items.push(n)
  return items.join()
}
const gather = async (): Promise<string> => [...(await meet(currentWorker().info.name, WORKERS, { timeoutMs: GATHER_MS })).values()].join()
/** Ranks meet, and each gives the sum of what all have. */
const sumTogether = async (): Promise<number> => {
  await initProcessGroup({ ranks: WORKERS, name: 'matrix', timeoutMs: GATHER_MS })
  try {
    // Two at once, and a message that says that a rank has gone.
    const [sum] = await Promise.all(
      [1, 2].map((n) => allReduce(ones([1]).mul(n * (currentWorker().info.id + 1)), { timeoutMs: GATHER_MS / 3 })),
    )
    return sum!.itemSync()
  } finally {
    destroyProcessGroup()
  }
}
expose({
  'matrix.meet': sumTogether,
  'matrix.count': upTo,
  'matrix.gather': gather,
  'matrix.double': double,
  'matrix.doubleBoth': doubleBoth,
  'matrix.failing': failing,
})

/** Uses every kind of message, as worker0; gives how each step ended. */
async function program(account: Account): Promise<unknown[]> {
  const wait = <T>(what: string, make: () => PromiseLike<T>) => account.wait(what, TIMEOUT_MS, make)
  const ends: unknown[] = []
  // Nobody waits for its message.
  currentRuntime().setDeviceMap('worker1', {})
  ends.push(await wait('echo', () => call('worker1', served.echo, ['echo', 'x', 1])))
  ends.push(await wait('fail', () => call('worker2', served.fail, ['fail', 0])))
  ends.push(await wait('relay', () => call('worker1', served.relay, ['relay', ['worker2', 'worker0', 'worker1']])))
  const cell = makeCell('worker1', 'cell', { timeoutMs: TIMEOUT_MS }) as RRef<Cell> | null
  if (cell !== null) {
    ends.push(
      ...(await Promise.all([
        wait('add', () => cell.call('add', ['add', 2])),
        wait('use', () => call('worker2', served.useRef, ['use', cell])),
        wait('pass on', () => call('worker2', served.passOn, ['pass on', cell, 'worker0'])),
      ])),
    )
    cell.dispose()
  }
  const value = makeCell('worker2', 'value', { timeoutMs: TIMEOUT_MS })
  if (value !== null) {
    // An instance of a class cannot travel; the owner says so.
    ends.push(await wait('fetch', () => value.toHere()))
    const given = monitor(value)
    const watched = monitor(value)
    const down = wait('down', () => watched.down.then(({ normal }) => `normal: ${normal}`))
    ends.push(await wait('used while watched', () => value.call('add', ['watched', 1])))
    given.dispose()
    ends.push((await wait('stop', () => stopActor(value))) ?? 'stopped')
    ends.push(await down)
    value.dispose()
  }
  ends.push(await wait('stream', streamed))
  const cancelled = call('worker2', served.echo, ['cancelled', 'x', 2000])
  const cancels = wait('cancel', () => cancelled)
  // By then it has begun, also when it was lost three times.
  await sleep(1000)
  cancelled.cancel()
  ends.push(await cancels)
  ends.push(...(await Promise.all([wait('gather', gather), ...['worker1', 'worker2'].map((to) => wait('gather', () => call(to, gather)))])))
  ends.push(
    ...(await Promise.all([wait('meet', sumTogether), ...['worker1', 'worker2'].map((to) => wait('meet', () => call(to, sumTogether)))])),
  )
  const leaf = ones([2], { requiresGrad: true })
  const passes = (fn: (x: Tensor) => Promise<Tensor>) =>
    distAutograd.context(async (ctx) => {
      const y = await wait('forward', () => call('worker1', fn, [leaf]))
      if (typeof y === 'string') return y
      const loss = y.sum()
      const roots = [loss, y.mul(2).sum(), loss]
      // Twice, since the end of a pass is sent with the next.
      for (const retainGraph of [true, false]) {
        ends.push(await wait('backward', () => ctx.backward(roots, { retainGraph, timeoutMs: TIMEOUT_MS })))
      }
      return ctx.gradients().get(leaf)?.toArray()
    })
  ends.push(await passes(doubleBoth))
  ends.push(await passes(failing))
  return ends
}

const after = (sim: SimCluster, ms: number) => new Promise<void>((resolve) => sim.world.clock.setTimer(ms, resolve))

interface Outcome {
  readonly ends: unknown[] | 'crashed'
  readonly injected: number
}

async function run(seed: number, faults: readonly FaultRule[], allow: readonly string[]): Promise<Outcome> {
  const account = freshAccount()
  let dead: string[] = []
  const simulation = await simulate({ workers: WORKERS, seed, rpcTimeoutMs: TIMEOUT_MS, faults }, async (sim) => {
    const { runtime } = sim.on('worker0')
    const ends = await sim
      .on('worker0')
      .run(program, account)
      .catch((error: unknown): 'crashed' => {
        if (lives(sim, runtime)) throw error
        return 'crashed'
      })
    // Late messages have come, and waits have ended.
    await after(sim, 4 * TIMEOUT_MS)
    account.close(sim)
    dead = WORKERS.filter((name) => sim.world.isCrashed(name))
    return ends
  })
  expect(account.problems).toEqual([])
  expectClean(simulation, { except: dead, allow })
  return { ends: simulation.result, injected: Object.values(simulation.faults).reduce((sum, count) => sum + count, 0) }
}

interface Counted {
  readonly ends: unknown[]
  readonly counts: ReadonlyMap<string, number>
}

const countedBySeed = new Map<number, Promise<Counted>>()

/** How a run without faults ends, and how many frames of each kind pass in it. */
export function counted(seed: number): Promise<Counted> {
  let found = countedBySeed.get(seed)
  if (found === undefined) {
    found = count(seed)
    countedBySeed.set(seed, found)
  }
  return found
}

async function count(seed: number): Promise<Counted> {
  const counts = new Map<string, number>()
  const rule: FaultRule = {
    match: ({ kind }) => {
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      return false
    },
    do: 'pass',
  }
  const { ends } = await run(seed, [rule], [])
  return { ends: ends as unknown[], counts }
}

export const FAULTS: readonly (readonly [string, Omit<FaultRule, 'match' | 'do'> & { readonly do: FaultAction }])[] = [
  ['drop', { do: 'drop', times: 1 }],
  ['drop three times', { do: 'drop', timesEach: 3 }],
  ['duplicate', { do: 'duplicate' }],
  ['duplicate later', { do: 'duplicate', delayMs: 300 }],
  ['delay', { do: 'delay', delayMs: 300 }],
  ['crash', { do: 'crash' }],
  ['crash of the sender', { do: 'crash' }],
  ['restart', { do: 'restart', delayMs: 30 }],
]

export const KINDS: readonly MessageKind[] = [...MESSAGE_KINDS.filter((kind) => ABSENT[kind] === undefined), 'SESSION_ACK']

/** One kind of message under every fault. */
export async function underEveryFault(kind: MessageKind, seed: number): Promise<void> {
  const { ends, counts } = await counted(seed)
  const sums = ends.map((end) => (typeof end === 'number' ? 'a sum' : end))
  const frames = counts.get(kind) as number
  for (const [index, [name, fault]] of FAULTS.entries()) {
    // Not the same one under each fault, nor under each seed.
    const nth = 1 + ((seed * 7 + index * 3) % frames)
    const isEnd = fault.do === 'crash' || fault.do === 'restart'
    const worker = name === 'crash of the sender' ? `worker${1 + (seed % 2)}` : undefined
    // Each message is lost so often, or the nth meets it.
    const match = fault.timesEach === undefined ? { kind, nth } : { kind }
    const rule: FaultRule = { match, ...fault, ...(worker === undefined ? {} : { worker }) }
    const at = { seed, kind, fault: name, nth }
    const outcome = await run(seed, [rule], isEnd ? ['deadLetters'] : []).catch((error: Error) => {
      throw new Error(`${JSON.stringify(at)}: ${error.message}`, { cause: error })
    })
    expect({ ...at, met: outcome.injected > 0 }).toEqual({ ...at, met: true })
    if (isEnd) continue
    // The order of three additions is the seed's and the faults'.
    const got = (outcome.ends as unknown[]).map((end) => (typeof end === 'number' ? 'a sum' : end))
    expect({ ...at, ends: got }).toEqual({ ...at, ends: sums })
  }
}
