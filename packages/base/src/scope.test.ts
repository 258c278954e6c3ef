/** The scope's way through awaits, and that it is never another code's. */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { EventEmitterAsyncResource } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import { currentScope, inOwnScope, inScope, withScope } from './scope.js'

describe('scope', () => {
  test('follows awaits and does not leak into what interleaves', async () => {
    const seen: boolean[] = []
    const tick = () => new Promise((resolve) => setImmediate(resolve))
    const off = withScope({ gradEnabled: false }, async () => {
      await tick()
      seen.push(currentScope().gradEnabled)
    })
    await tick()
    seen.push(currentScope().gradEnabled)
    await off
    expect(seen.sort()).toEqual([false, true])
  })

  describe('what was read last holds for no other code', () => {
    const worker = { name: 'inside' }
    const here = () => currentScope().worker
    const inside = <T>(fn: () => T): T => withScope({ worker }, fn)
    const tick = () => new Promise((resolve) => setImmediate(resolve))

    test('functions that are bound to another place, in the middle of a scope', () => {
      const bound = AsyncResource.bind(here)
      const snapshot = AsyncLocalStorage.snapshot()
      const own = new AsyncResource('Test')
      const seen = inside(() => [here(), bound(), here(), snapshot(here), own.runInAsyncScope(here), here()])
      expect(seen).toEqual([worker, null, worker, null, null, worker])
      const back = inside(() => AsyncResource.bind(here))
      expect([here(), back(), here()]).toEqual([null, worker, null])
    })

    test('scopes within scopes, left by a throw or not', () => {
      const other = { name: 'other' }
      const seen = inside(() => {
        const before = here()
        expect(() =>
          withScope({ worker: other }, () => {
            expect(here()).toBe(other)
            throw new Error('left')
          }),
        ).toThrow('left')
        return [before, here(), inScope(currentScope(), here), withScope({ worker: other }, here), inOwnScope(currentScope(), here), here()]
      })
      expect(seen).toEqual([worker, worker, worker, other, worker, worker])
      expect(here()).toBeNull()
    })

    test('a scope in an async context of its own, and what that one left there', async () => {
      const scope = inside(currentScope)
      const seen = inOwnScope(scope, async () => {
        const first = here()
        await null
        return [first, here()]
      })
      expect(here()).toBeNull()
      expect(await seen).toEqual([worker, worker])
      expect(here()).toBeNull()
    })

    test('callbacks, ticks, microtasks and continuations in any order', async () => {
      const seen: unknown[] = []
      const note = () => seen.push(here())
      const within = inside(async () => {
        note()
        process.nextTick(note)
        queueMicrotask(note)
        setTimeout(note, 1)
        for (let i = 0; i < 3; i++) {
          await null
          note()
          await tick()
          note()
        }
        await new Promise((resolve) => setTimeout(resolve, 5))
      })
      const outside: unknown[] = []
      for (let i = 0; i < 6; i++) {
        outside.push(here())
        await null
        outside.push(here())
        await tick()
      }
      await within
      expect(seen).toEqual(Array(10).fill(worker))
      expect(outside).toEqual(Array(12).fill(null))
    })

    test('many programs at once, each with its own scope and its own pauses', async () => {
      const pauses = [
        () => null,
        tick,
        () => new Promise((resolve) => process.nextTick(resolve)),
        () => new Promise((resolve) => setTimeout(resolve, 1)),
      ]
      const program = (n: number) =>
        withScope({ worker: { name: `${n}` } }, async () => {
          const mine = here()
          for (let i = 0; i < 30; i++) {
            await pauses[(n * 7 + i * i) % pauses.length]!()
            expect(here()).toBe(mine)
            withScope({ gradEnabled: false }, () => expect(currentScope()).toMatchObject({ worker: mine, gradEnabled: false }))
            expect(currentScope().gradEnabled).toBe(true)
          }
        })
      await Promise.all(Array.from({ length: 20 }, (_, n) => program(n)))
      expect(here()).toBeNull()
    })

    test('a port, an event and a signal that were made elsewhere', async () => {
      const { port1, port2 } = new MessageChannel()
      const emitter = new EventEmitterAsyncResource({ name: 'Test' })
      const seen: unknown[] = []
      const arrived = new Promise<void>((resolve) => {
        port1.on('message', () => {
          seen.push(here())
          resolve()
        })
      })
      emitter.on('asked', () => seen.push(here()))
      inside(() => {
        here()
        emitter.emit('asked')
        expect(here()).toBe(worker)
        port2.postMessage(1)
      })
      await arrived
      port1.close()
      expect(seen).toEqual([null, null])
    })
  })

  test('a patch keeps the slots that it leaves out, and null clears one', () => {
    const worker = {}
    withScope({ worker, deadlineMs: 5 }, () =>
      withScope({ gradEnabled: false }, () => {
        expect(currentScope()).toMatchObject({ worker, deadlineMs: 5, gradEnabled: false })
        withScope({ worker: null }, () => expect(currentScope().worker).toBeNull())
      }),
    )
  })
})
