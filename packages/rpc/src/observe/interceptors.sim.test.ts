/** Interceptors of users: tracing, permission, metrics, and what goes wrong in them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { call, currentWorker, remote } from '../api/api.js'
import { intercept } from '../api/intercept.js'
import { storeOn } from '../api/store-over-rpc.js'
import { expose } from '../common/function-registry.js'
import { meet } from '../groups/meet.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import type { CallInterceptor } from './call-interceptors.js'

const echo = <T>(value: T) => value
const fails = () => {
  throw new RangeError('no')
}
const never = () => new Promise<never>(() => {})
const sleep = (ms: number): Promise<number> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const relay = (to: string, ms: number) => call(to, sleep, [ms])
class Counter {
  private count = 0
  add(by: number): number {
    this.count += by
    return this.count
  }
}
const fetchIt = async (ref: RRef<number>) => {
  using held = ref
  return await held.toHere()
}
const fetchOther = (ref: RRef<number>) => fetchIt(ref)
expose({ echo, fails, never, sleep, relay, Counter, fetchIt, fetchOther })

/** A program's own tracer: spans with their parents, across workers. */
interface Span {
  readonly id: string
  readonly parent: string | null
  readonly name: string
}
const current = new AsyncLocalStorage<Span>()

function tracer(spans: Span[]): CallInterceptor {
  let n = 0
  return {
    outgoing(outgoing) {
      const span = current.getStore()
      if (span !== undefined) outgoing.setHeader('parent', span.id)
    },
    incoming({ functionName, to, headers }, next) {
      const span = { id: `${to.name}/${++n}`, parent: (headers.parent as string) ?? null, name: functionName }
      spans.push(span)
      return current.run(span, next)
    },
  }
}

const onAll = (cluster: Cluster, make: () => CallInterceptor) => {
  for (const worker of cluster.workers) worker.run(() => intercept(make()))
}

