/**
 * A store is a table of keys that workers share to find each other and to agree: who has come, on which port, in which round. `HashStore` keeps it in
 * memory, `FileStore` in a file, `TcpStore` reaches one that a `StoreServer` keeps, `PrefixStore` gives a part of one, rpc reaches one on another worker.
 * `store.suite.ts` holds every implementation to what is promised here and in SPEC.md (STO-1 to STO-12). PyTorch: `torch.distributed.Store`.
 */

/** Bytes; a string is its UTF-8. */
export type StoreValue = Uint8Array | string

/** Of a store's `get` and `wait`. */
export interface StoreWaitOptions {
  /** In ms; default what `setTimeout` said, at first 300,000; 0 is no limit. */
  readonly timeoutMs?: number
  /** Ends the wait with STORE_CANCELLED. */
  readonly signal?: AbortSignal
}

/** Every method rejects with STORE_CLOSED when the store is closed, before or meanwhile. Values are copied, in and out. */
export interface Store {
  /** Puts a value in the place of whatever was there. PyTorch: `set`. */
  set(key: string, value: StoreValue): Promise<void>
  /** The value, once there is one. @throws (rejects) STORE_TIMEOUT, STORE_CANCELLED, TIMEOUT_INVALID. PyTorch: `get`. */
  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array>
  /** `get`, as a string. */
  getText(key: string, options?: StoreWaitOptions): Promise<string>
  /**
   * Adds an integer to a counter, which is 0 where there is none, and gives what it is then. Its value is readable by `getText`, as decimal digits.
   * @throws (rejects) INVALID_ARGUMENT, STORE_NOT_A_NUMBER. PyTorch: `add`.
   */
  add(key: string, amount: number): Promise<number>
  /**
   * Puts `desired` in the place of `expected`, if that is what is there, and gives what is there afterwards. An empty `expected` also stands for a key that
   * is not there; where another is expected and there is no key, nothing is put and `expected` comes back. PyTorch: `compare_set`.
   */
  compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array>
  /** Waits until all keys are there at once. @throws (rejects) STORE_TIMEOUT with those that are not, STORE_CANCELLED, TIMEOUT_INVALID. PyTorch: `wait`. */
  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void>
  /** Whether all keys are there. PyTorch: `check`. */
  check(keys: readonly string[]): Promise<boolean>
  /** Whether there was such a key. PyTorch: `delete_key`. */
  deleteKey(key: string): Promise<boolean>
  /** Of the whole store, also for one with a prefix. PyTorch: `num_keys`. */
  numKeys(): Promise<number>
  /** How long later waits may take that do not say it themselves; 0 is no limit. @throws TIMEOUT_INVALID. PyTorch: `set_timeout`. */
  setTimeout(timeoutMs: number): void
}

/** PyTorch's default. */
export const STORE_TIMEOUT_MS = 300_000
