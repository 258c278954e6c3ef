/** Errors of user code on their way back, and unreadable messages. */
import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import type { Frame } from '@postgrad/transport'
import { MessageType, requestHead } from '@postgrad/wire/internal'
import { call, currentRuntime, remote, rref, stream } from '../api/api.js'
import { type AnyFunction, expose } from '../common/function-registry.js'
import { meet } from '../groups/meet.js'
import type { RRef } from '../references/rref.js'
import { Cluster, cutShort, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'

class ShapeError extends Error {
  override name = 'ShapeError'
}

const throwsType = () => {
  throw new TypeError('wrong\nkind', { cause: new RangeError('inner', { cause: 'text' }) })
}
const throwsLater = async () => {
  await Promise.resolve()
  throw new RangeError('later')
}
const throwsOurs = () => {
  throw new PostgradError('SHAPE_MISMATCH', {
    op: 'matmul',
    expected: '[2, 3]',
    got: '[3, 2]',
    remedy: 'Transpose it.',
    values: { shape: [3, 2], big: 5n },
    cause: new Error('why'),
  })
}
const throwsOther = () => {
  throw Object.assign(new ShapeError('odd'), { code: 'E_ODD', detail: { rows: 3 } })
}
const throwsCoded = () => {
  throw Object.assign(new Error('no file'), { code: 'ENOENT', errno: -2 })
}
const throwsValue = (value: unknown) => {
  throw value
}
const throwsMany = () => {
  throw new AggregateError([new TypeError('one'), new RangeError('two')], 'many')
}
const throwsHuge = () => {
  const wide = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`key${i}`, 'x'.repeat(50_000)]))
  throw new PostgradError('HUGE', {
    op: 'huge',
    message: 'y'.repeat(1e6),
    values: Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, wide])),
  })
}
const throwsHostile = () => {
  throw Object.defineProperties(new Error('hostile'), {
    message: {
      get: () => {
        throw new Error('getter')
      },
    },
    stack: {
      get: () => {
        throw new Error('getter')
      },
    },
  })
}
const rejectsWithThenable = () => ({
  // biome-ignore lint/suspicious/noThenProperty: a thenable of the user's that calls both
  then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
    resolve('first')
    reject(new Error('second'))
    resolve('third')
  },
})
const thenThrows = () =>
  Object.defineProperty({}, 'then', {
    get: () => {
      throw new TypeError('no then')
    },
  })
/** Goes through the workers in order, as often as it says, and throws at the end. */
const through = async (hops: number): Promise<unknown> => {
  if (hops === 0) return throwsType()
  const next = (currentRuntime().info.id + 1) % 3
  return call(next, through, [hops - 1])
}
const catches = async (to: string) => {
  try {
    await call(to, throwsType)
  } catch (error) {
    throw new Error('outer', { cause: error })
  }
}
const echo = (value: unknown) => value
function* countUp(n: number) {
  for (let i = 0; i < n; i++) yield i
}
const never = () => new Promise<never>(() => {})
expose({
  throwsType,
  throwsLater,
  throwsOurs,
  throwsOther,
  throwsCoded,
  throwsValue,
  throwsMany,
  throwsHuge,
  throwsHostile,
  rejectsWithThenable,
  thenThrows,
  through,
  catches,
  echo,
  never,
})

const WORKER1 = [{ name: 'worker1', id: 1 }]

/** Both ways in which a function's error comes back. */
async function errorsOf(fn: AnyFunction, args: unknown[] = []) {
  const made = remote('worker1', fn, args)
  const errors = [await failure(call('worker1', fn, args)), await failure(made.toHere())]
  made.dispose()
  return errors
}