describe('interceptors of users', () => {
  test('INT-1, INT-2: a tracer finds the parent of each call across workers, also of those that interleave', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        const spans: Span[] = []
        onAll(cluster, () => tracer(spans))
        await cluster.run(0, async () => {
          await Promise.all([call('worker1', relay, ['worker2', 20]), call('worker1', relay, ['worker0', 10]), call('worker0', echo, [1])])
        })
        const byId = new Map(spans.map((span) => [span.id, span]))
        expect(spans.map(({ name }) => name).sort()).toEqual(['echo', 'relay', 'relay', 'sleep', 'sleep'])
        for (const { name, parent } of spans)
          expect(parent === null ? null : byId.get(parent)!.name).toBe(name === 'sleep' ? 'relay' : null)
        expect(new Set(spans.map(({ parent }) => parent)).size).toBe(3)
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })

  test('INT-3: permission: a call that the callee refuses is not run, and fails with the error of the refusal', async () => {
    const cluster = new Cluster(1, 2)
    const allowed = new Set(['echo', 'Counter', 'add', 'toHere'])
    cluster.workers[1]!.run(() =>
      intercept({
        incoming({ functionName, from, headers }, next) {
          if (headers.token === 'secret' || allowed.has(functionName)) return next()
          throw new PostgradError('NOT_ALLOWED', { op: functionName, message: `'${from.name}' may not call it` })
        },
      }),
    )
    await cluster.run(0, async () => {
      expect(await call('worker1', echo, [1])).toBe(1)
      expect(await failure(call('worker1', fails))).toMatchObject({ code: 'NOT_ALLOWED', workers: [{ name: 'worker1', id: 1 }] })
      expect(await failure(remote('worker1', sleep, [1]).toHere())).toMatchObject({ code: 'NOT_ALLOWED' })
      const counter = remote('worker1', Counter)
      expect(await counter.call('add', [2])).toBe(2)
      counter.dispose()
      const remove = intercept({ outgoing: (outgoing) => outgoing.setHeader('token', 'secret') })
      expect(await call('worker1', sleep, [1])).toBe(1)
      remove()
      expect(await failure(call('worker1', sleep, [1]))).toMatchObject({ code: 'NOT_ALLOWED' })
      // Calls of the package itself need no permission.
      await Promise.all([cluster.workers[1]!.run(() => meet(null)), meet(null)])
      await storeOn('worker1').set('k', 'v')
    })
  })

  test('INT-3: one that would wait before a call leaves is refused, whatever becomes of its promise', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      for (const outgoing of [async () => {}, async () => Promise.reject(new Error('late'))]) {
        const remove = intercept({ outgoing: outgoing as unknown as () => void })
        expect(await failure(call('worker1', echo, [1]))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'echo' })
        expect(thrown(() => remote('worker1', echo, [1]))).toMatchObject({ code: 'INVALID_ARGUMENT' })
        remove()
      }
      expect(cluster.messages).toBe(0)
      expect(await call('worker1', echo, [1])).toBe(1)
    })
  })

  test('INT-3: a call that the caller refuses is not sent, and leaves nothing behind', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const ends: unknown[] = []
      const refused = new PostgradError('QUOTA', { op: 'call', message: 'enough' })
      intercept({
        outgoing:
          () =>
          ({ error }) =>
            ends.push(error),
      })
      const remove = intercept({
        outgoing: ({ to }) => {
          if (to.name === 'worker1') throw refused
        },
      })
      const before = cluster.messages
      expect(await failure(call('worker1', echo, [1]))).toBe(refused)
      expect(thrown(() => remote('worker1', echo, [1]))).toBe(refused)
      expect(cluster.messages).toBe(before)
      expect(await call('worker0', echo, [1])).toBe(1)
      expect(ends).toEqual([refused, refused, null])
      remove()
      expect(await call('worker1', echo, [1])).toBe(1)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('INT-4: metrics: each call is told how it ended and how long it took, once, on the worker’s clock', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2)
        await cluster.run(0, async () => {
          const metrics: string[] = []
          const times: number[] = []
          intercept({
            outgoing({ kind, functionName, isMethod, to }) {
              return ({ error, elapsedMs }) => {
                times.push(elapsedMs)
                const outcome = error === null ? 'ok' : ((error as PostgradError).code ?? (error as Error).name)
                metrics.push(`${kind} ${isMethod ? '.' : ''}${functionName} ${to.name}: ${outcome}`)
              }
            },
          })
          await call('worker1', sleep, [30])
          await failure(call('worker1', fails))
          await failure(call('worker1', never, [], { timeoutMs: 50 }))
          const counter = remote('worker1', Counter)
          await counter.call('add', [1])
          await failure(counter.toHere())
          counter.dispose()
          await failure(call('worker1', (() => {}) as () => void))
          await failure(call('worker1', echo, [() => 1]))
          await failure(call('worker1', echo, ['x'.repeat(9 * 2 ** 20)]))
          const waits = failure(call('worker1', never))
          await sleep(5)
          cluster.world.crash('worker1')
          await waits
          expect([...metrics].sort()).toEqual([
            'call .add worker1: ok',
            'call echo worker1: WIRE_TOO_LARGE',
            'call fails worker1: RangeError',
            'call never worker1: RPC_TIMEOUT',
            'call never worker1: WORKER_DIED',
            'call sleep worker1: ok',
            'fetch toHere worker1: WIRE_UNSUPPORTED_VALUE',
            'remote Counter worker1: ok',
          ])
          expect(times[0]).toBeGreaterThanOrEqual(30)
          expect(Math.min(...times)).toBeGreaterThanOrEqual(0)
        })
      })
    }
  })

  test('INT-5: the first is the outermost, at both ends; results and errors pass each on their way back', async () => {
    const cluster = new Cluster(1, 2)
    const order: string[] = []
    const named = (name: string): CallInterceptor => ({
      outgoing: (outgoing) => {
        order.push(`out ${name}`)
        outgoing.setHeader('path', `${outgoing.headers.path ?? ''}${name}`)
        return () => order.push(`end ${name}`)
      },
      incoming: async ({ headers }, next) => {
        order.push(`in ${name} ${headers.path}`)
        const value = await next()
        order.push(`back ${name}`)
        return `${value}${name}`
      },
    })
    for (const worker of cluster.workers) worker.run(() => ['a', 'b'].map((name) => intercept(named(name))))
    expect(await cluster.run(0, () => call('worker1', echo, ['x']))).toBe('xba')
    expect(order).toEqual(['out a', 'out b', 'in a ab', 'in b ab', 'back b', 'back a', 'end b', 'end a'])
  })

  test('INT-6: the function begins in the turn of its message, unless an interceptor waits', async () => {
    const cluster = new Cluster(1, 2)
    cluster.workers[1]!.run(() => intercept({ incoming: (_, next) => next() }))
    await cluster.run(0, async () => {
      const counter = remote('worker1', Counter)
      await counter.toHere().catch(() => {})
      const results = await Promise.all(Array.from({ length: 20 }, () => counter.call('add', [1])))
      expect(results).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
      counter.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('INT-7: what goes wrong in them: a second next(), an odd header, a throw at the end of a call', async () => {
    const cluster = new Cluster(1, 2)
    const remove = cluster.workers[1]!.run(() =>
      intercept({
        incoming: (_, next) => {
          next()
          return next()
        },
      }),
    )
    await cluster.run(0, async () => {
      expect(await failure(call('worker1', echo, [1]))).toMatchObject({ code: 'INTERCEPTOR_NEXT_TWICE' })
      remove()
      remove()
      const odd: [unknown, unknown][] = [
        ['a', {}],
        ['a', undefined],
        ['', 1],
        [1, 1],
      ]
      for (const [name, value] of odd) {
        const removeOdd = intercept({ outgoing: (outgoing) => outgoing.setHeader(name as string, value as string) })
        expect(await failure(call('worker1', echo, [1]))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'setHeader' })
        removeOdd()
      }
      const bug = new Error('bug')
      const ends: string[] = []
      intercept({ outgoing: () => () => ends.push('still told') })
      intercept({
        outgoing: () => () => {
          throw bug
        },
      })
      expect(await call('worker1', echo, [1])).toBe(1)
      expect([cluster.bugs, ends]).toEqual([[bug], ['still told']])
    })
    for (const wrong of [{}, null, 3, { incoming: 1 }, { outgoing: () => {}, incoming: 'x' }]) {
      expect(thrown(() => cluster.workers[0]!.run(() => intercept(wrong as CallInterceptor)))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        remedy: expect.stringContaining('intercept({ outgoing'),
      })
    }
    expect(thrown(() => intercept({ incoming: (_, next) => next() })).code).toBe('RPC_NOT_INITIALIZED')
  })

  test('INT-9: one that calls others itself spoils neither message, nor the references in them', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const [outer, inner] = [remote('worker2', echo<number>, [1]), remote('worker2', echo<number>, [2])]
      await Promise.all([outer.toHere(), inner.toHere()])
      const within: Promise<unknown>[] = []
      const remove = intercept({
        outgoing({ functionName }) {
          if (functionName === 'fetchIt') within.push(call('worker1', fetchOther, [inner]))
        },
      })
      expect(await call('worker1', fetchIt, [outer])).toBe(1)
      expect(await Promise.all(within)).toEqual([2])
      remove()
      outer.dispose()
      inner.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('INT-8: without any, a message has no room for headers', async () => {
    const cluster = new Cluster(1, 2)
    const bytes: number[] = []
    cluster.gate(0, 1).tamper = (frame) => {
      bytes.push(frame.header.length)
      return frame
    }
    await cluster.run(0, async () => {
      await call('worker1', echo, [1], { timeoutMs: 0 })
      const removes = [intercept({ outgoing: () => {} }), intercept({ outgoing: (outgoing) => outgoing.setHeader('a', 1) })]
      await call('worker1', echo, [1], { timeoutMs: 0 })
      for (const remove of removes) remove()
      await call('worker1', echo, [1], { timeoutMs: 0 })
    })
    expect(bytes[1]).not.toBe(bytes[0])
    expect(bytes[2]).toBe(bytes[0])
    expect(cluster.workers[0]!.requests.around).toBeNull()
  })
})
