/** Calls are typed end to end: what the compiler accepts, and what it refuses. A line that it should refuse and does not is an error of the build. */
import { expect, test } from '@jest/globals'
import type { Tensor } from '@postgrad/tensor'
import { call, remote, rpcAsync, stream } from './api.js'
import { asyncExecution } from './async-execution.js'
import { Future } from './future.js'
import type { RRef } from './rref.js'
import type { RemoteStream } from './stream.js'
import { collectAll, waitAll } from './wait-all.js'

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
}

/** Never run. */
function refused(ref: RRef<Observer>): void {
  // @ts-expect-error too few arguments
  void call('w', add, [1])
  // @ts-expect-error an argument of another type
  void call('w', add, [1, 'two'])
  // @ts-expect-error no arguments where there must be some
  void call('w', add)
  // @ts-expect-error the name of a function is no function
  void call('w', 'add', [1, 2])
  // @ts-expect-error no such worker can be
  void call(null, nothing)
  // @ts-expect-error no such option
  void call('w', nothing, [], { timeout: 5 })
  // @ts-expect-error the constructor takes a number
  void remote('w', Observer, ['seed'])
  // @ts-expect-error no such method
  void ref.call('stop', [])
  // @ts-expect-error a method's argument of another type
  void ref.call('step', [5])
  // @ts-expect-error what it returns is no Future and no promise
  void asyncExecution(add)
  // @ts-expect-error the value is of another type
  new Future<number>().setResult('five')
}

test('RPC-9: the compiler knows what a call takes and gives', () => {
  expect([accepted, refused].every((fn) => typeof fn === 'function')).toBe(true)
})
