/**
 * One-way messages about contexts and passes, to workers that may have gone meanwhile.
 */
import { isPostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { MESSAGE_TABLE, MessageType } from '@postgrad/wire/internal'
import type { DistAutogradContext } from './dist-autograd-context.js'

/** Sends lineage ahead of the message that is written next. */
export function tellLineage(runtime: WorkerRuntime, to: WorkerId, context: bigint, lineage: readonly number[]): void {
  runtime.post(to, MessageType.LINEAGE, [], { context, lineage })
}

/** Posts CLEANUP_CONTEXT to every worker that the context knows here, except for the one that said so. */
export function releaseNotice(runtime: WorkerRuntime, context: DistAutogradContext, except: WorkerId | null): void {
  for (const worker of context.knownWorkerIds) {
    if (worker !== except) postIfAlive(runtime, worker, MessageType.CLEANUP_CONTEXT, [], context.contextId, null)
  }
}

/**
 * A message for a dead worker, or from a closed one, needs no delivery: workers that wait for it notice the end themselves. A message for a worker that is
 * not known here, as one that was started again may be for a while, is a dead letter.
 */
export function postIfAlive(
  runtime: WorkerRuntime,
  to: WorkerId,
  type: MessageType,
  body: readonly unknown[],
  context: bigint | null,
  pass: bigint | null,
): void {
  try {
    runtime.post(to, type, body, { context, pass })
  } catch (error) {
    if (isPostgradError(error, 'UNKNOWN_WORKER'))
      runtime.letter('link-closed', `${MESSAGE_TABLE[type].name} for worker id ${to}, which is unknown`)
    else if (!isPostgradError(error, 'WORKER_DIED') && !isPostgradError(error, 'RPC_SHUT_DOWN')) throw error
  }
}
