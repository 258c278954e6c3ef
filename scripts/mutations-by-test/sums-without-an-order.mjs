/** Sums of gradients that nothing but messages could order. */
import { t } from './mutation.mjs'

const TESTS = 'packages/tensor/src/sparse/ordered-sum.test.ts'
const SUM = 'packages/tensor/src/sparse/ordered-sum.ts'

export const sumsWithoutAnOrder = [
  t(
    'terms-half-sorted',
    TESTS,
    'DA-46 on wasm each element',
    SUM,
    'if ((i & p) === r) pairs.push',
    'if ((i & p) === r && d > 1) pairs.push',
    'terms next to each other are not sorted',
  ),
  t(
    'rows-that-repeat-apart',
    TESTS,
    'DA-46 sparse rows two have an order',
    SUM,
    'const parts = tensors.map(coalesce)',
    'const parts = tensors',
    'a tensor does not add up its own repeated rows first',
  ),
  t(
    'sums-by-two',
    'packages/autograd/src/engine/input-order.test.ts',
    'DA-46 under createGraph the sum is one node',
    'packages/autograd/src/engine/input-buffer.ts',
    'const sum = operations.orderedSum(held === null ? grads : [held, ...grads], held === null ? 0 : 1)',
    'const sum = grads.reduce((a, b) => a.add(b))',
    'the order of arrival is in the depths of the graph of a gradient',
  ),
  t(
    'depths-of-rows-swapped',
    'packages/autograd/src/engine/input-order.test.ts',
    'DA-46 sparse contributions of two depths',
    'packages/autograd/src/engine/input-order.ts',
    'exclusive, this.next === 0)',
    'exclusive, true)',
    'rows of two depths are added in another order if the second has not waited',
  ),
]
