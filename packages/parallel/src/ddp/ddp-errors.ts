/** The errors of data-parallel training. If PyTorch has such an error, the text begins as its does. */
import { PostgradError } from '@postgrad/base'

/** At most so many names are written out. */
const NAMES_MAX = 20

function namesText(names: readonly string[]): string {
  const more = names.length - NAMES_MAX
  return `${names.slice(0, NAMES_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const UNFINISHED = 'Expected to have finished reduction in the prior iteration before starting a new one.'

/** The gradients of the last pass have not been reduced. `cause`: why they will not be; null: they are on their way. */
export function reductionUnfinished(op: string, rank: number, cause: unknown): PostgradError {
  return new PostgradError('DDP_REDUCTION_UNFINISHED', {
    op,
    message: `${UNFINISHED} ${cause === null ? 'The reduction is still under way.' : 'The pass has failed, and ranks may not have reduced the same since.'}`,
    remedy:
      cause === null
        ? 'Await `model.backward(loss)`, or the pass of the distributed context, before the next forward pass.'
        : 'See the cause. To continue, call `model.dispose()` and `DistributedDataParallel.create` on all ranks, in a new group if this one is broken.',
    ...(cause === null ? {} : { cause }),
    values: { rank, parameters: [], numbers: [] },
  })
}

/** A pass that does not lead to all parameters: it was not begun. */
export function parametersMissing(rank: number, names: readonly string[], numbers: readonly number[]): PostgradError {
  return new PostgradError('DDP_REDUCTION_UNFINISHED', {
    op: 'backward',
    message: `${UNFINISHED} This pass could not finish it: on rank ${rank} these parameters receive no gradient: ${namesText(names)} (numbers ${numbers.slice(0, NAMES_MAX).join(', ')})`,
    remedy:
      'Let all parameters take part in the loss, sum the losses of one forward (`model.backward([a, b])`), or pass { findUnusedParameters: true } for parameters that a pass does not use.',
    values: { rank, parameters: names, numbers },
  })
}

/** `model.backward` that no forward of the model has prepared. */
export function forwardMissing(): PostgradError {
  return new PostgradError('DDP_FORWARD_MISSING', {
    op: 'backward',
    message:
      'this pass does not follow a `model.forward` of its own, so its gradients would stay on this rank, and the replicas would diverge',
    remedy:
      'Call `await model.forward(…)`, not `model.module.forward(…)`, before each `model.backward`. Give several losses of one forward to one pass: `model.backward([a, b])`. For gradients of this rank alone, call `loss.backward()`.',
  })
}

/** A second pass comes to a parameter while the first has not ended. */
export function markedReadyTwice(name: string, number: number): PostgradError {
  return new PostgradError('DDP_MARKED_READY_TWICE', {
    op: 'backward',
    message: `Expected to mark a variable ready only once: parameter '${name}' (number ${number}) has a gradient of a second pass, while the first has not ended`,
    remedy: 'Await each backward pass before the next, or sum the losses. Wrap a shared parameter in one DistributedDataParallel only.',
    values: { parameter: name, number },
  })
}

/** With staticGraph: a parameter that was used in the first iteration is not, or the other way round. */
export function graphChanged(name: string, number: number, isUnused: boolean): PostgradError {
  const [then, now] = isUnused ? ['used', 'unused'] : ['unused', 'used']
  return new PostgradError('DDP_GRAPH_CHANGED', {
    op: 'backward',
    message: `Your training graph has changed in this iteration: parameter '${name}' (number ${number}) was ${then} in the first iteration and is ${now} now`,
    remedy: 'Leave { staticGraph } out, and pass { findUnusedParameters: true }.',
    values: { parameter: name, number },
  })
}

/** Parameters that would be trained by this rank alone. */
export function parametersChanged(names: readonly string[]): PostgradError {
  return new PostgradError('DDP_PARAMETERS_CHANGED', {
    op: 'forward',
    message: `these parameters were not there when the model was wrapped, or required no gradient then: ${namesText(names)}`,
    remedy: 'Change a module first and wrap it then: `model.dispose()` and `DistributedDataParallel.create(module)` on all ranks.',
    values: { parameters: names },
  })
}

export function commHookExists(op: string): PostgradError {
  return new PostgradError('DDP_COMM_HOOK_EXISTS', {
    op,
    message: `${op} can only be called once`,
    remedy: 'Make one hook that does both.',
  })
}

export function modelDisposed(op: string): PostgradError {
  return new PostgradError('DDP_DISPOSED', {
    op,
    message: 'this DistributedDataParallel was disposed',
    remedy: 'Use its module itself, or wrap it again with `await DistributedDataParallel.create(module)` on all ranks.',
  })
}

/** A pass that nobody can let wait for the reduction. */
export function backwardNotAwaitable(): PostgradError {
  return new PostgradError('DDP_BACKWARD_SYNCHRONOUS', {
    op: 'backward',
    message: '`loss.backward()` cannot wait for the gradients of the other ranks',
    remedy: 'Write `await model.backward(loss)`. Inside noSync, `loss.backward()` works too, unless the model has a SyncBatchNorm.',
  })
}

export function createGraphRefused(): PostgradError {
  return new PostgradError('DDP_CREATE_GRAPH', {
    op: 'backward',
    message: 'reduced gradients have no history: DistributedDataParallel has no second derivatives',
    remedy: 'Leave { createGraph } out, or compute them with the module itself inside noSync.',
  })
}

export function modelMismatch(message: string, values: Readonly<Record<string, unknown>>): PostgradError {
  return new PostgradError('DDP_MODEL_MISMATCH', {
    op: 'DistributedDataParallel',
    message: `DDP expects same model across all ranks, but ${message}`,
    remedy: 'Make the same module, with the same options, on every rank; values may differ, those of rank 0 are taken.',
    values,
  })
}

export function backwardTimedOut(timeoutMs: number): PostgradError {
  return new PostgradError('BACKWARD_TIMEOUT', {
    op: 'backward',
    message: `the pass, and the reduction of its gradients, took longer than ${Math.round(timeoutMs)} ms`,
    remedy: 'Find out what keeps the other ranks busy, or pass a longer { timeoutMs } (0: without a limit).',
    values: { timeoutMs },
  })
}

/** The result of `checkReplicas`: the first tensor whose bits differ, and each rank's digest of it, null if the rank was not compared. */
export interface ReplicaDifference {
  readonly name: string
  readonly kind: 'parameter' | 'buffer'
  readonly number: number
  readonly reductions: number
  readonly digests: readonly (string | null)[]
}

/** `group`: of the replicas; `digests` are by rank in it. */
export function replicasDiffer(
  { name, kind, number, reductions, digests }: ReplicaDifference,
  group: { readonly workers: readonly { readonly name: string }[]; readonly ranks: readonly number[] },
): PostgradError {
  const ranksOf = new Map<string, number[]>()
  for (const [rank, digest] of digests.entries()) if (digest !== null) ranksOf.set(digest, [...(ranksOf.get(digest) ?? []), rank])
  const groups = [...ranksOf].sort(([, a], [, b]) => b.length - a.length)
  const holders = groups.map(
    ([digest, ranks]) => `${namesText(ranks.map((rank) => `rank ${rank} (${group.workers[rank]!.name})`))}: ${digest}`,
  )
  const most = groups[0]![1]
  const rest = groups
    .slice(1)
    .flatMap(([, ranks]) => ranks)
    .sort((a, b) => a - b)
  const hasMajority = most.length > rest.length
  const diverged = hasMajority ? rest : []
  return new PostgradError('REPLICAS_DIFFER', {
    op: 'forward',
    message: `after ${reductions} reductions the replicas differ: the first ${kind} whose bits are not the same on all ranks is '${name}' (number ${number} of the ${kind}s). Digests: ${holders.join('; ')}. ${
      hasMajority
        ? `Most ranks agree, so these have diverged: ${diverged.join(', ')}`
        : 'No majority agrees, so no rank is known to be right'
    }`,
    remedy: `Stop and continue from a checkpoint, or give all ranks one rank's tensors: \`await broadcastCoalesced([...model.parameters(), ...model.buffers()], ${hasMajority ? group.ranks[most[0]!] : 'rank'}, { group: model.processGroup })\`, and the optimizer's state. Then look for what one rank does alone: a step, a write to a parameter, a seed.`,
    values: { tensor: name, kind, number, reductions, digests, diverged },
  })
}
