/** Commander's tree for the shells' scripts: commands, options, and the values that each takes. */
import type { Command, Option } from 'commander'
import { readExamples } from '../example/catalog.js'
import { readSections } from '../explain/sections.js'
import { TEMPLATES } from '../new/templates.js'

/** The values of an option or an argument. */
export type Values =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'other' }

export interface OptionNode {
  /** '--workers', '-w'. */
  readonly flags: readonly string[]
  readonly description: string
  /** Null: it takes none. */
  readonly values: Values | null
}

export interface CommandNode {
  readonly name: string
  readonly description: string
  readonly options: readonly OptionNode[]
  /** What its first argument may be; null: it has none. */
  readonly argument: Values | null
}

export interface Tree {
  readonly name: string
  readonly options: readonly OptionNode[]
  readonly commands: readonly CommandNode[]
}

export function treeOf(cli: Command): Tree {
  const names = cli.commands.map((one) => one.name())
  return {
    name: cli.name(),
    options: optionsOf(cli),
    // `help` is commander's own, and not among `cli.commands`.
    commands: cli
      .createHelp()
      .visibleCommands(cli)
      .map((one) => ({
        name: one.name(),
        description: one.description(),
        options: optionsOf(one),
        argument: one.name() === HELP ? { kind: 'choices', choices: names } : argumentOf(one),
      })),
  }
}

const HELP = 'help'

function optionsOf(one: Command): readonly OptionNode[] {
  // Help's visible options have --help among them, which `options` does not.
  return one
    .createHelp()
    .visibleOptions(one)
    .map((option) => ({
      flags: [option.short, option.long].filter((flag) => flag != null),
      description: option.description,
      values: option.required || option.optional ? valuesOf(option) : null,
    }))
}

/** An option says by what it calls its value whether that is a file. */
const FILE = /<file/

function valuesOf({ argChoices, flags }: Option): Values {
  if (argChoices !== undefined) return { kind: 'choices', choices: argChoices }
  return { kind: FILE.test(flags) || flags.includes('--out') ? 'file' : 'other' }
}

function argumentOf(one: Command): Values | null {
  const [first] = one.registeredArguments
  if (first === undefined) return null
  if (first.argChoices !== undefined) return { kind: 'choices', choices: first.argChoices }
  if (one.name() === 'example') return { kind: 'choices', choices: [...readExamples().keys()] }
  if (one.name() === 'new') return { kind: 'choices', choices: Object.keys(TEMPLATES) }
  if (one.name() === 'explain') return { kind: 'choices', choices: [...readSections().keys()].sort() }
  return { kind: ['program', 'file'].includes(first.name()) ? 'file' : 'other' }
}
