/** Chains of element-wise operations (`compile`). */
import { t } from './mutation.mjs'

const TEST = 'packages/tensor/src/chains/chains.test.ts'
const LANES = 'packages/tensor/src/kernels/wasm/lanes/lanes.test.ts'
const BACKWARD = 'packages/autograd/src/engine/chains.test.ts'

export const chains = [
  t(
    'chain-holds-a-users-array',
    TEST,
    'CHAIN-3',
    'packages/tensor/src/chains/step.ts',
    'held.host!.set(storage.host!.subarray(offset, offset + length))',
    'held = new Storage(storage.dtype, storage.host!.subarray(offset, offset + length))',
    "a write to a user's array changes what a step reads that was recorded before",
  ),
  t(
    'chain-passes-without-bound',
    TEST,
    'CHAIN-5',
    'packages/tensor/src/chains/step.ts',
    'return steps <= STEPS_MAX && streams <= STREAMS_MAX',
    'return true',
    'hundreds of results are one pass',
  ),
  t(
    'chain-computes-again-and-again',
    BACKWARD,
    'CHAIN-6',
    'packages/tensor/src/chains/step.ts',
    'for (const step of chain.order) step.times++',
    'for (const step of chain.order) step.times = 0',
    'each layer computes all layers before it again',
  ),
  t(
    'chain-result-next-to-its-view',
    TEST,
    'CHAIN-4',
    'packages/tensor/src/chains/record.ts',
    'if (layouts[i] !== null) storage.pending?.settle()',
    'if (layouts[i] !== null) continue',
    'a step is computed by a view of it while it is an operand',
  ),
  t(
    'chain-keeps-what-it-has-used',
    TEST,
    'CHAIN-3',
    'packages/tensor/src/chains/step.ts',
    'if (--this.users === 0 && this.storage.isLeased) this.storage.close()',
    'if (--this.users === 0 && this.storage.isLeased) return',
    'a chain holds blocks of its sources when all is computed',
  ),
  t(
    'chain-returns-what-is-pending',
    TEST,
    'CHAIN-2',
    'packages/tensor/src/chains/compile.ts',
    '[...storagesIn(result)]',
    '[...storagesIn(null)]',
    'a compiled function returns results that are not computed',
  ),
  t(
    'lanes-clamp-in-the-other-order',
    LANES,
    'CHAIN-1 clamp',
    'packages/tensor/src/kernels/elementwise/unary.ts',
    "'a p0 f32x4.max p1 f32x4.min'",
    "'a p1 f32x4.min p0 f32x4.max'",
    'bounds that cross give the lower one',
  ),
  t(
    'lanes-rest-one-too-few',
    LANES,
    'CHAIN-1',
    'packages/tensor/src/kernels/wasm/lanes/module.ts',
    "this.#loop(this.#all, 4, () => this.#each('single'))",
    "this.#loop(this.#whole, 4, () => this.#each('single'))",
    'the last elements are not computed',
  ),
  t(
    'chain-backward-unfused',
    BACKWARD,
    'CHAIN-6',
    'packages/autograd/src/record/record.ts',
    'if (records && isPending(out)) node.isOfChain = true',
    'if (records && isPending(out)) node.isOfChain = false',
    'a backward pass writes every step of its chain',
  ),
  t(
    'chain-sum-in-place',
    BACKWARD,
    'CHAIN-6',
    'packages/autograd/src/engine/input-buffer.ts',
    ' && !isPending(held) && !isPending(grad)) {',
    ') {',
    'a sum of gradients computes what it adds to',
  ),
]
