/**
 * A store that processes and threads of one machine share by a file: a log of changes, which all of them read, and a lock, which a writer takes. An
 * operation takes the lock, reads new records, does its work on the table and writes its changes, all in one turn; so a holder of the lock is always
 * at work, or has died (`file-lock.ts`). Waits look at the file now and then. PyTorch: `FileStore`.
 *
 *     set ──▸ queue ──lock──▸ read ▸ table ▸ append ──unlock──▸ answer
 *     get ───────────────────▸ read ▸ table ──not there──▸ poll: read ▸ table …
 */
import { checkTime } from '@postgrad/base/internal'
import { type Clock, RealClock, type Timer } from '../clock.js'
import { FileLock } from './file-lock.js'
import type { Store, StoreValue, StoreWaitOptions } from './store.js'
import { storeClosed, storeFileDamaged, storeFileFailed, storeLocked } from './store-errors.js'
import { StoreFile } from './store-file.js'
import type { LogRecord } from './store-record.js'
import { type StoreChange, StoreTable } from './store-table.js'
import { bytesOf, textOf } from './store-values.js'

/** Options of `FileStore`. */
export interface FileStoreOptions {
  /** The clock that measures waits. Default: the machine's. */
  readonly clock?: Clock
  /** How often a wait reads the file: the longest time between two reads, in ms, at least 1. Default 50. */
  readonly pollMs?: number
  /** How long an operation waits for the file's lock, in ms. Then the operation fails with STORE_LOCKED. Default 30,000. 0: one try. */
  readonly lockMs?: number
}

interface Queued {
  readonly op: string
  /** Runs with the lock, in one turn. */
  run(): void
  fail(error: unknown): void
}

/** Others may have the lock between two lots of operations. */
const LOT_MAX = 64
const LOCK_WAIT_MS_MAX = 10
const NO_BYTES = new Uint8Array(0)

/**
 * A store in a file, which processes and threads of one machine share. If one of these processes is killed, the others continue. The file never shrinks: begin each
 * run with a new file. All methods may also reject with STORE_FILE_FAILED, STORE_FILE_DAMAGED, STORE_LOCKED and STORE_LIMIT. PyTorch:
 * `torch.distributed.FileStore`.
 * @example
 * const store = new FileStore('/tmp/my-run.store')
 * await store.set('port', '29500')
 * await store.getText('port') // '29500', in any process of this machine
 */
export class FileStore implements Store {
  private readonly clock: Clock
  private readonly file: StoreFile
  private readonly lock: FileLock
  private readonly table: StoreTable
  private readonly pollMsMax: number
  private readonly lockMs: number
  private readonly queue: Queued[] = []
  private lockTimer: Timer | null = null
  private lockWaitMs = 0
  private lockSinceMs = 0
  private pollTimer: Timer | null = null
  private pollMs = 1
  private isClosed = false

  /** Opens the file, or makes it. The file `<path>.lock` is its lock. @throws STORE_FILE_FAILED if the file can be neither opened nor made; TIMEOUT_INVALID */
  constructor(path: string, options: FileStoreOptions = {}) {
    this.clock = options.clock ?? new RealClock()
    this.pollMsMax = Math.max(1, checkTime('FileStore', options.pollMs ?? 50, 'at least 1'))
    this.lockMs = checkTime('FileStore', options.lockMs ?? 30_000, '0 for one try')
    this.file = new StoreFile(path)
    this.lock = new FileLock(`${path}.lock`)
    this.table = new StoreTable(this.clock)
  }

