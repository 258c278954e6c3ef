/** Where the examples are: in this repository, or in the installed package. Their commands have another name there, and less text to learn from. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [PACKAGE, REPOSITORY] = ['../../../', '../../../../'].map((up) => fileURLToPath(new URL(up, import.meta.url))) as [string, string]
// The file is at the top of both.
const isInstalled = existsSync(join(PACKAGE, 'CHANGELOG.md'))

/** The top folder of either. */
export const HOME = isInstalled ? PACKAGE : REPOSITORY

/** An example as its user calls it. */
export function commandOf(example: string): string {
  if (isInstalled) return `npx postgrad example ${example}`
  return example === 'char-lm' ? 'npm start' : `npm run example ${example}`
}

/** A command with options. npm takes those before two dashes for its own. */
export function withOptions(command: string, options: string): string {
  return `${command}${command.startsWith('npm ') ? ' --' : ''} ${options}`
}
