/**
 * `npm run soak -- --seeds 10000 [paths]`: the tests that take longer than a change should wait for, files `*.soak.test.ts`. Every
 * `--name COUNT` reaches them as POSTGRAD_SOAK_NAME; counts are printed before, so that a report says how much was run.
 */
import { runLane } from './jest-lane.mjs'
import { setupOrExit, timed } from './setup.mjs'

const LIMIT_MS = 24 * 3_600_000

const counts = new Map([['seeds', 10_000]])
const args = []
const argv = process.argv.slice(2)
for (let index = 0; index < argv.length; index++) {
  const name = argv[index].match(/^--([a-z-]+)$/)?.[1]
  if (name === undefined || !/^[0-9_]+$/.test(argv[index + 1] ?? '')) args.push(argv[index])
  else counts.set(name, Number(argv[++index].replaceAll('_', '')))
}

await setupOrExit()
const env = { POSTGRAD_SOAK: '1' }
for (const [name, count] of counts) env[`POSTGRAD_SOAK_${name.toUpperCase().replaceAll('-', '_')}`] = String(count)
const said = [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
const done = timed(console.log, `soak: ${said}`)
const result = await runLane('soak', args, { env, limitMs: LIMIT_MS })
if (result.trouble !== null) console.log(result.trouble)
done()
const nothing = result.passed + result.failed === 0
console.log(
  `soak: ${said}: ${nothing ? 'no soak test matches' : `${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`}`,
)
process.exitCode = result.failed > 0 || nothing ? 1 : 0
