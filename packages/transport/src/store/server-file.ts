/**
 * The file from which `store-server.ts` continues after it was killed. The server holds the file's lock as long as it lives (`file-lock.ts`), and writes the file
 * anew when most of it is out of date. One record has a change together with its request, so that the file has both or neither.
 *
 *     { store }            whose file this is; the first
 *     { put, by? }         + value
 *     { delete, by? }
 *     { by }               + value     of a change that was made before the file was written anew; an add's sum
 *     { forget }           a client that will not ask again
 */
import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { FileLock } from './file-lock.js'
import { storeFileDamaged, storeFileFailed, storeLocked } from './store-errors.js'
import { removeStoreFile, StoreFile } from './store-file.js'
import type { LogRecord } from './store-record.js'
import type { StoreChange } from './store-table.js'

/** The request that made a change, and its client. */
export interface ChangeSource {
  readonly client: string
  readonly n: number
  readonly done: number
  readonly op: 'set' | 'add' | 'compareSet' | 'deleteKey'
}

/** Receives the contents of the file, from the first record to the last. */
export interface ServerFileReader {
  onStore(id: string): void
  onChange(change: StoreChange): void
  /** After its change, if the file still has that. */
  onSource(by: ChangeSource, value: Uint8Array): void
  onForget(client: string): void
}

/** Everything, to write the file anew. */
export interface ServerState {
  readonly store: string
  entries(): Iterable<[string, Uint8Array]>
  sources(): Iterable<[ChangeSource, Uint8Array]>
}

/** The file is written anew when it has this much more than twice what is needed. */
const SPARE_BYTES = 2 ** 20
const NO_BYTES = new Uint8Array(0)

export class ServerFile {
  private readonly path: string
  private readonly isSynced: boolean
  private readonly lock: FileLock
  private file: StoreFile
  private rewriteAt = 0

  /** @throws STORE_LOCKED when another server has it, STORE_FILE_DAMAGED, STORE_FILE_FAILED */
  constructor(path: string, isSynced: boolean, reader: ServerFileReader) {
    this.path = path
    this.isSynced = isSynced
    this.lock = new FileLock(`${path}.lock`)
    this.lockNow()
    try {
      this.file = new StoreFile(path)
      this.file.readLocked('serve', (record) => this.take(record, reader))
    } catch (error) {
      this.lock.release()
      throw error
    }
  }

  change({ key, value }: StoreChange, by: ChangeSource | null): void {
    this.append({ ...(value === null ? { delete: key } : { put: key }), ...(by === null ? {} : { by }) }, value ?? NO_BYTES)
  }

  store(id: string): void {
    this.append({ store: id }, NO_BYTES)
  }

  forget(client: string): void {
    try {
      this.append({ forget: client }, NO_BYTES)
    } catch {
      // The disk is full, say. The next server remembers a client that will not come, for a while.
    }
  }

  /** Called before each change: writes the file anew if it is worth it. If that fails, the file grows further, and at its limit changes fail. */
  tidy(state: ServerState): void {
    if (this.file.bytes < this.rewriteAt) return
    const path = `${this.path}.new`
    let file: StoreFile | null = null
    try {
      removeStoreFile(path)
      file = new StoreFile(path)
      file.readLocked('serve', () => {})
      file.append('serve', { store: state.store }, NO_BYTES)
      for (const [key, value] of state.entries()) file.append('serve', { put: key }, value)
      for (const [by, value] of state.sources()) file.append('serve', { by }, value)
      // Or a machine that stops could leave the new name with an empty file.
      file.sync('serve')
      renameSync(path, this.path)
      ;[this.file, file] = [file, this.file]
      if (this.isSynced) syncFolder(this.path)
    } catch {
      // The old file is whole, and stays in use.
    }
    file?.close()
    this.rewriteAt = 2 * this.file.bytes + SPARE_BYTES
  }

  close(): void {
    this.file.close()
    this.lock.release()
  }

  private append(head: object, value: Uint8Array): void {
    this.file.append('serve', head, value)
    if (this.isSynced) this.file.sync('serve')
  }

  private lockNow(): void {
    let isOurs: boolean
    try {
      isOurs = this.lock.tryAcquire()
    } catch (error) {
      throw storeFileFailed('serve', this.lock.path, error)
    }
    if (!isOurs) throw storeLocked('serve', this.lock.path, this.lock.holder(), 0)
  }

  private take({ head, value }: LogRecord, reader: ServerFileReader): void {
    const {
      store,
      put,
      delete: gone,
      by,
      forget,
    } = head as { store?: string; put?: string; delete?: string; by?: ChangeSource; forget?: string }
    if (store !== undefined) reader.onStore(store)
    else if (put !== undefined) reader.onChange({ key: put, value: value.slice() })
    else if (gone !== undefined) reader.onChange({ key: gone, value: null })
    else if (forget !== undefined) reader.onForget(forget)
    else if (by === undefined) throw storeFileDamaged('serve', this.path, this.file.bytes)
    if (by !== undefined) reader.onSource(by, value.slice())
  }
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
