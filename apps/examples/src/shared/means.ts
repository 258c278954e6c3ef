/** Means over many steps, for charts. */

/** The mean of every `size` values; the last may be of fewer. */
export function meanOver(values: readonly number[], size: number): number[] {
  const means: number[] = []
  for (let i = 0; i < values.length; i += size) {
    const some = values.slice(i, i + size)
    means.push(some.reduce((sum, x) => sum + x, 0) / some.length)
  }
  return means
}
