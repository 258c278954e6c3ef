/** A new project as data: its name, and the text of each file. `write-project.ts` writes it. */
import { builtinModules } from 'node:module'

/** The tools of a project, of these versions or later ones that change no behaviour. A test holds tsx to the version that the repository uses. */
export const TOOLS = { '@types/node': '^20.19.43', tsx: '^4.23.15', typescript: '^5.9.3' }

const NAME_MAX = 214

/** The name that npm takes for a folder's project: `My Agent` → `my-agent`. A name that another module has gets `my-` before it. */
export function packageName(folder: string): string {
  const name = folder
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|[._-]+$/g, '')
    .slice(0, NAME_MAX)
  if (name === '') return 'my-project'
  const isTaken = ['postgrad', 'node_modules', 'favicon.ico', ...Object.keys(TOOLS), ...builtinModules].includes(name)
  return isTaken ? `my-${name}` : name
}

/**
 * @param template the files of a template
 * @param dependency as package.json names postgrad: `file:../postgrad-0.1.0.tgz`
 */
export function projectFiles(template: ReadonlyMap<string, string>, name: string, dependency: string): ReadonlyMap<string, string> {
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: { start: 'tsx run.ts', test: 'tsc && node --import tsx --test --test-reporter=spec program.test.ts' },
    dependencies: { postgrad: dependency },
    devDependencies: TOOLS,
  }
  return new Map([['package.json', `${JSON.stringify(manifest, null, 2)}\n`], ...template, ['.gitignore', 'node_modules\n']])
}
