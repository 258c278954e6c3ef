/** Packs, and asks npm whether it would publish that: `npm publish --dry-run`, which publishes nothing. `npm test` runs it; `npm run pack:check` tries the tarball as users do. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { capture, root } from './setup.mjs'

const { version } = JSON.parse(readFileSync(join(root, 'packages/postgrad/package.json'), 'utf8'))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const steps = [
  [process.execPath, [join(root, 'scripts/pack.mjs')]],
  [npm, ['publish', join(root, `out/postgrad-${version}.tgz`), '--dry-run', '--loglevel=error']],
]
for (const [command, args] of steps) {
  const { code, output } = await capture(command, args, { cwd: root, shell: command === npm && process.platform === 'win32' })
  if (code === 0) continue
  console.error(`${[command, ...args].join(' ')} failed:\n${output}`)
  process.exit(1)
}
