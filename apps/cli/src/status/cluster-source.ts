/** Counts of a cluster's workers, for `ps` and `top`: from `debugInfo`, `metrics` and the inspection stream. */
import type { Cluster } from 'postgrad'
import { within } from '../within.js'
import { type Board, CLIENT_WAIT_MS, countsOf, type StatusSource, type WorkerCounts, type WorkerRow } from './snapshot.js'
import { TrafficCounts } from './traffic.js'

/** A worker in a long kernel does not answer meanwhile. */
const ANSWER_MS = 1500
const LIMIT = { timeoutMs: ANSWER_MS }
/** For all workers together. The client gets the older counts while it still waits. */
const WAIT_MS = CLIENT_WAIT_MS - 1000

type Asked = Pick<Cluster, 'workers' | 'debugInfo' | 'metrics' | 'inspect'>

export function clusterSource(cluster: Asked, board: Board, restarts: number): StatusSource {
  return new ClusterSource(cluster, board, restarts)
}

class ClusterSource implements StatusSource {
  readonly restarts: number
  private readonly cluster: Asked
  private readonly board: Board
  private readonly traffic = new TrafficCounts()
  private known: Readonly<Record<string, WorkerCounts>> = {}
  private stopInspecting: (() => Promise<void>) | null = null

  constructor(cluster: Asked, board: Board, restarts: number) {
    this.cluster = cluster
    this.board = board
    this.restarts = restarts
  }

  async workers(): Promise<readonly WorkerRow[]> {
    const fresh = await within(this.ask(), WAIT_MS)
    if (fresh !== null) this.known = { ...this.known, ...fresh }
    return this.cluster.workers.map(({ name, id }) => ({
      name,
      id,
      ...this.board.standingOf(name),
      counts: this.known[name] ?? null,
      isFresh: fresh !== null && name in fresh,
      traffic: this.traffic.of(name),
    }))
  }

  async watch(): Promise<() => void> {
    if (this.traffic.begin()) {
      // A closing cluster reports no more events.
      this.stopInspecting = await this.cluster.inspect((event) => this.traffic.tell(event.on, event.kind)).catch(() => null)
    }
    return () => {
      if (!this.traffic.end()) return
      void this.stopInspecting?.()
      this.stopInspecting = null
    }
  }

  /** The counts of the workers that answer in time. Null: the cluster is closing. */
  private async ask(): Promise<Readonly<Record<string, WorkerCounts>> | null> {
    try {
      const [debug, metrics] = await Promise.all([this.cluster.debugInfo(LIMIT), this.cluster.metrics(LIMIT)])
      return Object.fromEntries(Object.entries(debug).map(([name, info]) => [name, countsOf(info, metrics[name])]))
    } catch {
      return null
    }
  }
}
