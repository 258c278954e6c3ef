/** Names that a user may have meant, for a name that is unknown. */

/** At most so many are offered. */
const SIMILAR_MAX = 5

/** The most similar first. @param likeMin so many letters they have in common with `text` at least, at the beginning and in whole words */
export function similarNames(text: string, names: readonly string[], likeMin: number): readonly string[] {
  return names
    .map((name) => [name, likeness(name, text)] as const)
    .filter(([, like]) => like >= likeMin)
    .sort(([, a], [, b]) => b - a)
    .slice(0, SIMILAR_MAX)
    .map(([name]) => name)
}

const words = (text: string): readonly string[] => text.split(/[^A-Za-z0-9]+/)

/** How many letters the two have in common at their beginning, and in whole words. */
function likeness(name: string, text: string): number {
  let begin = 0
  while (begin < text.length && name[begin] === text[begin]) begin++
  const known = new Set(words(name))
  return begin + words(text).reduce((sum, word) => sum + (known.has(word) ? word.length : 0), 0)
}
