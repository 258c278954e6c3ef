/** The errors of data-parallel training, worded once. PyTorch's first sentences stand where it has some. */
import { PostgradError } from '@postgrad/base'

/** At most so many names are written out. */
const NAMES_MAX = 20

function namesText(names: readonly string[]): string {
  const more = names.length - NAMES_MAX
  return `${names.slice(0, NAMES_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Gradients of a forward pass have not all been reduced. `missing`: parameters that have none. */
export function reductionUnfinished(
  op: string,
  rank: number,
  missing: readonly string[],
  numbers: readonly number[],
  cause: unknown,
): PostgradError {
  const isUnderWay = missing.length === 0
  return new PostgradError('DDP_REDUCTION_UNFINISHED', {
    op,
    message: `Expected to have finished reduction in the prior iteration before starting a new one. ${
      isUnderWay
        ? cause === null
          ? 'The reduction is still under way.'
          : 'The reduction has failed.'
        : `On rank ${rank} these parameters received no gradient: ${namesText(missing)} (numbers ${numbers.slice(0, NAMES_MAX).join(', ')})`
    }`,
    remedy: isUnderWay
      ? 'Await `model.backward(loss)`, or the pass of the distributed context, before the next forward pass.'
      : 'Let all outputs of forward enter the loss, or pass { findUnusedParameters: true } for parameters that a forward pass does not use.',
    ...(cause === null ? {} : { cause }),
    values: { rank, parameters: missing, numbers },
  })
}

/** One parameter has received its gradient twice since the forward pass. */
export function markedReadyTwice(name: string, number: number): PostgradError {
  return new PostgradError('DDP_MARKED_READY_TWICE', {
    op: 'backward',
    message: `Expected to mark a variable ready only once: parameter '${name}' (number ${number}) was`,
    remedy:
      'One backward pass follows each forward pass: do not run two over one graph (sum the losses, or use noSync for all but the last), do not share a parameter between ' +
      'models that are wrapped each, and do not use a parameter outside of forward.',
    values: { parameter: name, number },
  })
}

/** With staticGraph: a parameter that was not used in the first iteration has a gradient now. */
export function graphChanged(name: string, number: number): PostgradError {
  return new PostgradError('DDP_GRAPH_CHANGED', {
    op: 'backward',
    message: `Your training graph has changed in this iteration: parameter '${name}' (number ${number}) was unused in the first iteration and is used now`,
    remedy: 'Leave { staticGraph } out, and pass { findUnusedParameters: true }.',
    values: { parameter: name, number },
  })
}

/** A pass that nobody can let wait for the reduction. */
export function backwardNotAwaitable(): PostgradError {
  return new PostgradError('DDP_BACKWARD_SYNCHRONOUS', {
    op: 'backward',
    message: 'a backward pass in one turn cannot wait for the gradients of the other ranks',
    remedy: 'Write `await model.backward(loss)` instead of `loss.backward()`; inside noSync either will do.',
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
    remedy: 'Look at what keeps the other ranks, or pass a longer { timeoutMs } (0 is no limit).',
    values: { timeoutMs },
  })
}
