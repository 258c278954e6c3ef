/** Errors about references. */
import { PostgradError } from '@postgrad/base'

export function deleted(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_DELETED', {
    op,
    message: `RRef ${rrefId} has been deleted`,
    remedy:
      'dispose() and the end of a using block are final. Call dispose() after the last use, or keep the value itself: await ref.toHere() before it. A worker that needs the value for longer keeps a reference of its own: pass the RRef to it, and await that call, while this one lives.',
    values: { rrefId: rrefId.toString() },
  })
}

/** An id means something else to another cluster, and a fork of it would be counted by nobody. */
export function foreign(op: string, rrefId: bigint, self: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: `a reference that worker '${self}' made or has received`,
    got: `RRef ${rrefId} of another worker, or of another cluster`,
    remedy: 'Let the worker that has it send it; to another cluster send the value, which toHere() gives.',
    values: { rrefId: rrefId.toString() },
  })
}

/** For what no worker of this version sends. */
export function invalid(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_INVALID', {
    op,
    message: `a message about RRef ${rrefId} names a reference that does not belong to its sender`,
    remedy: 'Run the same version of postgrad on all workers; otherwise report this as a bug.',
    values: { rrefId: rrefId.toString() },
  })
}

export function noAutograd(): PostgradError {
  return new PostgradError('NO_AUTOGRAD', {
    op: 'rref.backward',
    message: 'this worker has no distributed autograd',
    remedy: 'Start workers with launch, init or simulate.',
  })
}
