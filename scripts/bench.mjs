/** `npm run bench`: set-up, then the benchmarks. Only they write to stdout, so that `npm run --silent bench -- --json` can be read by a program. */
import { runApp } from './run-app.mjs'
import { setupOrExit } from './setup.mjs'

const quiet = process.argv.includes('--json')
await setupOrExit({ say: quiet ? () => {} : console.error })
await runApp('apps/bench/dist/main.js')
