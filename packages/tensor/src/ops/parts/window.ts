/** Arguments of windows that slide over planes: sizes, strides, paddings, dilations. */

import { invalidArgument } from '../../values/errors.js'
import type { Pair } from '../../values/options-neural.js'

/** [height, width], each an integer ≥ least. @throws INVALID_ARGUMENT */
export function pair(op: string, name: string, value: Pair, least: number): readonly [number, number] {
  const both: readonly number[] = typeof value === 'number' ? [value, value] : value
  // By hand: a pool of a small plane asks four times.
  const fits = (n: unknown): boolean => Number.isSafeInteger(n) && (n as number) >= least
  if (!Array.isArray(both) || both.length !== 2 || !fits(both[0]) || !fits(both[1]))
    throw invalidArgument(op, `as ${name} an integer ≥ ${least} or [height, width] of such`, JSON.stringify(value) ?? String(value))
  return both as unknown as readonly [number, number]
}
