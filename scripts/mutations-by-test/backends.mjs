/** The backends js and wasm, and the oracle with which both are compared. */
import { t } from './mutation.mjs'

const JS = 'packages/tensor/src/kernels/js/backend.test.ts'

export const backends = [
  t(
    'backends-variant-of-a-loop',
    'packages/tensor/src/kernels/wasm/backend.test.ts',
    'variantOf names a loop where the kernel is that of js, and only there',
    'packages/tensor/src/kernels/wasm/backend.ts',
    "?? 'loop',",
    "?? 'simd',",
    'wasm calls the loops of js its own code',
  ),
  t(
    'backends-order-of-a-sum',
    JS,
    'kernels of js (seed 20261128) sum float64',
    'packages/tensor/src/kernels/js/sum.ts',
    'return a0 + a2 + (a4 + a6) + (a1 + a3 + (a5 + a7))',
    'return a0 + a1 + (a2 + a3) + (a4 + a5 + (a6 + a7))',
    'a sum has another order than rule SUM',
  ),
  t(
    'backends-walk-of-where',
    JS,
    'kernels of js (seed 20261128) where float32',
    'packages/tensor/src/kernels/table/walk.ts',
    'ends ? strides[k]![d]! * (1 - shape[d]!) : strides[k]![d]!',
    'strides[k]![d]!',
    'where walks on after the last place of a dimension',
  ),
  t(
    'backends-names-of-devices',
    'packages/tensor/src/tensor/device.test.ts',
    'an unknown name is refused with the names that exist',
    'packages/tensor/src/kernels/backends.ts',
    '  js: () => createJsBackend(hostUserKernels()),\n',
    '  js: () => createJsBackend(hostUserKernels()),\n  ...{ gpujs: () => createJsBackend(hostUserKernels()) },\n',
    'users can choose a device that has no kernels for them',
  ),
  t(
    'backends-last-part-as-long',
    'packages/tensor/src/kernels/wasm/placement.test.ts',
    'PLACE: the same bits wherever operands lie (seed 11) layerNorm',
    'packages/tensor/src/kernels/wasm/calls/staged.ts',
    'return Math.min(this.#size, this.#x.numel - i * this.#size)',
    'return this.#size',
    'the last part of what is staged is as long as the others',
  ),
  t(
    'backends-last-planes-as-many',
    'packages/tensor/src/kernels/wasm/placement.test.ts',
    'PLACE: the same bits wherever operands lie (seed 11) maxPool2d',
    'packages/tensor/src/kernels/wasm/pool.ts',
    'inSlices(Math.min(atOnce, g.planes - p), g, (oy0, oy1, before, done) => {\n        const [from, to, at]',
    'inSlices(atOnce, g, (oy0, oy1, before, done) => {\n        const [from, to, at]',
    'the last planes that a pool stages are as many as the others',
  ),
  t(
    'backends-name-of-an-export',
    'packages/tensor/src/kernels/wasm/calls/instance.test.ts',
    'kernels.wasm exports a function of every name',
    'packages/tensor/src/kernels/elementwise/activations.ts',
    "wasm: 'silu_f32'",
    "wasm: 'swish_f32'",
    'a row names an export that kernels.wasm has not',
  ),
]
