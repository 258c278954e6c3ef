/**
 * How workers are named: `WorkerInfo`, what may be given as the target of a call, and the rules for names.
 * PyTorch: `torch.distributed.rpc.WorkerInfo`, `init_rpc`'s checks.
 */
import { PostgradError, type WorkerId } from '@postgrad/base'

/** The name and id of a worker. PyTorch: `torch.distributed.rpc.WorkerInfo`. */
export interface WorkerInfo {
  /** The worker's name, unique among the living workers of its cluster. */
  readonly name: string
  /** The worker's id, from 0 to 65,535. A worker that is started again keeps its name and gets a new id. */
  readonly id: WorkerId
}

/** How a call names a worker: its name, its id, or its `WorkerInfo`. */
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
