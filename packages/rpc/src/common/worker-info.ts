/**
 * How workers are named: `WorkerInfo`, what may be given as the target of a call, and the rules for names.
 * PyTorch: `torch.distributed.rpc.WorkerInfo`, `init_rpc`'s checks.
 */
import { PostgradError, type WorkerId } from '@postgrad/base'

/** A worker as others name it. PyTorch: `torch.distributed.rpc.WorkerInfo`. */
export interface WorkerInfo {
  /** Unique among those that live. */
  readonly name: string
  /** Unique over all lives: one that is started again has another. */
  readonly id: WorkerId
}

/** A worker by name, by id, or by its info. */
export type Target = string | number | WorkerInfo

const NAME_PATTERN = /^[A-Za-z0-9\-_:]+$/
const NAME_LENGTH_MAX = 127

/** @throws WORKER_NAME_INVALID */
export function checkWorkerName(name: string): void {
  const problem =
    name.length === 0
      ? 'an empty name'
      : name.length > NAME_LENGTH_MAX
        ? `${name.length} characters`
        : NAME_PATTERN.test(name)
          ? null
          : `'${name}'`
  if (problem !== null) {
    throw new PostgradError('WORKER_NAME_INVALID', {
      op: 'worker name',
      expected: `1 to ${NAME_LENGTH_MAX} letters, digits, '-', '_' or ':'`,
      got: problem,
      remedy: 'Rename the worker.',
      values: { name: name.slice(0, NAME_LENGTH_MAX + 1) },
    })
  }
}
