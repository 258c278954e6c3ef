/** The resources that a worker's thread uses, for `debugInfo`: heap, buffers outside of the heap, ports and timers. */

export interface ThreadUsage {
  /** Bytes of the thread's JavaScript heap. */
  readonly heapUsedBytes: number
  /** Bytes of the thread's ArrayBuffers, which are outside of its JavaScript heap. */
  readonly arrayBuffersBytes: number
  /** How many MessagePorts are open. */
  readonly ports: number
  /** How many timers are set. */
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
