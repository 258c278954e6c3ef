/**
 * The table of a store: keys, values and the waits for them, on a clock that is passed in. Each operation is done at once, in one piece; only waits take
 * time. `hash-store.ts` is this and nothing else; `file-store.ts` reads it from a file, `store-server.ts` serves it.
 */
import { onAbort, timeLimit } from '@postgrad/base/internal'
import type { Clock } from '../clock.js'
import { STORE_TIMEOUT_MS, type StoreValue, type StoreWaitOptions } from './store.js'
import { notANumber, storeCancelled, storeClosed, storeTimeout } from './store-errors.js'
import { bytesOf, checkAmount, checkKey, checkKeys, equal, textOf, utf8 } from './store-values.js'

/** The effect of an operation that changes something; without a value the key is deleted. */
export interface StoreChange {
  readonly key: string
  readonly value: Uint8Array | null
}

interface Waiter {
  readonly keys: readonly string[]
  /** All keys are there. */
  ready(): void
  fail(error: unknown): void
}

const ZERO = utf8('0')

export class StoreTable {
  /** Called with each change before it is made; if it throws, the change is not made. One at most: a file or a server. */
  keep: ((change: StoreChange) => void) | null = null
  private readonly clock: Clock
  private readonly values = new Map<string, Uint8Array>()
  private readonly waiters = new Map<string, Set<Waiter>>()
  private timeoutMs = STORE_TIMEOUT_MS
  private isClosed = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  set(key: string, value: StoreValue): void {
    this.checkOpen('set')
    this.change({ key, value: bytesOf('set', key, value) })
  }

  get(key: string, options: StoreWaitOptions = {}): Promise<Uint8Array> {
    return this.whenThere('get', [key], () => this.values.get(key)!.slice(), options)
  }

  add(key: string, amount: number): number {
    this.checkOpen('add')
    checkAmount(key, amount)
    const text = textOf(this.values.get(key) ?? ZERO)
    const sum = Number(text) + amount
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(sum)) throw notANumber(key)
    this.change({ key, value: utf8(String(sum)) })
    return sum
  }

  compareSet(key: string, expected: StoreValue, desired: StoreValue): Uint8Array {
    this.checkOpen('compareSet')
    const before = bytesOf('compareSet', key, expected)
    const after = bytesOf('compareSet', key, desired)
    const current = this.values.get(key)
    if (current === undefined ? before.length > 0 : !equal(current, before)) return (current ?? before).slice()
    this.change({ key, value: after })
    return after.slice()
  }

  wait(keys: readonly string[], options: StoreWaitOptions = {}): Promise<void> {
    return this.whenThere('wait', keys, () => {}, options)
  }

  check(keys: readonly string[]): boolean {
    this.checkOpen('check')
    return this.missing(checkKeys('check', keys)).length === 0
  }

  deleteKey(key: string): boolean {
    this.checkOpen('deleteKey')
    if (!this.values.has(checkKey('deleteKey', key))) return false
    this.change({ key, value: null })
    return true
  }

  numKeys(): number {
    this.checkOpen('numKeys')
    return this.values.size
  }

  setTimeout(timeoutMs: number): void {
    timeLimit('setTimeout', timeoutMs)
    this.timeoutMs = timeoutMs
  }

  /** Makes a change that is kept already. Waits end with it. */
  apply({ key, value }: StoreChange): void {
    if (value === null) {
      this.values.delete(key)
      return
    }
    this.values.set(key, value)
    const waiters = this.waiters.get(key)
    if (waiters === undefined) return
    for (const waiter of [...waiters]) if (this.missing(waiter.keys).length === 0) waiter.ready()
  }

  /** Not copied. */
  entries(): IterableIterator<[string, Uint8Array]> {
    return this.values.entries()
  }

  /** Not copied. */
  valueOf(key: string): Uint8Array | undefined {
    return this.values.get(key)
  }

  /** All waits, and all later calls, fail with STORE_CLOSED. Idempotent. */
  close(): void {
    this.isClosed = true
    if (this.isWaitedFor) this.failWaits(storeClosed('close'))
    this.values.clear()
  }

  failWaits(error: unknown): void {
    for (const waiters of [...this.waiters.values()]) for (const waiter of [...waiters]) waiter.fail(error)
  }

  /** How many waits are under way. */
  get waiting(): number {
    return new Set([...this.waiters.values()].flatMap((waiters) => [...waiters])).size
  }

  /** Whether anybody waits. */
  get isWaitedFor(): boolean {
    return this.waiters.size > 0
  }

  private change(change: StoreChange): void {
    this.keep?.(change)
    this.apply(change)
  }

  /** `take` runs in the same turn in which the last of the keys is set: nobody can delete one in between. */
  private async whenThere<T>(op: string, keys: readonly string[], take: () => T, options: StoreWaitOptions): Promise<T> {
    this.checkOpen(op)
    checkKeys(op, keys)
    const { timeoutMs = this.timeoutMs, signal } = options
    const limitMs = timeLimit(op, timeoutMs)
    if (this.missing(keys).length === 0) return take()
    if (signal?.aborted) throw storeCancelled(op, signal.reason)
    return new Promise<T>((resolve, reject) => {
      const end = () => {
        timer?.cancel()
        hear?.()
        this.unlist(waiter)
      }
      const waiter: Waiter = {
        keys,
        ready: () => {
          end()
          resolve(take())
        },
        fail: (error) => {
          end()
          reject(error)
        },
      }
      const expire = () => waiter.fail(storeTimeout(op, this.missing(keys), limitMs))
      const timer = limitMs === Number.POSITIVE_INFINITY ? null : this.clock.setTimer(limitMs, expire)
      const hear = signal && onAbort(signal, () => waiter.fail(storeCancelled(op, signal.reason)))
      this.list(waiter)
    })
  }

  private list(waiter: Waiter): void {
    for (const key of waiter.keys) {
      const waiters = this.waiters.get(key)
      if (waiters === undefined) this.waiters.set(key, new Set([waiter]))
      else waiters.add(waiter)
    }
  }

  private unlist(waiter: Waiter): void {
    for (const key of waiter.keys) {
      const waiters = this.waiters.get(key)
      waiters?.delete(waiter)
      if (waiters?.size === 0) this.waiters.delete(key)
    }
  }

  private missing(keys: readonly string[]): string[] {
    return [...new Set(keys)].filter((key) => !this.values.has(key))
  }

  private checkOpen(op: string): void {
    if (this.isClosed) throw storeClosed(op)
  }
}
