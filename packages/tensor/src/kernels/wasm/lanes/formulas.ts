/** The steps of a chain that are computed in registers, by the rows of their ops (`InLanes` in `elementwise/definition.ts`). */
import type { InLanes, UnaryDefinition } from '../../elementwise/definition.js'
import { ROWS } from '../../elementwise/rows.js'
import type { ChainStep } from '../../table/chain.js'

/** a, the mask, chooses between b and c. */
const CHOICE = 'b c a v128.bitselect'

/** Null: the step has no formula. `from` are the dtypes of its operands. */
export function formulaOf({ form, op, dtype, made, p0 }: ChainStep, from: readonly string[]): string | null {
  if (form === 'conversion') {
    if (from[0] === 'float32') return made === 'float32' ? 'a' : made === 'bool' ? 'a 0 f32x4.ne' : null
    return from[0] === 'bool' && made === 'float32' ? 'a 1 v128.and' : null
  }
  if (dtype !== 'float32') return null
  if (form === 'choice') return CHOICE
  const row = (ROWS[form] as Readonly<Record<string, InLanes & Pick<UnaryDefinition, 'lanesOfSquare'>>>)[op]!
  return row.lanes ?? (p0 === 2 ? row.lanesOfSquare : undefined) ?? null
}
