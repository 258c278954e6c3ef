/** Lists of names, each with a line about it. */

/** Names in one column, after two spaces. */
export function nameLines(list: readonly (readonly [name: string, about: string])[]): string {
  const width = Math.max(...list.map(([name]) => name.length))
  return list.map(([name, about]) => `  ${name.padEnd(width)}  ${about}\n`).join('')
}
