/** The text in the parentheses of a module's `toString()`. */

/** `{ bias: true, padding: [1, 2] }` → `bias=true, padding=[1, 2]`; values that are undefined or null are left out. */
export function extraRepr(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${Array.isArray(value) ? `[${value.join(', ')}]` : String(value)}`)
    .join(', ')
}
