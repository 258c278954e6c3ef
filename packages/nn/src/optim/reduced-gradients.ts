/** Refuses a step by gradients that this rank has gathered alone: the replicas would differ. */
import { PostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import { isAlone, peekGrad } from '@postgrad/tensor/internal'

/** `grads`: as of a step; left out: `.grad`. @throws GRADIENTS_NOT_REDUCED */
export function checkReduced(op: string, parameters: Iterable<Tensor>, grads?: ReadonlyMap<Tensor, Tensor>): void {
  const alone: number[] = []
  let number = 0
  for (const p of parameters) {
    const grad = grads === undefined ? peekGrad(p) : grads.get(p)
    if (grad && isAlone(grad)) alone.push(number)
    number++
  }
  if (alone.length === 0) return
  const some =
    alone.length > NUMBERS_MAX ? `${alone.slice(0, NUMBERS_MAX).join(', ')} and ${alone.length - NUMBERS_MAX} more` : alone.join(', ')
  throw new PostgradError('GRADIENTS_NOT_REDUCED', {
    op,
    message: `these gradients were computed on this rank alone, in noSync or without model.forward, and were not reduced since: parameters number ${some} of the optimizer. A step by them would make the replicas differ`,
    remedy:
      'Run the last pass before each step outside of noSync, by await model.backward(loss). Give a loss that does not use model.forward to the same pass: model.backward([loss, penalty]). Or reduce each gradient by allReduce(p.grad), or drop it with zeroGrad(). To let each rank step by itself, use postLocalSGDHook or PostLocalSGDOptimizer.',
    values: { numbers: alone },
  })
}

/** At most so many numbers are written out. */
const NUMBERS_MAX = 20
