/** Custom functions and writes next to PyTorch. */
import { t } from './mutation.mjs'

export const customFunctionsAndWritesNextToPytorch = [
  t(
    'create-graph-keeps-expanded',
    'packages/autograd/src/graph/retain-grad.test.ts',
    'an expanded gradient that createGraph keeps',
    'packages/autograd/src/graph/grad-sink.ts',
    'exclusive && grad.isContiguous ? grad : grad.clone()',
    'exclusive ? grad : grad.clone()',
    'a pass under createGraph keeps an expanded gradient, which the next cannot add to',
  ),
  t(
    'mixed-write-gradient-of-other-dtype',
    'packages/autograd/src/record/in-place.test.ts',
    'after a mixed write',
    'packages/autograd/src/record/in-place.ts',
    'rebase(x, out.dtype === x.dtype ? out : out.to(x.dtype))',
    'rebase(x, out)',
    'after a write of float64 into float32 the gradient is of float64',
  ),
  t(
    'index-put-gives-a-view',
    'packages/autograd/src/record/in-place.test.ts',
    'a result of indexPut',
    'packages/tensor/src/ops/indexing.ts',
    'ops.clone(ops.reshape(out, x.shape))',
    'ops.reshape(out, x.shape)',
    'a result of indexPut is a view, which cannot be written to if it was made under noGrad',
  ),
  t(
    'custom-function-writes-first',
    'packages/autograd/src/graph/views.test.ts',
    'before its forward writes',
    'packages/autograd/src/record/custom-function.ts',
    `    const edges = record ? args.map((arg): Edge | null => (isTensor(arg) ? gradientEdge(arg) : null)) : []
    const before = storageCount()
    const result = withScope({ gradEnabled: false }, () => definition.forward(ctx, ...args))
`,
    `    const before = storageCount()
    const result = withScope({ gradEnabled: false }, () => definition.forward(ctx, ...args))
    const edges = record ? args.map((arg): Edge | null => (isTensor(arg) ? gradientEdge(arg) : null)) : []
`,
    'a custom function runs its forward on an argument that it then refuses',
  ),
]
