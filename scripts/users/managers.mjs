/** Projects with package managers and runtimes other than npm and Node, for `users-projects.mjs`: each installs the tarball into a folder of its own, `app`, and runs a program on threads. */
import { BUNDLERS, ROWS } from './bundlers.mjs'

const APP = Object.fromEntries(Object.entries(BUNDLERS.esbuild.files).map(([path, text]) => [`app/${path}`, text]))
const manifest = (tarball) => `${JSON.stringify({ private: true, type: 'module', dependencies: { postgrad: `file:${tarball}` } })}\n`

/** @param dependencies the manager, which npm installs above `app` @param runs its commands there */
const app = (tarball, dependencies, files, runs) => ({
  dependencies,
  isAlone: true,
  files: { ...APP, 'app/package.json': manifest(tarball), ...files },
  runs,
})

export const managers = (tarball) => ({
  pnpm: app(tarball, { pnpm: '10.34.9' }, { 'app/pnpm-workspace.yaml': 'packages: []\n' }, [
    ['pnpm', '--dir', 'app', 'install', '--no-frozen-lockfile'],
    { command: ['node', 'app/run.mjs'], prints: ROWS },
  ]),
  'yarn-pnp': app(
    tarball,
    { '@yarnpkg/cli-dist': '4.18.1' },
    {
      'app/yarn.lock': '',
      'app/.yarnrc.yml': 'nodeLinker: pnp\nenableGlobalCache: false\nenableTelemetry: false\nenableImmutableInstalls: false\n',
    },
    [['yarn', '--cwd', 'app', 'install'], { command: ['yarn', '--cwd', 'app', 'node', 'run.mjs'], prints: ROWS }],
  ),
  bun: app(tarball, { bun: '1.4.5' }, {}, [['bun', 'install', '--cwd', 'app'], { command: ['bun', 'app/run.mjs'], prints: ROWS }]),
})
