/** What kernels over arrays get of operands: offsets, strides, repetitions, and where they begin. */
import { t } from './mutation.mjs'

const TESTS = 'packages/tensor/src/kernels/table/over-arrays.test.ts'
const ADAPTERS = 'packages/tensor/src/kernels/table/over-arrays.ts'

export const operandsAsArrays = [
  t(
    'operand-counts-as-dense-in-gaps',
    TESTS,
    'reference of two operands',
    ADAPTERS,
    'if (aStep >= 0 && bStep >= 0 && out.isContiguous)',
    'if (aStep >= 0 && bStep >= 0)',
    'the output of two operands is taken for dense',
  ),
  t(
    'operand-broadcast-as-dense',
    TESTS,
    'reference of two operands',
    ADAPTERS,
    'if (x.isContiguous && x.numel === out.numel) return 1',
    'if (x.isContiguous) return 1',
    'a row that is repeated is taken for all elements',
  ),
  t(
    'operand-axpy-into-gaps',
    TESTS,
    'reference axpy, copy',
    ADAPTERS,
    'const step = out.isContiguous ? stepOver(x, out) : -1',
    'const step = stepOver(x, out)',
    "axpy's output is taken for dense",
  ),
  t(
    'operand-copy-of-one-not-repeated',
    TESTS,
    'reference axpy, copy',
    ADAPTERS,
    'if (out.isContiguous && stepOver(x, out) === 1)',
    'if (out.isContiguous && stepOver(x, out) >= 0)',
    'a copy of one element reads those after it',
  ),
  t(
    'operand-gradient-not-repeated',
    TESTS,
    'reference a gradient of one element',
    ADAPTERS,
    'const step = g.isContiguous ? 1 : 0',
    'const step = 1',
    'a gradient of one element is read as many',
  ),
  t(
    'operand-batch-at-the-begin',
    TESTS,
    'reference products',
    ADAPTERS,
    'z, out.offset + t * m * n)',
    'z, t * m * n)',
    'batches without a common stride are written from the begin of the storage on',
  ),
  t(
    'operand-merged-batches-of-other-rows',
    TESTS,
    'reference products',
    ADAPTERS,
    'if (bBatch === 0 && aDims > 1 && aBatch === m * aRow)',
    'if (bBatch === 0 && aDims > 1)',
    'batches whose rows do not follow each other become one product',
  ),
  t(
    'operand-class-gradient-not-repeated',
    TESTS,
    'reference indices and classes',
    ADAPTERS,
    'const step = g.numel === 1 ? 0 : 1',
    'const step = 1',
    'the one gradient of all classes is read as many',
  ),
  t(
    'operand-saved-from-the-begin',
    TESTS,
    'reference neural networks',
    ADAPTERS,
    'return x.offset === 0 ? x.storage.host : x.storage.host.subarray(x.offset)',
    'return x.storage.host',
    'a norm writes from the begin of the storage on',
  ),
]
