/**
 * What lies in the lineage room of an envelope, in the one layout that all workers share. `attach.ts` writes and reads it, wire only sees that it is
 * an array of integers ≥ 0.
 *
 *     [depth]      a message with a SendRpcBackward: the depth of that node, which its RecvRpcBackward takes over
 *     null         a message without
 */
import { PostgradError } from '@postgrad/base'

type Room = readonly number[] | null

/** @throws LINEAGE_MALFORMED */
export function depthOf(room: Room): number {
  const depth = room?.[0]
  if (depth === undefined) throw malformed('it has no depth')
  return depth
}

/** For what no worker of this version writes. */
export function malformed(why: string): PostgradError {
  return new PostgradError('LINEAGE_MALFORMED', {
    op: 'receive',
    message: `the lineage of a message with tensors cannot be read: ${why}`,
    remedy: 'Run the same version on every worker; otherwise report this as a bug.',
    values: { why },
  })
}
