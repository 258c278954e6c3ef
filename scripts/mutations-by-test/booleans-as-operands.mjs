/** Booleans as operands. */
import { t } from './mutation.mjs'

export const booleansAsOperands = [
  t(
    'boolean-without-remedy',
    'packages/autograd/src/api/arguments.test.ts',
    'a boolean as an operand',
    'packages/tensor/src/tensor/arguments.ts',
    "if ((kind === 'tensor' || kind === 'operand') && typeof got === 'boolean')",
    "if ((kind === 'tensors') && typeof got === 'boolean')",
    'add(true) is refused without the way to write it',
  ),
]
