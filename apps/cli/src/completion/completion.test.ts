/** The completion scripts hold each command, option and choice of commander's tree. */
import { describe, expect, test } from '@jest/globals'
import { bridge } from '../bridge.js'
import { commandTree } from '../commands/cli.js'
import { surroundings } from '../surroundings.fixture.js'
import { SHELLS, scriptOf } from './scripts.js'
import { treeOf } from './tree.js'

const cli = commandTree('1.2.3', { around: surroundings(), bridge, exitWith: () => {} })
const tree = treeOf(cli)

test('CLI-80 the tree has all that commander has', () => {
  expect(tree.commands.map(({ name }) => name)).toEqual([...cli.commands.map((one) => one.name()), 'help'])
  for (const one of cli.commands) {
    const flags = tree.commands.find(({ name }) => name === one.name())!.options.flatMap((option) => option.flags)
    expect(flags).toEqual(
      expect.arrayContaining([...one.options.flatMap(({ short, long }) => [short, long].filter((flag) => flag != null)), '-h', '--help']),
    )
  }
  const run = tree.commands.find(({ name }) => name === 'run')!
  const values = (flag: string) => run.options.find(({ flags }) => flags.includes(flag))?.values
  expect(values('--restart')).toEqual({ kind: 'choices', choices: ['none', 'all', 'failed'] })
  expect(values('--key')).toEqual({ kind: 'file' })
  expect(values('--seed')).toEqual({ kind: 'other' })
  expect(values('--no-color')).toBeNull()
  expect(run.argument).toEqual({ kind: 'file' })
})

describe.each(SHELLS)('%s', (shell) => {
  const script = scriptOf(shell, tree)

  test('CLI-80 has each command, option and choice', () => {
    for (const { name, options } of tree.commands) {
      expect(script).toMatch(new RegExp(`(^|[^\\w-])${name}($|[^\\w-])`, 'm'))
      for (const { flags, values } of options) {
        for (const flag of flags) {
          const word = shell !== 'fish' ? flag : flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`
          const line = new RegExp(`${shell === 'fish' ? `${name}' .*` : ''}${word}($|[^\\w-])`, 'm')
          expect(script).toMatch(line)
        }
        if (values?.kind === 'choices') expect(script).toContain(values.choices.join(' '))
      }
    }
  })
})
