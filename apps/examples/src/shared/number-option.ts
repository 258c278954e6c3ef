/** Numbers on a command line, with a message if one is invalid. */

type Given = Readonly<Record<string, string | boolean | undefined>>

/** The value of `--name`, or `fallback` when it was not given. @throws RangeError */
export function numberOption<D>(given: Given, name: string, fallback: D, expected: string, fits: (value: number) => boolean): number | D {
  const text = given[name]
  if (text === undefined) return fallback
  const value = Number(text)
  if (String(text).trim() === '' || !Number.isFinite(value) || !fits(value)) {
    throw new RangeError(`--${name}: expected ${expected}, got '${text}'`)
  }
  return value
}

/** @throws RangeError */
export function countOption<D>(given: Given, name: string, fallback: D): number | D {
  return numberOption(given, name, fallback, 'a positive whole number', (value) => value > 0 && Number.isSafeInteger(value))
}

/** @throws RangeError */
export function positiveOption(given: Given, name: string, fallback: number): number {
  return numberOption(given, name, fallback, 'a positive number', (value) => value > 0)
}
