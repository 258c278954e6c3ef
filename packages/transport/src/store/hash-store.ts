/** A store in the memory of one worker: `store-table.ts` under the contract. PyTorch: `HashStore`. */
import { type Clock, RealClock } from '../clock.js'
import type { Store, StoreValue, StoreWaitOptions } from './store.js'
import { StoreTable } from './store-table.js'
import { textOf } from './store-values.js'

/** For the server, which serves the table of a store that is there already. */
let readTable: (store: HashStore) => StoreTable

/**
 * A store in the memory of one worker. Other workers reach a worker's store by `storeOn`. PyTorch: `torch.distributed.HashStore`.
 * @example
 * const store = new HashStore()
 * await store.set('epoch', '3')
 * await store.getText('epoch') // '3'
 * await store.add('arrived', 1) // 1
 */
export class HashStore implements Store {
  private readonly table: StoreTable

  static {
    readTable = (store) => store.table
  }

  /** @param clock measures how long `get` and `wait` wait. Default: the machine's clock */
  constructor(clock: Clock = new RealClock()) {
    this.table = new StoreTable(clock)
  }

  async set(key: string, value: StoreValue): Promise<void> {
    this.table.set(key, value)
  }

  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    return this.table.get(key, options)
  }

  async getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return textOf(await this.table.get(key, options))
  }

  async add(key: string, amount: number): Promise<number> {
    return this.table.add(key, amount)
  }

  async compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    return this.table.compareSet(key, expected, desired)
  }

  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    return this.table.wait(keys, options)
  }

  async check(keys: readonly string[]): Promise<boolean> {
    return this.table.check(keys)
  }

  async deleteKey(key: string): Promise<boolean> {
    return this.table.deleteKey(key)
  }

  async numKeys(): Promise<number> {
    return this.table.numKeys()
  }

  setTimeout(timeoutMs: number): void {
    this.table.setTimeout(timeoutMs)
  }

  /** Closes the store. Operations that wait, and later operations, reject with STORE_CLOSED. Idempotent. */
  close(): void {
    this.table.close()
  }

  /** How many calls of `get`, `getText` and `wait` are waiting. */
  get waiting(): number {
    return this.table.waiting
  }
}

/** The table of a store. */
export const tableOf = (store: HashStore): StoreTable => readTable(store)
