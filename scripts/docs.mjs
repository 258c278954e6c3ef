/** `npm run docs`: set-up, then the documentation site in `out/site`. `apps/site/build.mjs` builds it. */
import { parseArgs } from 'node:util'
import { setupOrExit } from './setup.mjs'

const HELP = `npm run docs               builds the documentation site into out/site, if one of its sources changed
npm run docs -- --force    builds it in any case
npm run docs -- --check    as \`npm test\` runs it: without set-up, one line of result
npm run docs:serve         builds it, then serves it on this machine: prints the address`

const { values } = parseArgs({ options: { force: { type: 'boolean' }, check: { type: 'boolean' }, help: { type: 'boolean' } } })
if (values.help) console.log(HELP)
else {
  if (!values.check) await setupOrExit()
  const { buildSite } = await import('../apps/site/build.mjs')
  try {
    await buildSite({ force: values.force, say: console.log })
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