describe('errors of user code', () => {
  test('RPC-17: built-in classes come back as themselves, with message and causes', async () => {
    await overSeeds(3, 2, async () => {
      for (const error of await errorsOf(throwsType)) {
        expect(error).toBeInstanceOf(TypeError)
        expect(error.message).toBe('wrong\nkind')
        expect(error.cause).toBeInstanceOf(RangeError)
        expect(error.cause).toMatchObject({ message: 'inner', cause: 'text' })
      }
      for (const error of await errorsOf(throwsLater)) expect(error).toBeInstanceOf(RangeError)
      for (const error of await errorsOf(throwsMany)) {
        expect(error).toBeInstanceOf(AggregateError)
        expect((error.errors as Error[]).map(({ message }) => message)).toEqual(['one', 'two'])
      }
      for (const error of await errorsOf(throwsCoded)) expect(error).toMatchObject({ code: 'ENOENT', errno: -2 })
    })
  })

  test('RPC-17: a PostgradError comes back whole', async () => {
    await overSeeds(2, 2, async () => {
      for (const error of await errorsOf(throwsOurs)) {
        expect(error).toBeInstanceOf(PostgradError)
        expect(error).toMatchObject({ code: 'SHAPE_MISMATCH', op: 'matmul', remedy: 'Transpose it.', values: { shape: [3, 2], big: 5n } })
        expect(error.message).toBe('matmul: expected [2, 3], got [3, 2]. Transpose it.')
        expect((error.cause as Error).message).toBe('why')
      }
    })
  })

  test('RPC-19: another class comes back as REMOTE_EXCEPTION with its name, what is no error too', async () => {
    await overSeeds(2, 2, async () => {
      for (const error of await errorsOf(throwsOther)) {
        expect(error).toMatchObject({ code: 'REMOTE_EXCEPTION', values: { name: 'ShapeError', code: 'E_ODD', detail: { rows: 3 } } })
        expect(error.message).toContain('odd')
      }
      for (const value of ['text', 5, null, undefined, { a: 1 }]) {
        for (const error of await errorsOf(throwsValue, [value])) {
          expect(error).toMatchObject({ code: 'REMOTE_EXCEPTION', workers: WORKER1 })
          expect(error.values.thrown).toEqual(value)
        }
      }
    })
  })

  test('RPC-18: without remoteStacks nobody learns where it arose', async () => {
    const cluster = new Cluster(1, 2, { remoteStacks: false })
    await cluster.run(0, async () => {
      const error = (await failure(call('worker1', throwsType))) as TypeError & { remoteStack?: string }
      expect([error.message, error.remoteStack]).toEqual(['wrong\nkind', undefined])
      expect(error.stack).not.toContain('at throwsType')
    })
  })

  test('RPC-18: the stack is the one of where it arose, and the path says where that was', async () => {
    await overSeeds(2, 2, async () => {
      for (const error of await errorsOf(throwsType)) {
        expect(error.remoteStack).toContain('throwsType')
        expect(error.stack).toContain('throwsType')
        expect(error.workers).toEqual(WORKER1)
      }
      const self = await failure(call('worker0', throwsOurs))
      expect(self.workers).toEqual([{ name: 'worker0', id: 0 }])
    })
  })

  test('RPC-18: over several workers the path has each, where it arose first; the first and the last 16 are kept', async () => {
    await overSeeds(2, 3, async () => {
      const short = await failure(call(1, through, [4]))
      expect(short).toBeInstanceOf(TypeError)
      expect(short.workers.map(({ id }) => id)).toEqual([2, 1, 0, 2, 1])
      const hops = 100
      const long = await failure(call(1, through, [hops]))
      const path = Array.from({ length: hops + 1 }, (_, i) => (1 + hops - i) % 3)
      expect(long.workers.map(({ id }) => id)).toEqual([...path.slice(0, 16), ...path.slice(-16)])
      expect(long.remoteStack).toContain('throwsType')
    })
  })

  test('RPC-18: an error that is caught and becomes a cause keeps its own path', async () => {
    await overSeeds(2, 3, async () => {
      const error = await failure(call('worker1', catches, ['worker2']))
      expect(error).toMatchObject({ message: 'outer', workers: WORKER1 })
      expect(error.cause).toBeInstanceOf(TypeError)
      expect(error.cause).toMatchObject({ workers: [{ name: 'worker2', id: 2 }] })
    })
  })

  test('RPC-17: an error that is too large or that bites is sent as far as it can be', async () => {
    await overSeeds(2, 2, async () => {
      for (const error of await errorsOf(throwsHuge)) expect(error).toMatchObject({ code: 'HUGE', workers: WORKER1 })
      for (const error of await errorsOf(throwsHostile)) expect(error).toMatchObject({ workers: WORKER1 })
    })
  })

  test('RPC-9: what a function returns with a `then` is awaited, and believed once', async () => {
    await overSeeds(2, 2, async () => {
      expect(await call('worker1', rejectsWithThenable as () => PromiseLike<string>)).toBe('first')
      expect(await failure(call('worker1', thenThrows))).toBeInstanceOf(TypeError)
    })
  })
})

