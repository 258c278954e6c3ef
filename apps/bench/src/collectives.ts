/** allReduce, run by worker0 and the ranks that it calls; its twin is `all_reduces` in `python/torch_peer.py`. Workers load this module. */
import { call, expose, getWorkerInfos, ones } from 'postgrad'
import { allReduce, barrier, initProcessGroup, isInitialized } from 'postgrad/distributed'

/** Seconds of this rank for n reductions of so many elements, one after another. */
export async function allReducesHere(n: number, length: number): Promise<number> {
  if (!isInitialized()) await initProcessGroup()
  const x = ones([length])
  await barrier()
  const started = performance.now()
  for (let i = 0; i < n; i++) await allReduce(x)
  const seconds = (performance.now() - started) / 1000
  x.close()
  return seconds
}

/** Of the rank that needed longest. */
export async function allReduces(n: number, length: number): Promise<number> {
  const ranks = getWorkerInfos().map(({ name }) => call(name, allReducesHere, [n, length]))
  return Math.max(...(await Promise.all(ranks)))
}

expose({ allReducesHere, allReduces })