  async set(key: string, value: StoreValue): Promise<void> {
    const bytes = bytesOf('set', key, value)
    return this.locked('set', () => this.table.set(key, bytes))
  }

  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    return this.following('get', () => this.table.get(key, options))
  }

  async getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return textOf(await this.get(key, options))
  }

  add(key: string, amount: number): Promise<number> {
    return this.locked('add', () => this.table.add(key, amount))
  }

  async compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    const before = bytesOf('compareSet', key, expected)
    const after = bytesOf('compareSet', key, desired)
    return this.locked('compareSet', () => this.table.compareSet(key, before, after))
  }

  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    const copy = Array.isArray(keys) ? [...keys] : keys
    return this.following('wait', () => this.table.wait(copy, options))
  }

  check(keys: readonly string[]): Promise<boolean> {
    const copy = Array.isArray(keys) ? [...keys] : keys
    return this.following('check', async () => this.table.check(copy))
  }

  deleteKey(key: string): Promise<boolean> {
    return this.locked('deleteKey', () => this.table.deleteKey(key))
  }

  numKeys(): Promise<number> {
    return this.following('numKeys', async () => this.table.numKeys())
  }

  setTimeout(timeoutMs: number): void {
    this.table.setTimeout(timeoutMs)
  }

  /** Closes the store. Operations that wait, and later operations, reject with STORE_CLOSED. The file is kept. Idempotent. */
  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.lockTimer?.cancel()
    this.pollTimer?.cancel()
    for (const queued of this.queue.splice(0)) queued.fail(storeClosed(queued.op))
    this.table.close()
    this.file.close()
  }

  /** How many calls of `get`, `getText` and `wait` are waiting. */
  get waiting(): number {
    return this.table.waiting
  }

  /** Operations that change something run with the lock, in the order of their calls. */
  private locked<T>(op: string, run: () => T): Promise<T> {
    if (this.isClosed) return Promise.reject(storeClosed(op))
    return new Promise<T>((resolve, reject) => {
      this.queue.push({
        op,
        run: () => {
          this.table.keep = (change) => this.append(op, change)
          resolve(run())
        },
        fail: reject,
      })
      if (this.queue.length === 1) this.work()
    })
  }

  /** Operations that only read need no lock, but wait for all earlier calls. */
  private async following<T>(op: string, run: () => Promise<T>): Promise<T> {
    if (this.isClosed) throw storeClosed(op)
    const begun =
      this.queue.length > 0
        ? await new Promise<{ result: Promise<T> }>((resolve, reject) => {
            this.queue.push({ op, run: () => resolve({ result: this.begin(run) }), fail: reject })
          })
        : { result: this.begin(run, op) }
    return begun.result
  }

  private begin<T>(run: () => Promise<T>, op?: string): Promise<T> {
    if (op !== undefined) this.follow(op)
    const result = run()
    if (this.table.isWaitedFor && this.pollTimer === null) this.pollSoon(1)
    return result
  }

  private work(): void {
    this.lockTimer = null
    const op = this.queue[0]!.op
    try {
      if (!this.lock.tryAcquire()) {
        this.waitForLock(op)
        return
      }
    } catch (error) {
      this.failAll(storeFileFailed(op, this.lock.path, error))
      return
    }
    this.lockWaitMs = 0
    try {
      this.file.readLocked(op, (record) => this.take(record))
      for (const queued of this.queue.splice(0, LOT_MAX)) {
        try {
          queued.run()
        } catch (error) {
          queued.fail(error)
        }
      }
    } catch (error) {
      this.failAll(error)
    } finally {
      this.lock.release()
    }
    if (this.queue.length > 0) this.clock.defer(() => this.workIfOpen())
  }

  private workIfOpen(): void {
    if (!this.isClosed && this.queue.length > 0) this.work()
  }

  private waitForLock(op: string): void {
    const now = this.clock.now()
    if (this.lockWaitMs === 0) this.lockSinceMs = now
    const waitedMs = now - this.lockSinceMs
    if (waitedMs >= this.lockMs) {
      this.lockWaitMs = 0
      this.failAll(storeLocked(op, this.lock.path, this.lock.holder(), waitedMs))
      return
    }
    this.lockWaitMs = Math.min(Math.max(1, 2 * this.lockWaitMs), LOCK_WAIT_MS_MAX)
    this.lockTimer = this.clock.setTimer(this.lockWaitMs, () => this.work())
  }

  private failAll(error: unknown): void {
    for (const queued of this.queue.splice(0)) queued.fail(error)
  }

  /** Before the change is made: if it cannot be written, it is not made. */
  private append(op: string, { key, value }: StoreChange): void {
    this.file.append(op, value === null ? { delete: key } : { put: key }, value ?? NO_BYTES)
  }

  /** Reads new records; whether there were any. */
  private follow(op: string): boolean {
    const before = this.file.bytes
    const how = this.file.read(op, (record) => this.take(record))
    // Or another process is just writing: a read with the lock is certain.
    if (how === 'damaged' && this.queue.length === 0) this.locked(op, () => {}).catch((error) => this.table.failWaits(error))
    return this.file.bytes > before
  }

  private take({ head, value }: LogRecord): void {
    const { put, delete: gone } = head as { put?: unknown; delete?: unknown }
    if (typeof put === 'string') this.table.apply({ key: put, value: value.slice() })
    else if (typeof gone === 'string') this.table.apply({ key: gone, value: null })
    else throw storeFileDamaged('read', this.file.path, this.file.bytes)
  }

  private pollSoon(ms: number): void {
    this.pollMs = Math.min(ms, this.pollMsMax)
    this.pollTimer = this.clock.setTimer(this.pollMs, () => this.poll())
  }

  private poll(): void {
    this.pollTimer = null
    if (!this.table.isWaitedFor) return
    let isNew = false
    try {
      isNew = this.follow('wait')
    } catch (error) {
      this.table.failWaits(error)
      return
    }
    if (this.table.isWaitedFor) this.pollSoon(isNew ? 1 : 2 * this.pollMs)
  }
}
