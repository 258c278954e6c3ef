/** Models and batches of the data-parallel tests, from seeds: the same on every rank, and in the one place that computes the expected values. */
import { withScope } from '@postgrad/base/internal'
import { type Module, SGD } from '@postgrad/nn'
import { Generator, randn, type Tensor } from '@postgrad/tensor'
import { isSparse, raw, toDense } from '@postgrad/tensor/internal'

export const seeded = <T>(seed: number, fn: () => T): T => withScope({ generator: new Generator(seed) }, fn)

/** [rows, width]: that of a rank in a step. */
export const batchOf = (rank: number, step: number, rows = 5, width = 4): Tensor =>
  seeded(1000 * step + rank + 1, () => randn([rows, width]))

export const lossOf = (y: Tensor): Tensor => y.square().mean()

/** Sparse ones with all of their rows. */
export const values = (tensors: readonly (Tensor | null)[]): unknown =>
  tensors.map((t) => (t === null ? null : (isSparse(t) ? toDense(t) : t).toArray()))

export const grads = (model: Module): unknown => values(model.parameters().map(({ grad }) => grad))

/** The parameters after some steps in one place: each rank's gradients one after the other, their mean in the order of ranks, as the reducer has it. */
export function trainedInOnePlace<M extends Module & { forward(x: Tensor): Tensor }>(
  make: () => M,
  size: number,
  steps: number,
  settings = { lr: 0.1, momentum: 0.9 },
): unknown {
  const model = make()
  const parameters = model.parameters()
  const optimizer = new SGD(parameters, settings)
  for (let step = 0; step < steps; step++) {
    const sums = new Map<Tensor, Tensor>()
    for (let rank = 0; rank < size; rank++) {
      model.zeroGrad()
      lossOf(model.forward(batchOf(rank, step))).backward()
      for (const p of parameters) {
        if (p.grad === null) continue
        const part = raw.mul(p.grad, 1 / size)
        const sum = sums.get(p)
        sums.set(p, sum === undefined ? part : raw.add(sum, part))
      }
    }
    optimizer.step(sums)
  }
  return values(parameters)
}
