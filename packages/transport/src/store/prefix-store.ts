/**
 * A part of another store: every key gets a prefix, so that groups that share a store have keys of their own. PyTorch: `PrefixStore`.
 */
import { timeLimit } from '@postgrad/base/internal'
import type { Store, StoreValue, StoreWaitOptions } from './store.js'

/**
 * A part of another store. Every key gets the prefix and '/' before it, so that groups which share a store have separate keys. PyTorch:
 * `torch.distributed.PrefixStore`.
 * @example
 * const store = new HashStore()
 * await new PrefixStore('run7', store).set('port', '29500')
 * await new PrefixStore('run8', store).check(['port']) // false
 */
export class PrefixStore implements Store {
  /** The prefix: the underlying store's key is `prefix/key`. */
  readonly prefix: string
  /** The store that has the keys and values. */
  readonly underlyingStore: Store
  /** Its own, apart from that of the store below. */
  private timeoutMs: number | undefined

  constructor(prefix: string, store: Store) {
    this.prefix = prefix
    this.underlyingStore = store
  }

  set(key: string, value: StoreValue): Promise<void> {
    return this.underlyingStore.set(this.full(key), value)
  }

  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    return this.underlyingStore.get(this.full(key), this.timed(options))
  }

  getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return this.underlyingStore.getText(this.full(key), this.timed(options))
  }

  add(key: string, amount: number): Promise<number> {
    return this.underlyingStore.add(this.full(key), amount)
  }

  compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    return this.underlyingStore.compareSet(this.full(key), expected, desired)
  }

  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    return this.underlyingStore.wait(this.allFull(keys), this.timed(options))
  }

  check(keys: readonly string[]): Promise<boolean> {
    return this.underlyingStore.check(this.allFull(keys))
  }

  deleteKey(key: string): Promise<boolean> {
    return this.underlyingStore.deleteKey(this.full(key))
  }

  numKeys(): Promise<number> {
    return this.underlyingStore.numKeys()
  }

  setTimeout(timeoutMs: number): void {
    timeLimit('setTimeout', timeoutMs)
    this.timeoutMs = timeoutMs
  }

  /** Leaves an invalid key as it is: the store below refuses it. */
  private full(key: string): string {
    return typeof key === 'string' ? `${this.prefix}/${key}` : key
  }

  private allFull(keys: readonly string[]): readonly string[] {
    return Array.isArray(keys) ? keys.map((key) => this.full(key)) : keys
  }

  private timed(options: StoreWaitOptions = {}): StoreWaitOptions {
    return this.timeoutMs === undefined ? options : { timeoutMs: this.timeoutMs, ...options }
  }
}