describe('errors of this package', () => {
  test('RPC-20: each is a PostgradError with its code, and says what to do', async () => {
    const seen = new Map<string, PostgradError>()
    const keep = (error: PostgradError) => seen.set(error.code, error)
    const cluster = new Cluster(1, 2)
    keep(await failure(call('worker1', echo, [1])))
    await cluster.run(0, async () => {
      const worker = currentRuntime()
      const made = remote('worker1', echo, [1])
      const pending = remote('worker0', never)
      keep(await failure(call('nobody', echo, [1])))
      keep(await failure(call('worker1', () => 1)))
      keep(await failure(call('worker1', 'echo' as unknown as AnyFunction)))
      keep(await failure(call('worker1', never, [], { timeoutMs: 5 })))
      keep(await failure(call('worker1', never, [], { timeoutMs: -5 })))
      keep(await failure(call('worker1', echo, [() => 1])))
      keep(await failure((made as RRef<{ go(): void }>).call('go', [])))
      keep(thrown(() => made.localValue()))
      keep(thrown(() => pending.localValue()))
      keep(thrown(() => expose({ echo: () => 1 })))
      keep(thrown(() => expose({ five: 5 as unknown as AnyFunction })))
      keep(thrown(() => worker.connect(worker.info, cluster.world.link('worker0', 'x')[0])))
      keep(thrown(() => worker.connect({ name: '', id: 5 }, cluster.world.link('worker0', 'x')[0])))
      made.dispose()
      keep(await failure(made.toHere()))
      cluster.gate(0, 1).shut()
      const late = remote('worker1', echo, [1], { timeoutMs: 5 })
      await failure(call('worker1', echo, [1], { timeoutMs: 20 }))
      keep(await failure(late.toHere()))
      cluster.world.crash('worker1')
      keep(await failure(call('worker1', echo, [1])))
      await worker.close()
      keep(await failure(call('worker0', echo, [1])))
    })
    expect([...seen.keys()].sort()).toEqual([
      ...['EXPOSE_CONFLICT', 'EXPOSE_NOT_CALLABLE', 'FUNCTION_NOT_EXPOSED', 'METHOD_NOT_FOUND', 'NOT_CALLABLE'],
      ...['RPC_NOT_INITIALIZED', 'RPC_SHUT_DOWN', 'RPC_TIMEOUT', 'RREF_CREATION_TIMEOUT', 'RREF_DELETED', 'RREF_NOT_OWNER'],
      ...['RREF_VALUE_PENDING', 'TIMEOUT_INVALID', 'UNKNOWN_WORKER', 'WIRE_UNSUPPORTED_VALUE', 'WORKER_DIED'],
      ...['WORKER_NAME_INVALID', 'WORKER_NAME_TAKEN'],
    ])
    for (const error of seen.values()) {
      expect(error).toBeInstanceOf(PostgradError)
      expect(error.message.startsWith(`${error.op}: `)).toBe(true)
      expect(error.remedy).toMatch(/\.$/)
      expect(error.message.endsWith(error.remedy!)).toBe(true)
    }
  })
})

/** Messages of a type arrive with a body that cannot be read. */
function damage(cluster: Cluster, from: number, to: number, type: MessageType): void {
  cluster.gate(from, to).tamper = (frame: Frame) => {
    return requestHead(frame)?.type === type ? cutShort(frame) : frame
  }
}

