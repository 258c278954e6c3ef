/** The machine: Node, cores, memory, open files. `readMachine` reads facts, and pure functions decide what they mean. */
import { readFileSync } from 'node:fs'
import { availableParallelism, freemem, totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { fittingHeapBytes, HEAP_BYTES_MAX, HEAP_BYTES_MIN } from 'postgrad/plugin'
import { bytesText } from '../status/tables.js'
import { type Finding, fail, ok, warn } from './finding.js'

const GIB = 1024 ** 3
const MIB = 1024 ** 2

export interface MachineFacts {
  /** '20.20.2' */
  readonly node: string
  readonly cores: number
  /** What a container may use of them; null: no limit. */
  readonly coresLimit: number | null
  readonly memoryBytes: number
  readonly freeBytes: number
  /** Of the container; null: no limit. */
  readonly memoryLimitBytes: number | null
  /** Of one thread's JavaScript heap. */
  readonly heapLimitBytes: number
  /** Null: the system does not say. */
  readonly openFiles: number | null
  /** Of the address space, in bytes; null: no limit. */
  readonly addressSpaceBytes: number | null
  /** What this process has of it before it makes a heap. */
  readonly addressSpaceUsedBytes: number
}

/** @param constrained what Node says of the memory of this process's cgroup, which may lie below the one whose files are seen here; 0 and absurdly much: no limit */
export function readMachine(
  read: (path: string) => string | null = readIfAny,
  constrained: number = process.constrainedMemory?.() ?? 0,
): MachineFacts {
  const limits = read('/proc/self/limits') ?? ''
  return {
    node: process.versions.node,
    cores: availableParallelism(),
    coresLimit: coresLimitOf(read),
    memoryBytes: totalmem(),
    freeBytes: freemem(),
    memoryLimitBytes: memoryLimitOf(read, constrained),
    heapLimitBytes: getHeapStatistics().heap_size_limit,
    openFiles: limitOf(limits, 'Max open files'),
    addressSpaceBytes: limitOf(limits, 'Max address space'),
    addressSpaceUsedBytes: 1024 * Number(/^VmSize:\s*(\d+)/m.exec(read('/proc/self/status') ?? '')?.[1] ?? 0),
  }
}

const NODE_MIN = 20
/** Older ones get no fixes, nor does the one after it. */
const NODE_MAINTAINED = 22
const NODE_SHORT_LIVED = 23
/** By major versions, the first minor that strips types of TypeScript by itself. Later majors do from the start. */
const STRIPS_FROM: Readonly<Record<number, number>> = { 22: 18, 23: 6 }

export function judgeNode({ node }: MachineFacts): Finding {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major < NODE_MIN) return fail('node', node, 'postgrad needs Node 20.', 'Install Node 24.')
  const todo = 'Install Node 24 when you can.'
  if (major < NODE_MAINTAINED)
    return warn('node', node, `Node ${major} gets no fixes any longer; each await costs more here, and TypeScript needs tsx.`, todo)
  const stripsFrom = STRIPS_FROM[major] ?? 0
  const needsTsx = minor < stripsFrom ? `Node strips types from ${major}.${stripsFrom} on; here TypeScript needs tsx.` : ''
  if (major === NODE_SHORT_LIVED) return warn('node', node, `Node ${major} gets no fixes any longer. ${needsTsx}`.trimEnd(), todo)
  if (needsTsx !== '') return warn('node', node, needsTsx, todo)
  return ok('node', node, 'It strips the types of TypeScript by itself.')
}

export function judgeCores({ cores, coresLimit }: MachineFacts): Finding {
  const usable = Math.min(cores, coresLimit ?? cores)
  const found = coresLimit === null || coresLimit >= cores ? `${cores}` : `${cores}, of which the container may use ${coresLimit}`
  const most = Math.floor(usable)
  if (usable >= 2)
    return ok(
      'cores',
      found,
      `Up to ${most} workers compute at the same time; more take turns. One worker can use ${most} threads (computeThreads).`,
    )
  return warn('cores', found, 'Workers take turns: nothing is faster than with one.', 'Use a machine, or a limit, of more cores.')
}

const MEMORY_LITTLE = GIB

