/** Checks of the options of a cluster's functions: an option that is ignored without an error would start another cluster than the program asked for. */
import { argumentText, checkFunction, checkOptions, invalidArgument } from '@postgrad/tensor/internal'

/** The names of all options of a type: one that is missing does not compile. */
export type OptionNames<O> = { readonly [name in keyof Required<O>]: true }

/** @throws INVALID_ARGUMENT unless it is an object without other names */
export function checkNames<O extends object>(op: string, options: O, known: OptionNames<O>): void {
  const names = Object.keys(known) as (keyof O)[]
  checkOptions(op, options, names, `Write them in braces, as in { ${String(names[0])}: … }.`)
}

/** @throws INVALID_ARGUMENT unless each that is given is a function */
export function checkFunctions(op: string, functions: Readonly<Record<string, unknown>>): void {
  for (const [name, fn] of Object.entries(functions)) if (fn !== undefined) checkFunction(op, name, fn)
}

/** @throws INVALID_ARGUMENT unless it is true or false: what is neither would be taken for one of them */
export function checkBoolean(op: string, name: string, value: unknown): void {
  if (typeof value !== 'boolean')
    throw invalidArgument(op, `true or false as ${name}`, argumentText(value), 'Leave it out for the default.')
}

/** @throws INVALID_ARGUMENT */
export function checkOneOf<T extends string>(op: string, value: T, known: readonly T[]): T {
  if (known.includes(value)) return value
  throw invalidArgument(op, known.map((each) => `'${each}'`).join(' or '), String(value), `Leave it out for '${known[0]}'.`)
}
