/** What an example does with its cluster: launches it, shows its progress, and closes it however the work ends. */
import { type Cluster, launch } from 'postgrad'
import { progressDisplay } from './progress-display.js'

export interface OnClusterOptions {
  /** What the workers load. */
  readonly program: URL
  readonly workers: readonly string[]
  readonly seed: number
  /** Cuts the work off: it rejects with CLUSTER_CLOSED then, and nothing is left running. */
  readonly signal: AbortSignal
}

/** @throws (rejects) what `work` throws */
export async function onCluster<T>(
  { program, workers, seed, signal }: OnClusterOptions,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const display = progressDisplay(process.stdout)
  const cluster = await launch(program, { workers, seed, onProgress: display.update })
  const cut = (): void => void cluster.close({ timeoutMs: 0 })
  signal.addEventListener('abort', cut)
  let closing: { timeoutMs?: number } = { timeoutMs: 0 }
  try {
    if (signal.aborted) cut()
    const result = await work(cluster)
    closing = {}
    return result
  } finally {
    signal.removeEventListener('abort', cut)
    display.close()
    // What is under way after a failure waits for what will not come.
    await cluster.close(closing)
  }
}
