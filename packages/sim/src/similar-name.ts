/** The name that a user may have meant, for the errors of fault rules (`faults.ts`, and `testing`, which knows the workers). */

/** "Did you mean nth?", or '' if no known name is so similar. */
export function didYouMean(name: string, known: readonly string[]): string {
  const [best] = known
    .map((each) => [each, edits(name.toLowerCase(), each.toLowerCase())] as const)
    .filter(([each, count]) => count <= Math.max(1, Math.floor(Math.min(each.length, name.length) / 3)))
    .sort(([, a], [, b]) => a - b)
  return best === undefined ? '' : `Did you mean ${best[0]}?`
}

/** How many letters to insert, delete, replace or exchange with the next one, to make one of the other. */
function edits(one: string, other: string): number {
  const rows = [...one, ''].map((_, i) => [i, ...[...other].map(() => 0)])
  for (let j = 0; j <= other.length; j++) rows[0]![j] = j
  for (let i = 1; i <= one.length; i++) {
    for (let j = 1; j <= other.length; j++) {
      const change = one[i - 1] === other[j - 1] ? 0 : 1
      let count = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, rows[i - 1]![j - 1]! + change)
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) count = Math.min(count, rows[i - 2]![j - 2]! + 1)
      rows[i]![j] = count
    }
  }
  return rows[one.length]![other.length]!
}