describe('what cannot be read', () => {
  test('RPC-16: a call: its caller is told at once; the callee keeps a dead letter', async () => {
    const cluster = new Cluster(1, 2)
    damage(cluster, 0, 1, MessageType.CALL)
    await cluster.run(0, async () => {
      const error = await failure(call('worker1', echo, [1]))
      expect(error.code).toBe('WIRE_CORRUPT')
      expect(error.workers).toEqual(WORKER1)
      expect(cluster.world.nowMs).toBeLessThan(1)
    })
    expect(cluster.workers[1]!.letters.counts.unreadable).toBe(1)
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('RPC-16: a result or an error: the call ends with the reason, and is not repeated', async () => {
    for (const [type, fn] of [
      [MessageType.RESULT, echo],
      [MessageType.EXCEPTION, throwsType],
    ] as const) {
      const cluster = new Cluster(1, 2)
      damage(cluster, 1, 0, type)
      await cluster.run(0, async () => {
        expect(await failure(call('worker1', fn as AnyFunction, [1]))).toMatchObject({ code: 'WIRE_CORRUPT' })
      })
      expect(cluster.gate(0, 1).sent).toEqual(['CALL', 'UNREADABLE'])
      expect(await cluster.leftovers({ letters: 1 })).toEqual([])
    }
  })

  test('RPC-16: the creation of a reference: whatever uses it gets the reason, and so do those who had heard of it', async () => {
    const cluster = new Cluster(1, 3)
    damage(cluster, 0, 1, MessageType.REMOTE_CALL)
    await cluster.run(0, async () => {
      cluster.gate(0, 1).shut()
      const made = remote('worker1', echo, [1])
      const shared = call('worker2', fetch, [made])
      await currentWorkerTurn()
      cluster.gate(0, 1).unshut()
      expect(await failure(made.toHere())).toMatchObject({ code: 'WIRE_CORRUPT' })
      made.dispose()
      expect(await failure(shared)).toMatchObject({ code: 'RREF_DELETED' })
    })
    expect(await cluster.leftovers({ letters: 2 })).toEqual([])
  })

  test('RPC-16: a fetch, and the confirmation of a reference', async () => {
    const fetches = new Cluster(1, 2)
    damage(fetches, 0, 1, MessageType.RREF_FETCH)
    await fetches.run(0, async () => {
      const made = remote('worker1', echo, [1])
      expect(await failure(made.toHere())).toMatchObject({ code: 'WIRE_CORRUPT' })
      made.dispose()
    })
    expect(await fetches.leftovers({ letters: 1 })).toEqual([])

    const requests = new Cluster(1, 3)
    damage(requests, 2, 1, MessageType.RREF_FORK_REQUEST)
    await requests.run(0, async () => {
      const made = remote('worker1', echo, [1])
      expect(await failure(call('worker2', fetch, [made]))).toMatchObject({ code: 'WIRE_CORRUPT' })
      made.dispose()
    })
    expect(await requests.leftovers({ letters: 1 })).toEqual([])
  })

  test('RPC-16: an item of a stream: it ends with the reason, behind the items before it, at both ends', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const items = stream('worker1', countUp, [100], { window: 1, timeoutMs: 0 })
      expect(await items.next()).toEqual({ done: false, value: 0 })
      damage(cluster, 1, 0, MessageType.STREAM_ITEM)
      const error = await failure(
        (async () => {
          for await (const item of items) expect(item).toBe(1)
        })(),
      )
      expect(error.code).toBe('WIRE_CORRUPT')
      expect(await items.next()).toEqual({ done: true, value: undefined })
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('RPC-16: the creation of a value that its sender cannot have made is answered, and no bug of the callee', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const worker = cluster.workers[0]!
      const peer = worker.peers.resolve('worker1')
      // As if worker 1 had made it.
      const ofTheirs = (1n << 48n) + 5n
      const asked = worker.requests.ask(
        peer,
        MessageType.REMOTE_CALL,
        ['echo', [1], ofTheirs, ofTheirs],
        'echo',
        { timeoutMs: 1000 },
        () => null,
      )
      expect(await failure(asked)).toMatchObject({ code: 'RREF_INVALID', workers: WORKER1 })
      const there = cluster.workers[1]!.peers.resolve('worker0')
      expect([there.served.size, there.ledger.incoming.calls]).toEqual([0, 0])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-16: what waits for no answer, or is not even a message, is a dead letter, and the next message is read', async () => {
    const cluster = new Cluster(1, 2)
    damage(cluster, 0, 1, MessageType.RREF_USER_DELETE)
    await cluster.run(0, async () => {
      const made = remote('worker1', echo, [1])
      await made.toHere()
      made.dispose()
      cluster.gate(0, 1).tamper = () => ({ header: new Uint8Array(3), segments: [] })
      const lost = call('worker1', echo, [1], { timeoutMs: 20 })
      cluster.gate(0, 1).tamper = null
      expect(await call('worker1', echo, ['read'])).toBe('read')
      expect(await failure(lost)).toMatchObject({ code: 'RPC_TIMEOUT' })
    })
    expect(cluster.workers[1]!.letters.counts.unreadable).toBe(2)
  })
})

/** A reference to a value here, and one to a value of worker 2. */
const references = (): RRef[] => [rref('here'), remote('worker2', echo, ['there'])]
/** Worker 1 gives these away and keeps them. */
let given: RRef[] = []
const give = () => {
  given = references()
  return given
}
const giveEach = async function* () {
  given = references()
  yield given
}
const fetchAll = (refs: readonly RRef[]) => Promise.all(refs.map(fetch))
const disposeGiven = () => {
  for (const ref of given) ref.dispose()
}

test('SHD-1 a word about the group that could not be read does not keep the group from its end', async () => {
  const cluster = new Cluster(1, 2)
  await cluster.run(0, async () => {
    damage(cluster, 0, 1, MessageType.GROUP_UPDATE)
    cluster.workers[0]!.post(1, MessageType.GROUP_UPDATE, [99, null, null])
    cluster.gate(0, 1).tamper = null
    await Promise.all(cluster.workers.map((worker) => worker.shutdown({ timeoutMs: 1000 })))
  })
  expect(await cluster.leftovers({ letters: 1 })).toEqual([])
})

describe('the references in what cannot be read', () => {
  test.each([
    ['CALL', (refs: readonly RRef[]) => failure(call('worker1', echo, [refs]))],
    ['REMOTE_CALL', (refs: readonly RRef[]) => failure(remote('worker1', echo, [refs]).toHere())],
  ] as const)('RREF-34 end at their sender, also while others use it: %s', async (name, ask) => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const refs = references()
      await refs[1]!.toHere()
      damage(cluster, 0, 1, MessageType[name])
      expect(await ask(refs)).toMatchObject({ code: 'WIRE_CORRUPT' })
      cluster.gate(0, 1).tamper = null
      // The references themselves are as good as before.
      expect(await call('worker1', fetchAll, [refs])).toEqual(['here', 'there'])
      for (const ref of refs) ref.dispose()
    })
    expect(await cluster.leftovers({ letters: name === 'REMOTE_CALL' ? 2 : 1 })).toEqual([])
  })

  test.each([
    ['RESULT', () => call('worker1', give)],
    ['STREAM_ITEM', () => stream('worker1', giveEach).next()],
  ] as const)('RREF-34 end at their sender: %s', async (name, ask) => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      damage(cluster, 1, 0, MessageType[name])
      expect(await failure(Promise.resolve(ask()))).toMatchObject({ code: 'WIRE_CORRUPT' })
      cluster.gate(1, 0).tamper = null
      await call('worker1', disposeGiven)
    })
    // After an item that was not read, nobody takes the stream's end.
    expect(await cluster.leftovers({ letters: name === 'STREAM_ITEM' ? 2 : 1 })).toEqual([])
  })

  test('RREF-34 also when nothing of the message tells what it was, and not those of the messages around it', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const refs = references()
      const before = call('worker1', fetchAll, [refs])
      cluster.gate(0, 1).tamper = () => ({ header: new Uint8Array(3), segments: [] })
      const lost = failure(call('worker1', echo, [refs], { timeoutMs: 20 }))
      cluster.gate(0, 1).tamper = null
      const behind = call('worker1', fetchAll, [refs])
      for (const ref of refs) ref.dispose()
      expect(await lost).toMatchObject({ code: 'RPC_TIMEOUT' })
      const expected = ['here', 'there']
      expect(await Promise.all([before, behind])).toEqual([expected, expected])
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })
})

