/** Errors that a worker makes for its callers: why a request was not sent, or was not answered. */

import { PostgradError } from '@postgrad/base'
import { outOfTime, plainText } from '@postgrad/base/internal'
import type { WorkerInfo } from './worker-info.js'

/** @param target what was asked for: a name, an id, a WorkerInfo, or what is none of these */
export function unknownWorker(op: string, target: unknown, workers: readonly WorkerInfo[]): PostgradError {
  const known = workers.map(({ name, id }) => `'${name}' (${id})`)
  return new PostgradError('UNKNOWN_WORKER', {
    op,
    expected: known.length === 0 ? 'a worker of the cluster, which has none now' : `one of the workers ${known.join(', ')}`,
    got: isInfo(target) ? `'${target.name}' (${target.id})` : typeof target === 'string' ? `'${target}'` : plainText(target),
    remedy: 'Use the name of a worker that was launched or has joined, or its WorkerInfo; a restarted worker has a fresh id.',
    values: { target: isInfo(target) ? target.name : typeof target === 'number' ? target : plainText(target) },
  })
}

function isInfo(target: unknown): target is WorkerInfo {
  const { name, id } = Object(target) as Partial<WorkerInfo>
  return typeof name === 'string' && typeof id === 'number'
}

export function shutDownError(op: string, worker: WorkerInfo): PostgradError {
  return new PostgradError('RPC_SHUT_DOWN', {
    op,
    message: `worker '${worker.name}' has been shut down`,
    remedy: 'Await its last call before shutdown(), leave(), drain() or close(). To continue, start a new worker.',
    values: { worker: worker.name },
  })
}

/** For a caller whose call has not begun at `worker` and never will. */
export function drainingError(op: string, worker: WorkerInfo): PostgradError {
  return new PostgradError('WORKER_DRAINING', {
    op,
    message: `worker '${worker.name}' is about to end and takes no more calls; this call was not run`,
    remedy: 'The call may be repeated: call another worker, or this one after its restart.',
    values: { worker: worker.name, workerId: worker.id },
  })
}

export function timedOut(op: string, to: WorkerInfo, timeoutMs: number, isInherited: boolean): PostgradError {
  if (isInherited) return outOfTime(op, `the call to worker '${to.name}' has ended`, { worker: to.name, workerId: to.id, timeoutMs })
  return new PostgradError('RPC_TIMEOUT', {
    op,
    message: `the call to worker '${to.name}' ran for more than its timeout (${Math.round(timeoutMs)} ms)`,
    remedy:
      'Pass a longer { timeoutMs } (0: without a limit), or find out what keeps that worker busy. Its function continues until it looks at currentSignal().',
    values: { worker: to.name, workerId: to.id, timeoutMs },
  })
}

/** For a tensor of a device for which the peer has none. */
export function deviceMapMissing(device: string, to: WorkerInfo): PostgradError {
  return new PostgradError('DEVICE_MAP_MISSING', {
    op: 'send',
    message: `a tensor on device '${device}' is to go to worker '${to.name}', and no device there was named for it`,
    remedy: `Call setDeviceMap('${to.name}', { '${device}': '${device}' }) before, or send await x.cpu().`,
    values: { device, worker: to.name, workerId: to.id },
  })
}

/** For a reply that does not answer its request. */
export function wrongReply(op: string, { name, id }: WorkerInfo, got: string): PostgradError {
  return new PostgradError('RPC_WRONG_REPLY', {
    op,
    message: `worker '${name}' has answered with ${got}, which does not belong to the request`,
    remedy: 'Run the same version of postgrad on all workers; otherwise report this as a bug.',
    values: { worker: name, workerId: id },
  })
}

export function noCredit(worker: WorkerInfo, timeoutMs: number): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op: 'ready',
    message: `worker '${worker.name}' had no room for a call within ${Math.round(timeoutMs)} ms`,
    remedy: 'Pass a longer { timeoutMs } (0: without a limit), or find out what keeps that worker busy.',
    values: { worker: worker.name, workerId: worker.id, timeoutMs },
  })
}

/** `isCancelled`: its maker is cancelled. */
export function notThereInTime(op: string, what: string, timeoutMs: number, isCancelled: boolean): PostgradError {
  return new PostgradError('RPC_TIMEOUT', {
    op,
    message: `${what} was not there after ${Math.round(timeoutMs)} ms`,
    remedy: `Pass a longer { timeoutMs } (0: without a limit), or look at the function that makes it; that function ${isCancelled ? 'was cancelled' : 'continues'}.`,
    values: { timeoutMs },
  })
}

export function nameTaken(peer: WorkerInfo): PostgradError {
  return new PostgradError('WORKER_NAME_TAKEN', {
    op: 'connect',
    message: `worker '${peer.name}' (id ${peer.id}) is not unique`,
    remedy: 'Give every worker a name and an id of its own.',
    values: { worker: peer.name, workerId: peer.id },
  })
}
