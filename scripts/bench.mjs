/** `npm run bench`: set-up, then the benchmarks, on the files that users have. Only they write to stdout, so that `npm run --silent bench -- --json` can be read by a program. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundledTree } from './bundled-tree.mjs'
import { runApp } from './run-app.mjs'
import { setupOrExit } from './setup.mjs'

const quiet = process.argv.includes('--json')
const say = quiet ? () => {} : console.error
await setupOrExit({ say })
installPeers(say)
await runApp('apps/bench/dist/main.js', await bundledTree())

/** 66 MB that nothing but the benchmark needs. Without them their column is empty, and the benchmark says so. */
function installPeers(say) {
  const peers = fileURLToPath(new URL('../apps/bench/peers/', import.meta.url))
  if (existsSync(`${peers}node_modules`)) return
  say('installing what the benchmark compares with (tfjs)')
  spawnSync('npm', ['ci', '--silent', '--no-audit', '--no-fund'], {
    cwd: peers,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  })
}
