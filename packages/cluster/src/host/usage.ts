/** The resources that this thread uses, for `debugInfo`: its heap, its buffers outside of that, its ports and timers. */

export interface ThreadUsage {
  /** Bytes of the thread's JavaScript heap. */
  readonly heapUsedBytes: number
  /** Bytes of the thread's ArrayBuffers. */
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
