/** Functions with one answer for many callers. The parameter server is PyTorch's (`test_my_parameter_server`, rpc_test.py). */

import { describe, expect, test } from '@jest/globals'
import { Future } from '@postgrad/base'
import { type Tensor, tensor } from '@postgrad/tensor'
import { call, currentWorker, remote } from '../api/api.js'
import { asyncExecution } from '../common/async-execution.js'
import { type AnyFunction, expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, overSeeds, thrown, withSeed } from '../worker/sim-cluster.suite.js'

const add = (a: number, b: number) => a + b
const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

/** Shared by all callers that wait at a worker. */
class Meeting {
  private readonly size: number
  private count = 0
  private future = new Future<number>()

  constructor(size: number) {
    this.size = size
  }

  join(): Future<number> {
    const { future } = this
    this.count++
    if (this.count % this.size === 0) {
      this.future = new Future<number>()
      future.setResult(this.count)
    }
    return future
  }

  static open(this: typeof Meeting, size: number): Meeting {
    return new this(size)
  }

  static hosts = new Map<string, Meeting>()

  static joinHere(size: number): Future<number> {
    const { name } = currentWorker().info
    const known = Meeting.hosts.get(name) ?? new Meeting(size)
    Meeting.hosts.set(name, known)
    return known.join()
  }

  forgets(): Future<number> {
    return 5 as unknown as Future<number>
  }
}
asyncExecution(Meeting.prototype.join)
asyncExecution(Meeting.prototype.forgets)
asyncExecution(Meeting.joinHere)

const addOn = asyncExecution((to: string, a: number, b: number) => call(to, add, [a, b]))
const withConstructor = asyncExecution((a: number) => {
  const future = new Future<number>()
  void sleep(5).then(() => future.setResult(a))
  return future
})
const chained = asyncExecution((to: string, a: number) => call(to, add, [a, 1]).then((sum) => sum + 1))
const nested = asyncExecution((to: string, then: string, a: number) => call(to, addOn, [then, a, 1]))
const multiChained = asyncExecution((to: string, a: number, times: number) => {
  let future: Promise<number> = call(to, add, [a, 0])
  for (let i = 0; i < times; i++) future = future.then((sum) => sum + 1)
  return future
})
const fanOut = asyncExecution((to: string, a: number, times: number) =>
  Promise.all(Array.from({ length: times }, () => call(to, add, [a, 1]))).then((sums) => sums.reduce(add)),
)
const throws = asyncExecution((): Future<number> => {
  throw new RangeError('inside')
})
const rejects = asyncExecution(() => Future.rejected<number>(new RangeError('later')))
const forgets = asyncExecution((() => 5) as unknown as () => Future<number>)
const givesNull = asyncExecution((() => null) as unknown as () => Future<number>)
const givesList = asyncExecution((() => [5]) as unknown as () => Future<number>)
const unmarked = () => 5
expose({
  add,
  Meeting,
  addOn,
  withConstructor,
  chained,
  nested,
  multiChained,
  fanOut,
  throws,
  rejects,
  forgets,
  givesNull,
  givesList,
  unmarked,
})

/** By `call` and by `remote`. */
async function both<T>(to: string, fn: (...args: never[]) => PromiseLike<T>, args: unknown[]): Promise<T[]> {
  const made = remote(to, fn as AnyFunction, args as never) as RRef<T>
  try {
    return [await call(to, fn as AnyFunction, args), await made.toHere()]
  } finally {
    made.dispose()
  }
}

