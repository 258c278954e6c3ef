/** What this thread holds of the machine, for `debugInfo`: its own heap, its buffers outside of it, and its open ports. */

export interface ThreadUsage {
  /** Of the thread's JavaScript heap. */
  readonly heapUsedBytes: number
  /** Of its ArrayBuffers. */
  readonly arrayBuffersBytes: number
  /** Open MessagePorts. */
  readonly ports: number
  /** Timers that are set. */
  readonly timers: number
}

/** Inside a worker, Node reports the heap of that thread alone. */
export function threadUsage(): ThreadUsage {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  return {
    heapUsedBytes: heapUsed,
    arrayBuffersBytes: arrayBuffers,
    ports: resources.filter((name) => name === 'MessagePort').length,
    timers: resources.filter((name) => name === 'Timeout').length,
  }
}
