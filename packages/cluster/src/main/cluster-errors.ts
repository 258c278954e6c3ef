/** The errors of a cluster. */
import { PostgradError } from '@postgrad/base'
import { ownEnd } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'

export function nameTaken(op: string, name: string, why: string): PostgradError {
  return new PostgradError('WORKER_NAME_TAKEN', {
    op,
    message: `worker '${name}' ${why}`,
    remedy: 'Use another name, or await what is being done with this one first; cluster.restart(name) makes a new worker in its place.',
    values: { worker: name },
  })
}

export function notReady(op: string, name: string, limitMs: number): PostgradError {
  return new PostgradError('RUN_TIMEOUT', {
    op,
    message: `worker '${name}' has not become ready within ${limitMs} ms`,
    remedy: 'Pass a larger timeoutMs, or look at what starts it: the program, or onRestart of supervision.',
    values: { worker: name, timeoutMs: limitMs },
  })
}

/** @param gaveUp SUPERVISOR_GAVE_UP, if that ended it */
export function clusterClosed(op: string, gaveUp: PostgradError | null): PostgradError {
  const error = new PostgradError('CLUSTER_CLOSED', {
    op,
    message: gaveUp === null ? 'the cluster has been closed' : 'the cluster has ended, because its supervisor gave up',
    remedy: gaveUp === null ? 'Await what runs before close(), or give close({ timeoutMs }) more time.' : 'Look at the cause.',
    ...(gaveUp === null ? {} : { cause: gaveUp }),
  })
  return gaveUp === null ? ownEnd(error) : error
}

export function stalled({ name, id }: WorkerInfo, silentMs: number, op = 'cluster'): PostgradError {
  return new PostgradError('WORKER_STALLED', {
    op,
    message: `worker '${name}' (id ${id}) is alive but has not come to its next turn for ${Math.round(silentMs)} ms`,
    remedy: `Look for an endless loop, a lock or a call that blocks there${op === 'cluster' ? '; cluster.kill(name) ends it' : ''}.`,
    values: { worker: name, workerId: id, silentMs },
  })
}
