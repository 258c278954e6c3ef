/** How kernels take operands: offsets, strides, repetitions, and where they begin. */
import { t } from './mutation.mjs'

const TESTS = 'packages/tensor/src/kernels/table/operands.test.ts'
const ELEMENTWISE = 'packages/tensor/src/kernels/js/elementwise.ts'
const MATMUL = 'packages/tensor/src/kernels/table/matmul.ts'

export const operands = [
  t(
    'operand-counts-as-dense-in-gaps',
    TESTS,
    'js of two operands',
    ELEMENTWISE,
    'if (aStep >= 0 && bStep >= 0 && out.isContiguous)',
    'if (aStep >= 0 && bStep >= 0)',
    'the output of two operands is taken for dense',
  ),
  t(
    'operand-broadcast-as-dense',
    TESTS,
    'js of two operands',
    ELEMENTWISE,
    'const bStep = b.isContiguous && b.numel === n ? 1 :',
    'const bStep = b.isContiguous ? 1 :',
    'a row that is repeated is taken for all elements',
  ),
  t(
    'operand-axpy-into-gaps',
    TESTS,
    'js axpy, copy',
    ELEMENTWISE,
    'if (xStep >= 0 && out.isContiguous)',
    'if (xStep >= 0)',
    "axpy's output is taken for dense",
  ),
  t(
    'operand-copy-of-one-not-repeated',
    TESTS,
    'js axpy, copy',
    ELEMENTWISE,
    'const xStep = x.isContiguous && x.numel === n ? 1 :',
    'const xStep = x.isContiguous ? 1 :',
    'a copy of one element reads those after it',
  ),
  t(
    'operand-gradient-not-repeated',
    TESTS,
    'js a gradient of one element',
    ELEMENTWISE,
    'const step = g.isContiguous ? 1 : 0',
    'const step = 1',
    'a gradient of one element is read as many',
  ),
  t(
    'operand-batch-at-the-begin',
    TESTS,
    'js products',
    MATMUL,
    'const at = [x.at, y.at, out.offset]',
    'const at = [x.at, y.at, 0]',
    'batches without a common stride are written from the begin of the storage on',
  ),
  t(
    'operand-merged-batches-of-other-rows',
    TESTS,
    'js products',
    MATMUL,
    'a.shape.length > 1 && aStep === m * row)',
    'a.shape.length > 1)',
    'batches whose rows do not follow each other become one product',
  ),
  t(
    'operand-class-gradient-not-repeated',
    TESTS,
    'js indices and classes',
    'packages/tensor/src/kernels/js/probabilities.ts',
    'const step = grad.numel === 1 ? 0 : 1\n  to.fill(',
    'const step = 1\n  to.fill(',
    'the one gradient of all classes is read as many',
  ),
  t(
    'operand-saved-from-the-begin',
    TESTS,
    'js neural networks',
    'packages/tensor/src/kernels/table/operands.ts',
    'host.subarray(offset, offset + numel)',
    'host.subarray(0, offset + numel)',
    'a norm writes from the begin of the storage on',
  ),
  t(
    'operand-turned-but-for-its-columns',
    TESTS,
    'js products',
    MATMUL,
    'col: bDims === 1 ? 0 : b.strides[bCols]!',
    'col: bDims === 1 ? 0 : b.strides[bDims - 1]!',
    'a layer reads its weight by the strides of its transpose, but for the columns',
  ),
]
