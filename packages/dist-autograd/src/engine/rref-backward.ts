/**
 * `rref.backward`: a pass from the tensor of a reference. It starts where the tensor is, since only there is its graph: a user of the reference asks
 * the owner to. rpc has the method and does not know what a gradient is; `install.ts` gives it this.
 * PyTorch: `OwnerRRef::backward`, RREF_BACKWARD_REQ.
 */
import { backward as localBackward } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { expose, type RRef, type RRefBackwardOptions } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'

export function installRRefBackward(runtime: WorkerRuntime, container: DistAutogradContainer): void {
  runtime.rrefs.runBackward = async (rref, contextId, options) => {
    if (rref.isOwner()) await backwardHere(container, rref, contextId, options)
    else if (contextId === null) throw contextRequired(rref)
    else {
      const { createGraph = false, retainGraph = createGraph, gradient, ...limits } = options
      // The history of the gradient has no part in the pass.
      await runtime.call(
        rref.owner(),
        backwardOnOwner,
        [rref, contextId, retainGraph, createGraph, isTensor(gradient) ? gradient.detach() : (gradient ?? null)],
        limits,
      )
    }
  }
}

/** A user's call to the owner, where the reference is the owner's. */
const backwardOnOwner = (
  rref: RRef<Tensor>,
  contextId: bigint,
  retainGraph: boolean,
  createGraph: boolean,
  gradient: Tensor | null,
): Promise<void> => rref.backward(contextId, { retainGraph, createGraph, ...(gradient && { gradient }) })

expose({ 'postgrad.rrefBackward': backwardOnOwner })

async function backwardHere(
  container: DistAutogradContainer,
  rref: RRef,
  contextId: bigint | null,
  options: RRefBackwardOptions,
): Promise<void> {
  const { gradient = null, createGraph = false, retainGraph = createGraph, ordered: _, ...limits } = options
  const value = await rref.toHere(limits)
  if (!isTensor(value)) throw notATensor(rref, value)
  if (contextId === null) localBackward(value, gradient, { retainGraph, createGraph })
  else
    await container.retrieve(contextId, 'rref.backward').backward([value], { ...limits, retainGraph, createGraph, gradTensors: [gradient] })
}

function notATensor(rref: RRef, value: unknown): PostgradError {
  return new PostgradError('RREF_NOT_A_TENSOR', {
    op: 'rref.backward',
    message: `RRef should contain a tensor for .backward(), and ${rref} contains ${value === null ? 'null' : `a value of type ${typeof value}`}`,
    remedy: 'Make the reference to the loss itself.',
  })
}

function contextRequired(rref: RRef): PostgradError {
  return new PostgradError('CONTEXT_REQUIRED', {
    op: 'rref.backward',
    message: `user RRefs require a context, and ${rref} is one, of a value on worker '${rref.ownerName()}'`,
    remedy: 'Pass the context that surrounds the forward pass: rref.backward(ctx).',
    values: { owner: rref.ownerName() },
  })
}