const fetch = async (ref: RRef) => {
  try {
    return await ref.toHere()
  } finally {
    ref.dispose()
  }
}
expose({ fetch, fetchAll, countUp, give, giveEach, disposeGiven })

describe('stacks', () => {
  const fails = (): never => {
    throw new TypeError('nothing there')
  }
  const stays = () => new Promise(() => {})
  async function* givesOne(): AsyncGenerator<number> {
    yield 1
    throw new RangeError('no second')
  }
  const relays = async (): Promise<void> => {
    await call('worker2', fails)
  }
  expose({ fails, stays, givesOne, relays })

  test('RPC-53: an error has the line that awaits it, whatever brought it: the callee, a deadline, a death, what cannot be sent', async () => {
    const userProgram = async (wait: () => PromiseLike<unknown>): Promise<void> => {
      await wait()
    }
    const drain = async () => {
      for await (const _ of stream('worker1', givesOne));
    }
    const cases: [string, () => PromiseLike<unknown>][] = [
      ['TypeError', () => call('worker1', fails)],
      ['TypeError', () => Promise.all([call('worker1', fails), call('worker1', echo, [1])])],
      ['TypeError', () => remote('worker1', fails).toHere()],
      ['RangeError', drain],
      ['RPC_TIMEOUT', () => call('worker1', stays, [], { timeoutMs: 20 })],
      ['WIRE_UNSUPPORTED_VALUE', () => call('worker1', echo, [[[[() => 1]]]])],
      ['GROUP_TIMEOUT', () => meet(null, undefined, { timeoutMs: 20 })],
      ['UNKNOWN_WORKER', () => call('nobody', echo, [1])],
      ['WORKER_DIED', () => call('worker2', stays)],
    ]
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      cluster.world.clock.setTimer(1000, () => cluster.world.crash('worker2'))
      for (const [code, wait] of cases) {
        const error = await failure(userProgram(wait))
        expect([code, error.code ?? error.name]).toEqual([code, code])
        expect(error.stack!.split('\n').slice(-30).join('\n')).toMatch(/at (async )?userProgram/)
      }
    })
  })

  test('RPC-54: lines of other workers stand above a line that names the worker and what was called, one for each on the way', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const userProgram = async (): Promise<void> => {
        await call('worker1', relays)
      }
      const { stack, message, name } = await failure(userProgram())
      expect({ message, name }).toEqual({ message: 'nothing there', name: 'TypeError' })
      expect(stack).toMatch(/^TypeError \(on worker 'worker2'\): nothing there\n/)
      const parts = stack!.split(/\n {4}--- above: on worker (.*) ---/)
      expect(parts).toHaveLength(5)
      expect([parts[1], parts[3]]).toEqual(["'worker2', called as fails", "'worker1', called as relays"])
      for (const [part, frame] of [
        [0, /at fails/],
        [2, /at (async )?relays/],
        [4, /at (async )?userProgram/],
      ] as const) {
        expect(parts[part]).toMatch(frame)
      }
    })
  })
})

test('RPC-54: the first line of a stack names the worker where the error arose, whatever its class and whoever passed it on', async () => {
  for (const remoteStacks of [true, false]) {
    const cluster = new Cluster(1, 3, { remoteStacks })
    await cluster.run(0, async () => {
      for (const [fn, head] of [
        [throwsType, "TypeError (on worker 'worker1'): wrong\nkind\n"],
        [throwsOurs, "PostgradError (on worker 'worker1'): "],
      ] as const) {
        const error = await failure(call('worker1', fn))
        expect(error.stack!.startsWith(`${head}${fn === throwsOurs ? error.message : ''}`)).toBe(true)
        expect(error.message).not.toContain('worker1')
        expect(inspect(error).split('on worker')).toHaveLength(3)
      }
      const passed = await failure(call('worker1', through, [1]))
      expect(passed.stack).toMatch(/^TypeError \(on worker 'worker2'\): wrong\nkind\n/)
    })
  }
})

function currentWorkerTurn(): Promise<void> {
  return new Promise((resolve) => {
    currentRuntime().clock.setTimer(1, resolve)
  })
}
