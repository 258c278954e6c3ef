/** A command line from one table: name, value and purpose of each option; prints its help, and reads it with messages for the user. */
import { parseArgs } from 'node:util'
import { countOption, numberOption, positiveOption } from './number-option.js'
import { withOptions } from './place.js'

type Given = Readonly<Record<string, string | boolean | undefined>>

export interface Option<T> {
  /** In the help, after the option's name. */
  readonly hint: string
  readonly what: string
  /** @throws RangeError with a message for the user */
  readonly read: (given: Given, name: string) => T
}

export const count = (fallback: number, what: string): Option<number> => ({
  hint: 'N',
  what: `${what} (default: ${fallback})`,
  read: (given, name) => countOption(given, name, fallback),
})

export const countUpTo = (max: number, fallback: number, what: string): Option<number> => ({
  hint: 'N',
  what: `${what} (default: ${fallback})`,
  read: (given, name) =>
    numberOption(given, name, fallback, `a whole number from 1 to ${max}`, (n) => Number.isInteger(n) && n >= 1 && n <= max),
})

export const positive = (fallback: number, what: string): Option<number> => ({
  hint: 'X',
  what: `${what} (default: ${fallback})`,
  read: (given, name) => positiveOption(given, name, fallback),
})

export const seed = (): Option<number> => ({
  hint: 'N',
  what: 'of all random numbers (default: 0)',
  read: (given, name) => numberOption(given, name, 0, 'a whole number', Number.isSafeInteger),
})

export const choice = <const C extends readonly string[]>(choices: C, what: string): Option<C[number]> => ({
  hint: 'NAME',
  what: `${choices.join(' or ')}: ${what} (default: ${choices[0]})`,
  read: (given, name) => {
    const value = given[name] ?? choices[0]!
    if (choices.includes(value as string)) return value as C[number]
    throw new RangeError(`--${name}: expected one of ${choices.join(', ')}, got '${value}'`)
  },
})

/** Null: the default, which is the example's. */
export const outFile = (fallback: string): Option<string | null> => ({
  hint: 'FILE',
  what: `where the picture goes, and next to it the log; both replace earlier ones (default: ${fallback})`,
  read: (given, name) => (given[name] as string | undefined) ?? null,
})

export interface CommandLine<S> {
  readonly help: string
  /** Null: help was asked for. @throws TypeError, RangeError with a message for the user */
  readonly read: (argv: readonly string[]) => S | null
}

/** The values of a table's options, by name. */
export type SettingsOf<T> = { readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never }

export function commandLine<T extends Readonly<Record<string, Option<unknown>>>>(
  command: string,
  about: string,
  table: T,
): CommandLine<SettingsOf<T>> {
  const names = Object.keys(table)
  const left = (name: string) => `--${name} ${table[name]!.hint}`
  const width = Math.max(...names.map((name) => left(name).length)) + 2
  const lines = [...names.map((name) => [left(name), table[name]!.what] as const), ['--help', 'print this'] as const]
  return {
    help: `Usage: ${withOptions(command, '[options]')}\n\n${about}\n\nOptions:\n${lines.map(([l, r]) => `  ${l.padEnd(width)}${r}`).join('\n')}`,
    read(argv) {
      const text = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
      const { values } = parseArgs({ args: [...argv], options: { ...text, help: { type: 'boolean' } } })
      if (values.help) return null
      return Object.fromEntries(names.map((name) => [name, table[name]!.read(values, name)])) as SettingsOf<T>
    },
  }
}
