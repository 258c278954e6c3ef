/** The recorded operations by name, without the check of their arguments: what formulas compute with under createGraph. `../record/operations.ts` fills it. */
import type { Ops } from '@postgrad/tensor/internal'

export const operations = {} as Ops
