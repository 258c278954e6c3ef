/**
 * The errors of passes that fail: where a node failed, and how the pass was ended. The engine reports and spreads them.
 */
import { type Node, placed, placeOf } from '@postgrad/autograd/internal'
import { isPostgradError, PostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { PassReport } from './pass-ledger.js'

/** The error that a node threw, with BACKWARD_FAILED as the last of its causes, which names the worker and the node (and in anomaly mode the line of forward). */
export function located(error: unknown, node: Node, { name, id }: WorkerInfo): unknown {
  const here = { worker: name, workerId: id }
  const known = placeOf(error)
  if (known !== null) {
    // From anomaly mode, which names no worker. An error that is thrown again in another pass has its worker already.
    if (known.values.worker === undefined) (known as { values: PostgradError['values'] }).values = { ...known.values, ...here }
    return error
  }
  const where = (cause?: unknown): PostgradError =>
    new PostgradError('BACKWARD_FAILED', {
      op: node.name,
      message: `its backward failed on worker '${name}'`,
      remedy: 'Run forward within withAnomalyDetection to see the line that recorded it.',
      values: { node: node.name, ...here },
      ...(cause === undefined ? {} : { cause }),
    })
  return placed(error, where)
}

/** The pass over a gradient does not reach all that forward has sent, and in FAST it would have to. */
export function createGraphNeedsSmart(): PostgradError {
  return new PostgradError('CREATE_GRAPH_NEEDS_SMART', {
    op: 'backward',
    message:
      'gradients with a history belong to contexts of mode smart: in fast, a pass over them would have to reach every message of the context',
    remedy: "Make the context without { mode: 'fast' }.",
  })
}

/** A message of `from` to `here` about the pass could not be read. */
export function passUnreadable(cause: unknown, from: WorkerInfo, here: WorkerInfo): PostgradError {
  // It named blocks that went with their sender.
  if (isPostgradError(cause, 'WORKER_DIED')) return cause
  return new PostgradError('PASS_UNREADABLE', {
    op: 'backward',
    message: `worker '${here.name}' could not read what worker '${from.name}' sent to it about the pass${isPostgradError(cause) ? ` (${cause.code})` : ''}`,
    remedy: 'Run all workers with the same version. If a gradient is too large, split its tensor before the call.',
    values: { worker: here.name, workerId: here.id, from: from.name },
    cause,
  })
}

/** By the signal of the pass, whose reason this is. */
export function passCancelled(reason: unknown): PostgradError {
  return cancelled('the pass was cancelled by its signal', reason)
}

/** With the call that it is part of, which `reason` gave up. */
export function passGivenUp(reason: unknown): PostgradError {
  const why = isPostgradError(reason) ? ` (${reason.code})` : ''
  return cancelled(`the pass was cancelled with the call that it is part of${why}`, reason)
}

function cancelled(message: string, reason: unknown): PostgradError {
  return new PostgradError('DIST_BACKWARD_CANCELLED', {
    op: 'backward',
    message,
    remedy: 'Catch this where a pass may be cancelled; the gradients are as if the pass had not begun.',
    ...(reason === undefined ? {} : { cause: reason }),
  })
}

/** In FAST: some send functions have no gradient, and no work is left. @param nameOf a worker, for a reader */
export function unusedSend(incomplete: readonly [WorkerId, PassReport][], nameOf: (worker: WorkerId) => string): PostgradError {
  const misses = incomplete.map(([worker, { missingCount, missingSample }]) => ({
    worker: nameOf(worker),
    count: missingCount,
    messages: missingSample.map(([id]) => String(id)),
    sends: missingSample.map(([, to, what]) => `${what} to worker '${nameOf(to)}'`),
  }))
  const list = misses.map(
    ({ worker, count, sends }) =>
      `${count} message${count === 1 ? '' : 's'} of worker '${worker}'${sends.length === 0 ? '' : ` (${[...new Set(sends)].join(', ')})`}`,
  )
  return new PostgradError('UNUSED_SEND', {
    op: 'backward',
    message: `the pass reached its end, but ${list.join(' and ')} sent tensors that no root depends on: their gradients would be incomplete`,
    remedy:
      'Let every tensor that a call takes or returns in this context enter the loss, detach() those that should not, or call under noGrad. After a call that failed, try again in a context of its own.',
    values: { misses },
  })
}

/** @param waiting names of the workers that it waits for */
export function passTimedOut(timeoutMs: number, waiting: readonly string[]): PostgradError {
  return new PostgradError('DIST_BACKWARD_TIMEOUT', {
    op: 'backward',
    message: `the pass ran for more than its timeout (${Math.round(timeoutMs)} ms)${waiting.length === 0 ? '' : `; it waits for ${waiting.map((name) => `'${name}'`).join(', ')}`}`,
    remedy: 'Pass { timeoutMs } to backward (0: without a limit), or look at what keeps that worker busy.',
    values: { timeoutMs, waitingFor: [...waiting] },
  })
}

export function passAborted(): PostgradError {
  return new PostgradError('PASS_ABORTED', { op: 'backward', message: 'the worker that began the pass has ended it' })
}

export function crossesWorkers(): PostgradError {
  return new PostgradError('BACKWARD_CROSSES_WORKERS', {
    op: 'backward',
    message: 'this graph continues at another worker, where a local backward cannot follow',
    remedy: 'Use ctx.backward([loss]) inside of distAutograd.context, or detach() what was received.',
  })
}

export function foreignContext(running: bigint, recorded: bigint): PostgradError {
  return new PostgradError('FOREIGN_CONTEXT', {
    op: 'backward',
    message: `a pass of context ${running} reached a tensor that was received in context ${recorded}`,
    remedy: 'Compute the loss in one context, or detach() what comes from another.',
    values: { contextId: String(running), receivedIn: String(recorded) },
  })
}

export function unexpectedGradients(autogradId: bigint, why: string): PostgradError {
  return new PostgradError('UNEXPECTED_GRADIENTS', {
    op: 'backward',
    message: `gradients arrived for message ${autogradId}, but ${why}`,
    remedy: 'Start backward only when the forward pass of its context is done on all workers; otherwise report this as a bug.',
    values: { autogradId: String(autogradId) },
  })
}
