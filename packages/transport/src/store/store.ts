/**
 * A store is a table of keys that workers share to find each other and to agree: which workers joined, on which port, in which round. `HashStore` keeps it
 * in memory, `FileStore` in a file, `TcpStore` reaches one that a `StoreServer` keeps, `PrefixStore` gives a part of one, rpc reaches one on another worker.
 * `store.suite.ts` tests every implementation against this file and SPEC.md (STO-1 to STO-12). PyTorch: `torch.distributed.Store`.
 */

/** A value of a store: bytes, or a string, which is stored as UTF-8. */
export type StoreValue = Uint8Array | string

/** Options of a store's `get` and `wait`. */
export interface StoreWaitOptions {
  /** How long to wait, in ms; 0: without a limit. Default: the value of `setTimeout`, at first 300,000. */
  readonly timeoutMs?: number
  /** Ends the wait with STORE_CANCELLED. */
  readonly signal?: AbortSignal
}

/** A table of keys that workers share. If the store is or gets closed, every method rejects with STORE_CLOSED. Values are copied, in and out. PyTorch: `torch.distributed.Store`. */
export interface Store {
  /** Sets the value of a key, and replaces an earlier value. PyTorch: `set`. */
  set(key: string, value: StoreValue): Promise<void>
  /** Waits until the key has a value, and returns it. @throws (rejects) STORE_TIMEOUT, STORE_CANCELLED, TIMEOUT_INVALID. PyTorch: `get`. */
  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array>
  /** As `get`, but returns a string. */
  getText(key: string, options?: StoreWaitOptions): Promise<string>
  /**
   * Adds an integer to a counter and returns the sum. A counter that does not exist yet is 0. `getText` returns a counter as decimal digits.
   * @throws (rejects) INVALID_ARGUMENT, STORE_NOT_A_NUMBER. PyTorch: `add`.
   */
  add(key: string, amount: number): Promise<number>
  /**
   * Replaces the value by `desired` if it equals `expected`. Returns the value that the key has afterwards. An empty `expected` also matches a key that does
   * not exist. If the key does not exist and `expected` is not empty, nothing is set and `expected` is returned. PyTorch: `compare_set`.
   */
  compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array>
  /** Waits until all keys exist at the same time. @throws (rejects) STORE_TIMEOUT with the missing keys, STORE_CANCELLED, TIMEOUT_INVALID. PyTorch: `wait`. */
  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void>
  /** Whether all keys exist. PyTorch: `check`. */
  check(keys: readonly string[]): Promise<boolean>
  /** Deletes a key. Returns whether it existed. PyTorch: `delete_key`. */
  deleteKey(key: string): Promise<boolean>
  /** The number of keys of the whole store, even if this store has a prefix. PyTorch: `num_keys`. */
  numKeys(): Promise<number>
  /** Sets the time limit of later waits that have no `timeoutMs`, in ms; 0: without a limit. @throws TIMEOUT_INVALID. PyTorch: `set_timeout`. */
  setTimeout(timeoutMs: number): void
}

/** PyTorch's default. */
export const STORE_TIMEOUT_MS = 300_000
