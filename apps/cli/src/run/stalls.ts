/** Shows the user which workers stall and recover. */
import type { Cluster } from 'postgrad'
import type { Display } from '../output/display.js'

export function showStalls(workers: Pick<Cluster, 'onWorkerStalled' | 'onWorkerRecovered'>, display: Display): void {
  workers.onWorkerStalled(({ name }, { values }) => display.stall(name, Number(values.silentMs)))
  workers.onWorkerRecovered(({ name }) => display.stall(name, null))
}
