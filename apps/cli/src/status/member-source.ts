/** Counts of this process's own worker, if each process is one worker. */
import type { JoinedMember } from '../bridge.js'
import { type Board, countsOf, type StatusSource, type WorkerCounts } from './snapshot.js'
import { TrafficCounts } from './traffic.js'

export function memberSource({ worker }: Pick<JoinedMember, 'worker'>, board: Board, restarts: number): StatusSource {
  const traffic = new TrafficCounts()
  let stop = (): void => {}
  /** Null: the worker is closed. */
  const countsIfOpen = (): WorkerCounts | null => {
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    try {
      return countsOf({ ...worker.debugInfo(), heapUsedBytes: heapUsed, arrayBuffersBytes: arrayBuffers }, worker.metrics())
    } catch {
      return null
    }
  }
  return {
    restarts,
    workers: async () => {
      const { name, id } = worker.info
      const counts = countsIfOpen()
      return [{ name, id, ...board.standingOf(name), counts, isFresh: counts !== null, traffic: traffic.of(name) }]
    },
    watch: async () => {
      if (traffic.begin()) stop = worker.inspect((event) => traffic.tell(worker.info.name, event.kind))
      return () => {
        if (traffic.end()) stop()
      }
    },
  }
}