export function judgeMemory({ memoryBytes, freeBytes, memoryLimitBytes, heapLimitBytes }: MachineFacts): Finding {
  const usable = Math.min(memoryBytes, memoryLimitBytes ?? memoryBytes)
  const limit =
    memoryLimitBytes === null || memoryLimitBytes >= memoryBytes ? '' : `, of which the container may use ${bytesText(memoryLimitBytes)}`
  const found = `${bytesText(memoryBytes)}${limit}, ${bytesText(freeBytes)} free; a thread's JavaScript heap at most ${bytesText(heapLimitBytes)}`
  if (usable >= MEMORY_LITTLE) return ok('memory', found)
  return warn(
    'memory',
    found,
    'A worker takes 18 to 23 MiB before its first tensor; a container that runs out of memory is killed as a whole.',
    'Raise the limit, or start fewer workers; resourceLimits of launch bound a thread.',
  )
}

/** What V8 takes of the address space for a thread: some 600 to 850 MiB. */
const THREAD_BYTES = 850 * MIB

type AddressSpace = Pick<MachineFacts, 'addressSpaceBytes' | 'addressSpaceUsedBytes'>

/** The heap of tensors that threads share; it is address space, and no memory until it is written. @param reserve throws where so many bytes of address space cannot be had */
export function judgeHeap(reserve: (bytes: number) => void, { addressSpaceBytes, addressSpaceUsedBytes }: AddressSpace): Finding {
  const limit = addressSpaceBytes === null ? '' : ` (ulimit -v is ${bytesText(addressSpaceBytes)})`
  const leftBytes = addressSpaceBytes === null ? Number.POSITIVE_INFINITY : addressSpaceBytes - addressSpaceUsedBytes
  const todo = 'Raise the limit on virtual memory (ulimit -v unlimited), or the one that the batch system sets (h_vmem of Grid Engine).'
  for (let bytes = fittingHeapBytes(HEAP_BYTES_MAX, leftBytes); bytes >= HEAP_BYTES_MIN; bytes /= 2) {
    try {
      reserve(bytes)
    } catch {
      continue
    }
    const found = `${bytesText(bytes)} can be reserved${limit}`
    if (bytes === HEAP_BYTES_MAX) return ok('shared heap', found, 'Threads pass tensors to each other without a copy.')
    const room = Number.isFinite(leftBytes)
      ? ` The rest has room for some ${Math.max(0, Math.floor((leftBytes - bytes) / THREAD_BYTES))} worker threads; with more V8 ends the process.`
      : ''
    return warn('shared heap', found, `Tensors beyond that are copied from thread to thread.${room}`, todo)
  }
  return fail(
    'shared heap',
    `not even ${bytesText(HEAP_BYTES_MIN)} can be reserved${limit}`,
    'The default device computes in this memory: without it, operations fail with HEAP_UNAVAILABLE.',
    `${todo} Or use --device js, which needs none and is slower.`,
  )
}

const FILES_FEW = 1024

export function judgeOpenFiles({ openFiles }: MachineFacts): Finding {
  if (openFiles === null) return ok('open files', 'the system does not say')
  if (openFiles >= FILES_FEW) return ok('open files', `${openFiles}`)
  return warn(
    'open files',
    `${openFiles}`,
    'Each worker of several processes has a connection to each that it calls.',
    'Raise the limit: ulimit -n 4096',
  )
}

/** cgroup v2, then v1: quota and period in µs. */
function coresLimitOf(read: (path: string) => string | null): number | null {
  const [quota, period] = (read('/sys/fs/cgroup/cpu.max') ?? '').trim().split(/\s+/)
  const v1 = Number(read('/sys/fs/cgroup/cpu/cpu.cfs_quota_us') ?? -1) / Number(read('/sys/fs/cgroup/cpu/cpu.cfs_period_us') ?? 1)
  const limit = period === undefined ? v1 : Number(quota) / Number(period)
  return Number.isFinite(limit) && limit > 0 ? Math.round(limit * 100) / 100 : null
}

/** cgroup v1 writes a number near 2^63 where there is none. */
const NO_LIMIT = 2 ** 60

function memoryLimitOf(read: (path: string) => string | null, constrained: number): number | null {
  const text = read('/sys/fs/cgroup/memory.max') ?? read('/sys/fs/cgroup/memory/memory.limit_in_bytes')
  const limits = [Number(text?.trim() ?? Number.NaN), constrained].filter((limit) => limit > 0 && limit < NO_LIMIT)
  return limits.length === 0 ? null : Math.min(...limits)
}

/** The soft one, from /proc/self/limits. */
function limitOf(limits: string, name: string): number | null {
  const line = limits.split('\n').find((one) => one.startsWith(name))
  const limit = Number(line?.slice(name.length).trim().split(/\s+/)[0])
  return Number.isFinite(limit) ? limit : null
}

function readIfAny(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
