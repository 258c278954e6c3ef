/** The recorded operations by name, without the check of arguments. Formulas compute with them under createGraph. Filled by `../record/operations.ts`. */
import type { Ops } from '@postgrad/tensor/internal'

export const operations = {} as Ops
