/**
 * Reads and writes the file of a store: it reads the records that others have written since, and writes its own after the last whole record. Everything
 * here is synchronous. `file-store.ts` and `server-file.ts` use and lock it, `store-record.ts` has its format.
 */
import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { storeFileDamaged, storeFileFailed, storeLimit } from './store-errors.js'
import { encodeRecord, FILE_MAGIC, type LogEnd, type LogRecord, magicOf, RECORD_BYTES_MAX, readRecords } from './store-record.js'

/** A store's file is read in one piece, and never shrinks while it is shared. */
export const FILE_BYTES_MAX = 2 ** 28

export class StoreFile {
  readonly path: string
  private readonly fd: number
  /** The end of the last whole record that was read or written here; 0 as long as the file has no magic. */
  private end = 0

  /** Makes the file if there is none, for its owner alone. @throws STORE_FILE_FAILED */
  constructor(path: string) {
    this.path = path
    this.fd = trying('open', path, () => openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600))
  }

  /** Up to where it is known. */
  get bytes(): number {
    return this.end
  }

  /**
   * Reads records written since. Without the lock it may find a record that is not whole yet: a later read gets it.
   * @throws STORE_FILE_DAMAGED when this is not a store's file, STORE_FILE_FAILED
   */
  read(op: string, onRecord: (record: LogRecord) => void): LogEnd {
    const bytes = trying(op, this.path, () => this.rest())
    if (bytes === null) return 'whole'
    let at = 0
    if (this.end === 0) {
      const magic = magicOf(bytes)
      if (magic === 'damaged') throw storeFileDamaged(op, this.path, 0)
      if (magic !== 'whole') return magic
      at = FILE_MAGIC.length
    }
    const { end, how } = readRecords(bytes, at, onRecord)
    this.end += end
    return how
  }

  /** With the lock: reads to the end and cuts off a part that a killed writer left. @throws STORE_FILE_DAMAGED, STORE_FILE_FAILED */
  readLocked(op: string, onRecord: (record: LogRecord) => void): void {
    const how = this.read(op, onRecord)
    if (how === 'damaged') throw storeFileDamaged(op, this.path, this.end)
    trying(op, this.path, () => {
      if (fstatSync(this.fd).nlink === 0) throw new Error('it was deleted while it was in use')
      if (how === 'torn') ftruncateSync(this.fd, this.end)
      if (this.end === 0) this.write(FILE_MAGIC)
    })
  }

  /** With the lock, after `readLocked`: all of it or nothing. @throws STORE_LIMIT, STORE_FILE_FAILED */
  append(op: string, head: object, value: Uint8Array): void {
    const bytes = encodeRecord(head, value)
    if (bytes.length > RECORD_BYTES_MAX) throw storeLimit(op, 'bytes in a value', RECORD_BYTES_MAX)
    if (this.end + bytes.length > FILE_BYTES_MAX) throw storeLimit(op, `bytes in '${this.path}'`, FILE_BYTES_MAX)
    trying(op, this.path, () => this.write(bytes))
  }

  /** Returns when the disk has it. */
  sync(op: string): void {
    trying(op, this.path, () => fsyncSync(this.fd))
  }

  close(): void {
    closeSync(this.fd)
  }

  private write(bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.fd, bytes, at, bytes.length - at, this.end + at)
    } catch (error) {
      // The disk is full, say: a written part of it must not precede the next record.
      ftruncateSync(this.fd, this.end)
      throw error
    }
    this.end += bytes.length
  }

  private rest(): Uint8Array | null {
    const { size } = fstatSync(this.fd)
    if (size < this.end) throw new Error('it has become shorter while it was in use')
    if (size === this.end) return null
    if (size > FILE_BYTES_MAX) throw new Error(`it has more than ${FILE_BYTES_MAX} bytes`)
    const bytes = new Uint8Array(size - this.end)
    let read = 0
    while (read < bytes.length) {
      const count = readSync(this.fd, bytes, read, bytes.length - read, this.end + read)
      if (count === 0) break
      read += count
    }
    return bytes.subarray(0, read)
  }
}

/** Removes a file that a killed process has left at `path`, if there is one. @throws STORE_FILE_DAMAGED if it is not a store's, and stays */
export function removeStoreFile(path: string): void {
  const left = new StoreFile(path)
  try {
    left.read('serve', () => {})
  } finally {
    left.close()
  }
  rmSync(path, { force: true })
}

function trying<T>(op: string, path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw storeFileFailed(op, path, error)
  }
}