describe('asyncExecution', () => {
  test('ASY-1, ASY-3: async_function_simple, with_future_ctor, chained, nested, multi_chained (20), multi_fanout (20), by call and remote', async () => {
    await overSeeds(3, 3, async () => {
      for (const to of ['worker1', 'worker0']) {
        expect(await both(to, addOn, ['worker2', 1, 2])).toEqual([3, 3])
        expect(await both(to, withConstructor, [4])).toEqual([4, 4])
        expect(await both(to, chained, ['worker2', 1])).toEqual([3, 3])
        expect(await both(to, nested, ['worker2', 'worker1', 1])).toEqual([2, 2])
        expect(await both(to, multiChained, ['worker2', 1, 20])).toEqual([21, 21])
        expect(await both(to, fanOut, ['worker2', 1, 20])).toEqual([40, 40])
      }
    })
  })

  test('ASY-2: async_function_raise, async_function_wrong_return_type: both are the error of the call, or of the reference', async () => {
    await overSeeds(3, 2, async () => {
      for (const [fn, expected] of [
        [throws, { name: 'RangeError', message: 'inside' }],
        [rejects, { name: 'RangeError', message: 'later' }],
        [forgets, { code: 'ASYNC_EXECUTION_NO_FUTURE', op: 'forgets', values: { function: 'forgets' } }],
      ] as const) {
        expect(await failure(call('worker1', fn))).toMatchObject({ ...expected, workers: [{ name: 'worker1', id: 1 }] })
        const made = remote('worker1', fn)
        expect(await failure(made.toHere())).toMatchObject(expected)
        made.dispose()
      }
      expect((await failure(call('worker1', givesNull))).message).toContain('got null')
      expect((await failure(call('worker1', givesList))).message).toContain('got an array')
      expect(await call('worker1', unmarked)).toBe(5)
      const meeting = remote('worker1', Meeting, [1])
      expect(await failure(meeting.call('forgets', []))).toMatchObject({ code: 'ASYNC_EXECUTION_NO_FUTURE' })
      meeting.dispose()
    })
  })

  test('ASY-2: what is no function cannot be marked', () => {
    expect(thrown(() => asyncExecution(null as never)).code).toBe('NOT_CALLABLE')
    expect(thrown(() => asyncExecution(5 as never)).message).toContain('got number')
  })

  test('RPC-39: static methods are called as such, on their class', async () => {
    await overSeeds(2, 2, async () => {
      const made = remote('worker1', Meeting.open, [1])
      expect(await made.call('join', [])).toBe(1)
      made.dispose()
      expect(await failure(call('worker1', Meeting.prototype.join))).toMatchObject({
        code: 'FUNCTION_NOT_EXPOSED',
        remedy: expect.stringContaining("ref.call('join', args)"),
      })
      expect((await failure(call('worker1', new Meeting(1).join.bind(new Meeting(1))))).remedy).toContain("ref.call('join', args)")
    })
  })

  test('ASY-1, ASY-3: async_static_method, async_class_method, async_class_rref_proxy, _async, _remote: callers share one result', async () => {
    await overSeeds(3, 4, async ({ workers }) => {
      Meeting.hosts.clear()
      const fromAll = <T>(fn: () => Promise<T>) => Promise.all(workers.map((worker) => worker.run(fn)))
      expect(await fromAll(() => call('worker1', Meeting.joinHere, [4]))).toEqual([4, 4, 4, 4])
      const meeting = remote('worker1', Meeting, [5])
      using kept = meeting.remote().join()
      const joined = [
        ...Array.from({ length: 2 }, () => meeting.call('join', [])),
        meeting.rpcSync().join(),
        meeting.rpcAsync().join(),
        kept.toHere(),
      ]
      expect(await Promise.all(joined)).toEqual([5, 5, 5, 5, 5])
      meeting.dispose()
    })
  })
})

/** The average of what its trainers send; the last of them computes it for all. */
class BatchUpdateParameterServer {
  private readonly trainers: number
  private gradients: Tensor[] = []
  private future = new Future<Tensor>()
  grad: Tensor | null = null

  constructor(trainers: number) {
    this.trainers = trainers
  }

  average(gradient: Tensor): Future<Tensor> {
    this.gradients.push(gradient)
    const { future, gradients } = this
    if (gradients.length === this.trainers) {
      this.gradients = []
      this.future = new Future<Tensor>()
      this.grad = gradients.reduce((sum, one) => sum.add(one)).div(this.trainers)
      future.setResult(this.grad)
    }
    return future
  }

  current(): Tensor {
    return this.grad!
  }
}
asyncExecution(BatchUpdateParameterServer.prototype.average)
const ITERATIONS = 10
/** Every trainer gets the average of all, in every iteration, and it is the server's own. */
const train = async (server: RRef<BatchUpdateParameterServer>, rank: number): Promise<number[][]> => {
  using ps = server
  const seen: number[][] = []
  for (let iteration = 0; iteration < ITERATIONS; iteration++) {
    const average = await ps.call('average', [tensor([rank, iteration])])
    seen.push(average.toArray() as number[])
  }
  return seen
}
expose({ BatchUpdateParameterServer, train })

describe('the batch parameter server', () => {
  test('ASY-1: my_parameter_server: three trainers, ten iterations, one shared average each', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 4)
        await cluster.run(0, async () => {
          const server = remote('worker0', BatchUpdateParameterServer, [3])
          const seen = await Promise.all([1, 2, 3].map((rank) => call(rank, train, [server as never, rank])))
          for (const averages of seen) expect(averages).toEqual(Array.from({ length: ITERATIONS }, (_, iteration) => [2, iteration]))
          expect((await server.call('current', [])).toArray()).toEqual([2, ITERATIONS - 1])
        })
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})
