/** Errors about references. */
import { PostgradError } from '@postgrad/base'

export function deleted(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_DELETED', {
    op,
    message: `RRef ${rrefId} has been deleted`,
    remedy: 'Keep the RRef until its last use; dispose() and the end of a using block are final.',
    values: { rrefId: rrefId.toString() },
  })
}

/** For what no worker of this version says. */
export function invalid(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_INVALID', {
    op,
    message: `a message about RRef ${rrefId} names a value or a fork that is not its sender's`,
    remedy: 'Run the same version of postgrad on all workers; otherwise report this as a bug.',
    values: { rrefId: rrefId.toString() },
  })
}

export function noAutograd(): PostgradError {
  return new PostgradError('NO_AUTOGRAD', {
    op: 'rref.backward',
    message: 'this worker has no distributed autograd',
    remedy: 'Start workers with launch or simulate, or call installDistAutograd on this one.',
  })
}
