/** Calls are typed end to end: lines that the compiler accepts, and lines that it refuses. If it does not refuse one, the build fails. */

import { expect, test } from '@jest/globals'
import { collectAll, Future, waitAll } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import type { Sendable } from '@postgrad/wire'
import type { ActorHandle } from '../api/actor-handle.js'
import { call, remote, rpcAsync, stream } from '../api/api.js'
import { supervise } from '../api/supervise.js'
import { asyncExecution } from '../common/async-execution.js'
import type { RRef } from '../references/rref.js'
import type { RemoteStream } from './stream.js'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only when the two types are one. */
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

const add = (a: number, b: number): number => a + b
const later = async (name: string): Promise<{ readonly name: string }> => ({ name })
const nothing = (): void => {}
async function* count(to: number): AsyncGenerator<number, string> {
  yield to
  return 'end'
}
class Observer {
  readonly seed: number
  constructor(seed: number) {
    this.seed = seed
  }
  step(action: Tensor): { readonly reward: number } {
    return { reward: action.shape.length }
  }
  static make(seed: number): Observer {
    return new Observer(seed)
  }
  async *frames(): AsyncGenerator<Uint8Array> {}
}

interface Tree {
  readonly value: Tensor | null
  readonly sums: ReadonlyMap<string, Float32Array>
  readonly children: readonly Tree[]
  readonly failure?: Error | undefined
}
interface Settings {
  readonly seed: number
  readonly onStep?: () => void
}
/** As a program writes it for a reference of any kind. */
interface Closable {
  dispose(): void
}
const grow = (_tree: Tree, _at: Date, _rest: readonly [number, bigint?]): void => {}
const apply = (_fn: (x: number) => number): void => {}
const wait = (_value: Promise<number>): void => {}
const mark = (_key: symbol, _seen: WeakMap<object, number>): void => {}
const begin = (_settings: Settings): void => {}
const show = (_observer: Observer): void => {}
const close = (_what: readonly Closable[]): void => {}
const any = (_value: unknown): void => {}
const each = (_values: Iterable<number>): void => {}
class Agent {
  // biome-ignore lint/complexity/noUselessConstructor: its parameters are what is tested
  constructor(_observers: readonly RRef<Observer>[], _policy: () => number = () => 0) {}
  take(_fn: () => void): void {}
  seeTree(_tree: Tree): number {
    return 0
  }
}

/** Never run: only the compiler reads it. */
function accepted(ref: RRef<Observer>, action: Tensor): void {
  const sum = call('w', add, [1, 2])
  same<typeof sum, Future<number>>()
  const named = rpcAsync(1, later, ['x'], { timeoutMs: 5 })
  same<typeof named, Future<{ readonly name: string }>>()
  const none = call({ name: 'w', id: 1 }, nothing)
  same<typeof none, Future<void>>()
  const observer = remote('w', Observer, [7])
  same<typeof observer, RRef<Observer>>()
  const made = remote('w', Observer.make, [7])
  same<typeof made, RRef<Observer>>()
  const value = remote('w', later, ['x'])
  same<typeof value, RRef<{ readonly name: string }>>()
  const step = ref.call('step', [action])
  same<typeof step, Future<{ readonly reward: number }>>()
  const items = stream('w', count, [3], { window: 4 })
  same<typeof items, RemoteStream<number>>()
  const frames = ref.stream('frames', [])
  same<typeof frames, RemoteStream<Uint8Array>>()
  const both = waitAll([sum, named])
  same<typeof both, Future<[number, { readonly name: string }]>>()
  const all = collectAll([sum, none])
  same<typeof all, Future<[Future<number>, Future<void>]>>()
  const marked = asyncExecution((n: number) => new Future<number>().then((m) => m + n))
  const shared = call('w', marked, [1])
  same<typeof shared, Future<number>>()
  const tree: Tree = { value: action, sums: new Map(), children: [] }
  same<Sendable<string | undefined>, string | undefined>()
  void call('w', grow, [tree, new Date(0), [1]])
  void call('w', grow, [{ ...tree, children: [tree] }, new Date(0), [1, 2n]])
  void call('w', begin, [{ seed: 1 }])
  void call('w', close, [[ref]])
  void call('w', any, [tree as unknown])
  void call('w', each, [[1, 2]])
  void call('w', each, [new Set([1])])
  void call('w', each, [new Float32Array(2)])
  void remote('w', Agent, [[ref]])
}

/** Never run. */
function refused(ref: RRef<Observer>, agent: RRef<Agent>, handle: ActorHandle<Agent>): void {
  // @ts-expect-error too few arguments
  void call('w', add, [1])
  // @ts-expect-error an argument of another type
  void call('w', add, [1, 'two'])
  // @ts-expect-error no arguments where there must be some
  void call('w', add)
  // @ts-expect-error a name is not a function
  void call('w', 'add', [1, 2])
  // @ts-expect-error no such worker can be
  void call(null, nothing)
  // @ts-expect-error no such option
  void call('w', nothing, [], { timeout: 5 })
  // @ts-expect-error the constructor takes a number
  void remote('w', Observer, ['seed'])
  // @ts-expect-error code does not travel
  void call('w', apply, [(x: number) => x + 1])
  // @ts-expect-error nor does a promise
  void call('w', wait, [Promise.resolve(1)])
  // @ts-expect-error nor a symbol, nor a weak collection
  void call('w', mark, [Symbol.iterator, new WeakMap()])
  // @ts-expect-error a function in an object
  void call('w', begin, [{ seed: 1, onStep: () => {} }])
  // @ts-expect-error an instance of a class that does not travel
  void call('w', show, [new Observer(1)])
  // @ts-expect-error a generator
  void call('w', each, [[1][Symbol.iterator]()])
  // @ts-expect-error an object with a method, not a reference
  void call('w', close, [[{ dispose: () => {} }]])
  // @ts-expect-error no such field
  void call('w', begin, [{ seed: 1, steps: 2 }])
  // @ts-expect-error a constructor's argument that cannot be sent
  void remote('w', Agent, [[ref], () => 1])
  // @ts-expect-error the same of a stream
  void stream('w', apply, [(x: number) => x])
  // @ts-expect-error a method's argument that cannot be sent
  void agent.call('take', [() => {}])
  // @ts-expect-error the same by the proxy
  void agent.rpcAsync().take(() => {})
  // @ts-expect-error the same by the proxy that leaves the result there
  void agent.remote().take(() => {})
  // @ts-expect-error the same of a supervised actor
  void handle.call('take', [() => {}])
  // @ts-expect-error the same of what a supervised actor is made of
  void supervise({ children: [{ name: 'agent', actor: Agent, args: [[ref], () => 1], worker: 'w' }] })
  // @ts-expect-error no such method
  void ref.call('stop', [])
  // @ts-expect-error a method's argument of another type
  void ref.call('step', [5])
  // @ts-expect-error it returns neither a Future nor a promise
  void asyncExecution(add)
  // @ts-expect-error the value is of another type
  new Future<number>().setResult('five')
}

test('RPC-9: the compiler knows what a call takes and gives', () => {
  expect([accepted, refused].every((fn) => typeof fn === 'function')).toBe(true)
})
