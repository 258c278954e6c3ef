/**
 * A store is a table of keys that workers share to find each other and to agree: which workers joined, on which port, in which round. `HashStore` keeps it
 * in memory, `FileStore` in a file, `TcpStore` reaches one that a `StoreServer` keeps, `PrefixStore` gives a part of one, rpc reaches one on another worker.
 * `store.suite.ts` tests every implementation against this file and SPEC.md (STO-1 to STO-12). PyTorch: `torch.distributed.Store`.
 */

/** A value of a store: bytes, or a string, which is stored as UTF-8. */
export type StoreValue = Uint8Array | string

/** Options of a store's `get` and `wait`. */
export interface StoreWaitOptions {
  /** How long to wait, in ms. Default: the time that the store's `setTimeout` has set, or 300,000. 0: without a limit. */
  readonly timeoutMs?: number
  /** When this signal aborts, the wait rejects with STORE_CANCELLED. */
  readonly signal?: AbortSignal
}

/**
 * A table of keys and values that workers share. A store copies values: changing an array afterwards does not change the store. If the store is closed, all methods,
 * also those that wait, reject with STORE_CLOSED. A key or value of a wrong type fails with INVALID_ARGUMENT. PyTorch: `torch.distributed.Store`.
 */
export interface Store {
  /** Sets the value of a key. An earlier value is replaced. PyTorch: `set`. */
  set(key: string, value: StoreValue): Promise<void>
  /**
   * Waits until the key has a value, and resolves with the value's bytes. PyTorch: `get`.
   * @throws STORE_TIMEOUT after `timeoutMs`; STORE_CANCELLED if `signal` aborts; TIMEOUT_INVALID
   */
  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array>
  /** Waits until the key has a value, and resolves with the value as a string (UTF-8). @throws the errors of `get` */
  getText(key: string, options?: StoreWaitOptions): Promise<string>
  /**
   * Adds an integer to a counter, and resolves with the sum. If the key has no value, the counter starts at 0. `getText` reads a counter as decimal digits.
   * PyTorch: `add`.
   * @throws INVALID_ARGUMENT if `amount` is not an integer; STORE_NOT_A_NUMBER if the value is not a counter, or the sum is beyond ±(2^53 − 1)
   */
  add(key: string, amount: number): Promise<number>
  /**
   * Replaces the key's value by `desired` if the value equals `expected`, and resolves with the value that the key has afterwards. An empty `expected` also matches
   * a key without a value. If the key has no value and `expected` is not empty, nothing is set, and the result is `expected`. PyTorch: `compare_set`.
   */
  compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array>
  /**
   * Waits until all these keys have values at the same time. PyTorch: `wait`.
   * @throws STORE_TIMEOUT after `timeoutMs`, with the missing keys; STORE_CANCELLED if `signal` aborts; TIMEOUT_INVALID
   */
  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void>
  /** Resolves with whether all these keys have values now. PyTorch: `check`. */
  check(keys: readonly string[]): Promise<boolean>
  /** Deletes a key, and resolves with whether it had a value. PyTorch: `delete_key`. */
  deleteKey(key: string): Promise<boolean>
  /** Resolves with the number of keys. A `PrefixStore` counts all keys of its underlying store. PyTorch: `num_keys`. */
  numKeys(): Promise<number>
  /** Sets the time limit of later waits that have no `timeoutMs`, in ms. 0: without a limit. PyTorch: `set_timeout`. @throws TIMEOUT_INVALID */
  setTimeout(timeoutMs: number): void
}

/** PyTorch's default. */
export const STORE_TIMEOUT_MS = 300_000
