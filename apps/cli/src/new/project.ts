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

/** The package managers that a project is written for. */
export type Manager = 'npm' | 'pnpm'

/** pnpm 12 ends an installation with an error if a package has an install script of which it says nothing. The file also makes the project one of its own inside of a workspace. */
const PNPM = `# tsx works without esbuild's install script.
allowBuilds:
  esbuild: false
`

/**
 * @param template the files of a template
 * @param dependency as package.json names postgrad: `file:../postgrad-1.2.3.tgz`
 */
export function projectFiles(
  template: ReadonlyMap<string, string>,
  name: string,
  dependency: string,
  manager: Manager = 'npm',
): ReadonlyMap<string, string> {
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: { start: 'tsx run.ts', test: 'tsc && node --import tsx --test --test-reporter=spec program.test.ts' },
    dependencies: { postgrad: dependency },
    devDependencies: TOOLS,
  }
  const files = new Map([['package.json', `${JSON.stringify(manifest, null, 2)}\n`], ...template, ['.gitignore', 'node_modules\n']])
  return manager === 'pnpm' ? files.set('pnpm-workspace.yaml', PNPM) : files
}
