/** Runs an example on a cluster: launches it, shows its progress, and closes it however the work ends. */
import { type Cluster, launch } from 'postgrad'
import type { LaunchOptions } from 'postgrad/types'
import { progressDisplay } from './progress-display.js'

export interface OnClusterOptions {
  /** Workers load it. */
  readonly program: URL
  readonly workers: readonly string[]
  readonly seed: number
  /** Cuts the work off: it rejects with CLUSTER_CLOSED then, and nothing is left running. */
  readonly signal: AbortSignal
  /** Gets progress, as the display does. */
  readonly onProgress?: LaunchOptions['onProgress']
}

/** @throws (rejects) what `work` throws */
export async function onCluster<T>(
  { program, workers, seed, signal, onProgress }: OnClusterOptions,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const display = progressDisplay(process.stdout)
  const told: LaunchOptions['onProgress'] = (progress, worker) => {
    display.update(progress)
    onProgress?.(progress, worker)
  }
  const cluster = await launch(program, { workers, seed, onProgress: told })
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
    // After a failure, calls may wait for ever: do not await them.
    await cluster.close(closing)
  }
}
