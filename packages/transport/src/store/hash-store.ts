/**
 * A store in the memory of one worker, on a clock that is passed in: what all other stores come down to. Each operation is done at once, in one piece;
 * only waits take time. PyTorch: `HashStore`.
 */
import { PostgradError } from '@postgrad/base'
import { onAbort, timeLimit } from '@postgrad/base/internal'
import type { Clock } from '../clock.js'
import { STORE_TIMEOUT_MS, type Store, type StoreValue, type StoreWaitOptions } from './store.js'
import { notANumber, storeCancelled, storeClosed, storeTimeout } from './store-errors.js'

interface Waiter {
  readonly keys: readonly string[]
  /** All keys are there. */
  ready(): void
  fail(error: PostgradError): void
}

/** A store of keys and values in the memory of one worker. PyTorch: `torch.distributed.HashStore`. */
export class HashStore implements Store {
  private readonly clock: Clock
  private readonly values = new Map<string, Uint8Array>()
  private readonly waiters = new Map<string, Set<Waiter>>()
  private timeoutMs = STORE_TIMEOUT_MS
  private isClosed = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  async set(key: string, value: StoreValue): Promise<void> {
    this.checkOpen('set')
    this.put(key, bytesOf('set', key, value))
  }

  get(key: string, options: StoreWaitOptions = {}): Promise<Uint8Array> {
    return this.whenThere('get', [key], () => this.values.get(key)!.slice(), options)
  }

  async getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return decoder.decode(await this.get(key, options))
  }

  async add(key: string, amount: number): Promise<number> {
    this.checkOpen('add')
    if (!Number.isSafeInteger(amount)) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'add',
        expected: 'an integer',
        got: typeof amount === 'number' ? String(amount) : amount === null ? 'null' : typeof amount,
        remedy: 'Write add(key, 1); set() keeps other values, as text or bytes.',
        values: { key },
      })
    }
    const text = decoder.decode(this.values.get(checkKey('add', key)) ?? ZERO)
    const sum = Number(text) + amount
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(sum)) throw notANumber(key)
    this.put(key, encoder.encode(String(sum)))
    return sum
  }

  async compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    this.checkOpen('compareSet')
    const before = bytesOf('compareSet', key, expected)
    const after = bytesOf('compareSet', key, desired)
    const current = this.values.get(key)
    if (current === undefined ? before.length > 0 : !equal(current, before)) return (current ?? before).slice()
    this.put(key, after)
    return after.slice()
  }

  wait(keys: readonly string[], options: StoreWaitOptions = {}): Promise<void> {
    return this.whenThere('wait', keys, () => {}, options)
  }

  async check(keys: readonly string[]): Promise<boolean> {
    this.checkOpen('check')
    checkKeys('check', keys)
    return this.missing(keys).length === 0
  }

  async deleteKey(key: string): Promise<boolean> {
    this.checkOpen('deleteKey')
    return this.values.delete(checkKey('deleteKey', key))
  }

  async numKeys(): Promise<number> {
    this.checkOpen('numKeys')
    return this.values.size
  }

  setTimeout(timeoutMs: number): void {
    timeLimit('setTimeout', timeoutMs)
    this.timeoutMs = timeoutMs
  }

  /** Rejects what waits with STORE_CLOSED, as everything that is tried later. Idempotent. */
  close(): void {
    this.isClosed = true
    for (const waiters of [...this.waiters.values()]) for (const waiter of [...waiters]) waiter.fail(storeClosed('close'))
    this.values.clear()
  }

  /** How many waits are under way. */
  get waiting(): number {
    return new Set([...this.waiters.values()].flatMap((waiters) => [...waiters])).size
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

  private put(key: string, value: Uint8Array): void {
    this.values.set(key, value)
    const waiters = this.waiters.get(key)
    if (waiters === undefined) return
    for (const waiter of [...waiters]) if (this.missing(waiter.keys).length === 0) waiter.ready()
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

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const ZERO = encoder.encode('0')

/** A copy. @throws INVALID_ARGUMENT */
function bytesOf(op: string, key: string, value: StoreValue): Uint8Array {
  checkKey(op, key)
  if (typeof value === 'string') return encoder.encode(value)
  // No `instanceof`: what crossed a thread or jest's realm is none.
  if (ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]') return Uint8Array.from(value)
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a string or a Uint8Array',
    got: value === null ? 'null' : typeof value,
    remedy: 'Turn other values into text: JSON.stringify(value).',
    values: { key },
  })
}

/** @throws INVALID_ARGUMENT */
function checkKey(op: string, key: string): string {
  if (typeof key === 'string') return key
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a string as the key',
    got: key === null ? 'null' : typeof key,
    remedy: 'Turn it into text first, as in String(key).',
  })
}

/** @throws INVALID_ARGUMENT */
function checkKeys(op: string, keys: readonly string[]): void {
  if (!Array.isArray(keys)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'a list of keys',
      got: keys === null ? 'null' : typeof keys,
      remedy: `Write ${op}(['key']), also for one.`,
    })
  }
  for (const key of keys) checkKey(op, key)
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
