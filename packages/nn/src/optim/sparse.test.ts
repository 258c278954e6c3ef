/** Optimizers on sparse gradients: as PyTorch 1.13 steps, and as the same gradients step when they are dense. */
import { expect, test } from '@jest/globals'
import { embedding } from '@postgrad/autograd'
import { type Tensor, tensor } from '@postgrad/tensor'
import { Adagrad, Adam, type Optimizer, SGD, SparseAdam } from '../index.js'

const table = () =>
  tensor(Float64Array.from({ length: 8 }, (_, i) => (i - 3) / 4))
    .reshape([4, 2])
    .detach()
    .requiresGrad_()

/** Three steps on the rows 1, 3 and 1 once more; row 0 joins in the last. */
function train(make: (params: Tensor[]) => Optimizer, sparse: boolean): number[] {
  const w = table()
  const optimizer = make([w])
  for (const at of [
    [1, 3, 1],
    [1, 3, 1],
    [0, 3],
  ]) {
    optimizer.zeroGrad()
    embedding(w, tensor(Int32Array.from(at)), { sparse })
      .pow(2)
      .sum()
      .backward()
    expect(w.grad!.isSparse).toBe(sparse)
    optimizer.step()
  }
  return [...w.dataSync()]
}

function close(got: number[], want: number[]): void {
  for (const [i, value] of got.entries()) expect(value).toBeCloseTo(want[i]!, 12)
}

test('SGD and Adagrad step as on the dense gradient', () => {
  for (const make of [(p: Tensor[]) => new SGD(p, { lr: 0.1 }), (p: Tensor[]) => new Adagrad(p, { lr: 0.1, lrDecay: 0.2 })]) {
    close(train(make, true), train(make, false))
  }
})

test('SparseAdam steps as PyTorch', () => {
  const got = train((p) => new SparseAdam(p, { lr: 0.1 }), true)
  close(got, SPARSE_ADAM)
})

test('who does not take sparse gradients says so, and SparseAdam takes no others', () => {
  const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error
  expect(() => train((p) => new Adam(p), true)).toThrow(refused('SPARSE_TENSOR'))
  expect(() => train((p) => new SGD(p, { lr: 0.1, momentum: 0.9 }), true)).toThrow(refused('SPARSE_TENSOR'))
  expect(() => train((p) => new SparseAdam(p), false)).toThrow(refused('INVALID_ARGUMENT'))
})

/** PyTorch 1.13, torch.optim.SparseAdam(lr=0.1) on the same steps. */
const SPARSE_ADAM = [-0.686118653527519, -0.436118660261202, -0.0542510372551868, 0, 0.25, 0.5, 0.452456706248927, 0.701586308561598]
