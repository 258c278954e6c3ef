/**
 * Steps and averagings of this worker that take parameters from other ranks and have not ended. Until they end, a computation with those parameters would see some values from before and some from
 * after the step, other ones on each rank. PyTorch needs no such thing: there the call of a step waits.
 */
import { PostgradError } from '@postgrad/base'
import { WorkerSlot } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'

const UNDER_WAY = new WorkerSlot('stepsUnderWay', () => new Set<ReadonlySet<Tensor>>())

/** Runs a step that writes to these parameters. Rejects as it does. */
export async function whileStepping(parameters: Iterable<Tensor>, step: () => Promise<void>): Promise<void> {
  const underWay = UNDER_WAY.here
  const own = new Set(parameters)
  underWay.add(own)
  try {
    await step()
  } finally {
    underWay.delete(own)
  }
}

/** @throws OPTIMIZER_STEP_UNFINISHED if a step is under way over one of these parameters */
export function checkStepped(op: string, parameters: () => Iterable<Tensor>): void {
  for (const own of UNDER_WAY.here) {
    for (const p of parameters()) if (own.has(p)) throw stepUnfinished(op)
  }
}

function stepUnfinished(op: string): PostgradError {
  return new PostgradError('OPTIMIZER_STEP_UNFINISHED', {
    op,
    message: 'Expected the last step to have finished. It is still under way: parameters come from other ranks',
    remedy: 'Await `optimizer.step()`, or `averager.averageParameters(…)`, before zeroGrad, the next forward pass and the next step.',
  })
}
