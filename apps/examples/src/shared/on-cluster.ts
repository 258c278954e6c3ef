/** What an example does with its cluster: launches it, shows its progress, and closes it however the work ends. */
import { type Cluster, launch } from 'postgrad'
import type { LaunchOptions } from 'postgrad/types'
import { progressDisplay } from './progress-display.js'

export interface OnClusterOptions {
  /** What the workers load. */
  readonly program: URL
  readonly workers: readonly string[]
  readonly seed: number
  /** Cuts the work off: it rejects with CLUSTER_CLOSED then, and nothing is left running. */
  readonly signal: AbortSignal
  /** Hears of progress beside the display. */
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
    // What is under way after a failure waits for what will not come.
    await cluster.close(closing)
  }
}
