/**
 * Checks which worker may send which message about a context or a pass. The codec has checked the message's fields before (`MESSAGE_TABLE`); this
 * file checks what only this worker can know. A message that its sender may not send is a dead letter, and changes nothing.
 */
import { type WorkerId, workerOf } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import { type Message, MessageType } from '@postgrad/wire/internal'
import type { DistAutogradContext } from '../context/dist-autograd-context.js'
import { RootPass } from '../pass/pass.js'

/** Why it is refused; null: it is not. `context` is the one that it names; undefined: this worker does not have it. */
export function objection(
  { type, context: contextId, pass: passId }: Message,
  { id: from }: WorkerInfo,
  context: DistAutogradContext | undefined,
  self: WorkerId,
): string | null {
  // Any worker may send these; what they say is checked where it is used.
  if (type === MessageType.PROPAGATE_GRADIENTS || type === MessageType.LINEAGE) return null
  const maker = workerOf(contextId as bigint)
  const root = passId === null ? null : workerOf(passId)
  switch (type) {
    case MessageType.CLEANUP_CONTEXT:
      return from === maker || context === undefined || context.knownWorkerIds.has(from) ? null : 'its sender is not in the context'
    case MessageType.PASS_ERROR:
      if (root === null) return maker === self ? null : 'only the maker of a context is notified of a death'
      return root === self ? whetherTakesPart(context, passId as bigint, from) : 'another worker is the root of the pass'
    case MessageType.PASS_REPORT:
      return root === self ? whetherTakesPart(context, passId as bigint, from) : 'another worker is the root of the pass'
    case MessageType.PASS_ABORT:
      if (root === self) return 'it is about a pass of its receiver'
      // In FAST the word goes along the edges of the context.
      return from === root || context === undefined || (context.mode === 'fast' && context.knownWorkerIds.has(from)) ? null : NOT_ROOT
    case MessageType.PASS_COMMIT:
      if (root === self) return 'it is about a pass of its receiver'
      if (from !== root) return NOT_ROOT
      return context?.passes.get(passId as bigint)?.gathered === false ? 'the pass has not come to its end here' : null
    default:
      return null
  }
}

const NOT_ROOT = 'only the root of a pass may say so'

/** Everybody may in FAST, where the root does not know who takes part. */
function whetherTakesPart(context: DistAutogradContext | undefined, passId: bigint, from: WorkerId): string | null {
  const plan = context?.passes.get(passId)?.plan ?? null
  return plan === null || plan.has(from) ? null : 'its sender has no part in the pass'
}

/** Why a report is refused for the workers that it names; null: it is not. */
export function reportObjection({ pass: passId, body }: Message, context: DistAutogradContext | undefined): string | null {
  const pass = context?.passes.get(passId as bigint)
  if (!(pass instanceof RootPass) || pass.plan === null) return null
  const { plan, root } = pass
  const stranger = (body[2] as readonly (readonly [WorkerId, number])[]).find(([worker]) => worker !== root && !plan.has(worker))
  return stranger === undefined ? null : `it names worker ${stranger[0]}, which has no part in the pass`
}
