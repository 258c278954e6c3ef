/** What follows from the entry of an operation: its method, its in-place form, its check, what is recorded. */
import { t } from './mutation.mjs'

const DEFINE = 'packages/tensor/src/ops/define/define.ts'
const RECORDED = 'packages/autograd/src/record/operations.test.ts'
const GRADIENTS = 'packages/autograd/src/derivatives/derivatives.test.ts'

export const oneEntry = [
  t(
    'entries-functional-is-a-method',
    'packages/tensor/src/tensor/tensor.test.ts',
    'every operation is a method',
    DEFINE,
    'if (entry.slots !== null && checks.isFunctional !== true)',
    'if (entry.slots !== null)',
    'what is a function alone becomes a method',
  ),
  t(
    'entries-in-place-is-blind',
    RECORDED,
    'an in-place operation that comes after autograd records its value',
    'packages/autograd/src/record/operations.ts',
    '() => how.value(operations), !how.isBlind)',
    '() => how.value(operations), how.isBlind)',
    'an in-place operation writes what the raw one writes, and not its value',
  ),
  t(
    'entries-late-ones-unrecorded',
    RECORDED,
    'an operation that comes after autograd is recorded by its row',
    DEFINE,
    'if (recorder !== null) entry.call = recorder(entry)',
    '',
    'an operation that is defined after autograd is loaded records nothing',
  ),
  t(
    'entries-tensors-by-place',
    'packages/autograd/src/indexing/derivatives.test.ts',
    '',
    'packages/autograd/src/record/record-many.ts',
    'args[at === undefined ? i : at[i]!]',
    'args[i]',
    'a row takes the second argument for the second tensor',
  ),
  t(
    'entries-names-of-parts',
    GRADIENTS,
    'operations carry their names',
    DEFINE,
    "const shown = how.kind === 'primitive' ? how.node : name",
    'const shown = name',
    'the parts of pow and div show names of their own in stacks',
  ),
  t(
    'entries-slope-by-kernel-alone',
    GRADIENTS,
    '',
    'packages/tensor/src/ops/parts/slopes.ts',
    'ops === rawOperations ? kernel(g, s[reads]',
    'ops !== null ? kernel(g, s[reads]',
    'a slope with a kernel has no second derivative',
  ),
]
