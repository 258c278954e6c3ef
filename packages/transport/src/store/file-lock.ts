/**
 * A lock that processes and threads share by a path: the one that makes the file holds it. The file names its holder, so that others can break a dead one's lock.
 *
 * Note [Breaking a lock]
 * The lock is a symbolic link whose target is text, since only that makes a file and its contents in one step: a lock never exists without its holder's
 * name. The target names the holder: machine (host, boot, and the process ids that it sees), process, thread, when that was started, and a number that no
 * other lock of it has.
 *
 * If two processes find a dead holder's lock, one may remove it and make its own, which the other must not remove. So a process that wants to break a lock first
 * makes a lock to break it, `path.break`, held in the same way, and then looks at the lock again: if it still names the dead holder, no other process can change
 * it now, as the holder is dead and there is one breaker. If a breaker has died, its lock is broken in the same way, by `path.break.break`.
 *
 * A holder on another machine, or whose threads cannot be looked at, is never taken for dead while that is not known. So a lock may be left for ever; errors of
 * waiting processes name its holder. A caller that holds a lock for long can `refresh` it: another may then take over a lock that has had the same `sign` for long.
 */

import { lstatSync, lutimesSync, readFileSync, readlinkSync, symlinkSync, unlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { now, timeOriginMs, wallMs } from '@postgrad/base/internal'

/** More breakers than this have not died one after the other while they broke a lock. */
const BREAKERS_MAX = 3

export class FileLock {
  readonly path: string
  private readonly self: string
  private count = 0
  private mine: string | null = null

  constructor(path: string) {
    this.path = path
    this.self = ownName()
  }

  /**
   * Whether this object now holds the lock. @throws errors of the file system, but not if there is a lock.
   * @param silent a `sign` that has been there for so long that its holder is taken for dead
   */
  tryAcquire(silent: string | null = null): boolean {
    const text = `${this.self}/${++this.count}/${timeOriginMs + now()}`
    if (silent !== null && this.sign() === silent) {
      if (!makeLock(this.path, text, 0, readLock(this.path))) return false
    } else if (!makeLock(this.path, text, 0)) return false
    this.mine = text
    return true
  }

  /** A lock that is no longer this object's is left alone. */
  release(): void {
    if (this.isMine()) unlinkSync(this.path)
    this.mine = null
  }

  /** False if somebody has removed the lock by hand. */
  isMine(): boolean {
    return this.mine !== null && readLock(this.path) === this.mine
  }

  /** The lock's text, which names its holder and no other lock has; null: no lock. */
  text(): string | null {
    return readLock(this.path)
  }

  /** Gives the lock another `sign`. */
  refresh(): void {
    const now = wallMs() / 1000
    if (this.isMine()) lutimesSync(this.path, now, now)
  }

  /** The holder and when it last refreshed the lock, of which only this can be said: whether it is the same as before. Null where there is none. */
  sign(): string | null {
    const text = readLock(this.path)
    return text === null ? null : `${text} ${readOr(0, () => lstatSync(this.path).mtimeMs)}`
  }

  /** Whether this process cannot see if the holder lives. */
  isBeyondSight(): boolean {
    const text = readLock(this.path)
    return text !== null && !isInSight(partsOf(text))
  }

  /** The holder, for messages. */
  holder(): string {
    const text = readLock(this.path)
    if (text === null) return 'nobody'
    const { host, pid } = partsOf(text)
    return Number.isInteger(pid) ? `process ${pid} on ${host}` : text
  }
}

/** Whether the lock at `path` names a process or thread that has surely died. False for another kind of file. */
export function isLockLeft(path: string): boolean {
  const holder = readLock(path)
  return holder !== null && isDead(holder)
}

function makeLock(path: string, text: string, depth: number, silent: string | null = null): boolean {
  if (tryMake(path, text)) return true
  const holder = readLock(path)
  if (holder === null || (holder !== silent && !isDead(holder)) || depth === BREAKERS_MAX) return false
  const breaker = `${path}.break`
  if (!makeLock(breaker, text, depth + 1)) return false
  try {
    if (readLock(path) === holder) unlinkSync(path)
  } finally {
    unlinkSync(breaker)
  }
  return tryMake(path, text)
}

function tryMake(path: string, text: string): boolean {
  try {
    symlinkSync(text, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Null where there is none. */
function readLock(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    // A file that somebody else put there: nobody's lock, and not ours to remove.
    if (codeOf(error) === 'EINVAL') return 'something other than a lock'
    throw error
  }
}

/** `host/boot+pids/pid/thread/started`: text that the same thread always has and no other. */
function ownName(): string {
  const { pid } = process
  const [thread = '', started = ''] = ownThread()
  return [encodeURIComponent(hostname()), machine(), pid, thread, started].join('/')
}

interface Holder {
  readonly host: string
  readonly machine: string
  readonly pid: number
  readonly thread: string
  readonly started: string
}

function partsOf(text: string): Holder {
  const [host = '', where = '', pid = 'none', thread = '', started = ''] = text.split('/')
  return { host: readOr(host, () => decodeURIComponent(host)), machine: where, pid: Number(pid), thread, started }
}

/** Only when it is sure. */
function isDead(text: string): boolean {
  const { host, machine: where, pid, thread, started } = partsOf(text)
  if (!isOnThisMachine(host, where) || !Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'ESRCH'
  }
  if (thread === '' || readStat('/proc/thread-self') === null) return false
  const stat = readStat(`/proc/${pid}/task/${thread}`)
  // A zombie has ended, and a number may have been given to another thread since.
  return stat === null || stat.state === 'Z' || stat.state === 'X' || stat.started !== started
}

const isOnThisMachine = (host: string, where: string): boolean => host === hostname() && where === machine()

/** Whether `isDead` is certain when it is false; true for another kind of file, which stays. */
function isInSight({ host, machine: where, pid, thread }: Holder): boolean {
  if (!Number.isInteger(pid)) return true
  return isOnThisMachine(host, where) && thread !== '' && readStat('/proc/thread-self') !== null
}

/** Linux alone says which thread of the system this is; elsewhere a lock belongs to the process. */
function ownThread(): [thread: string, started: string] | [] {
  const stat = readStat('/proc/thread-self')
  return stat === null ? [] : [stat.thread, stat.started]
}

/** A process id means something on one machine, since it was started, among those who see the same processes. */
function machine(): string {
  return `${readOr('', () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())}+${readOr('', () => readlinkSync('/proc/self/ns/pid'))}`
}

function readStat(path: string): { thread: string; state: string; started: string } | null {
  const text = readOr('', () => readFileSync(`${path}/stat`, 'utf8'))
  if (text === '') return null
  // The name, in parentheses, may have any character in it. proc(5): field 3 is the state, 22 when it was started.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { thread: text.slice(0, text.indexOf(' ')), state: fields[0] ?? '', started: fields[19] ?? '' }
}

function readOr<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code
