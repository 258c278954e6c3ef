/** `npm run docs`: set-up, then the documentation site in `out/site`; `npm run docs:serve` also serves it. `apps/site/build.mjs` does the work. */
import { parseArgs } from 'node:util'
import { setupOrExit } from './setup.mjs'

const HELP = `npm run docs                         builds the documentation site into out/site, if one of its sources changed
npm run docs -- --force              builds it in any case
npm run docs -- --check              builds it without set-up, as \`npm test\` does
npm run docs:serve                   builds it, serves it on this machine and prints the address
npm run docs:serve -- --port 8080    on this port; else on 4173, or the next one that is free
npm run docs:serve -- --open         also opens a browser`

const options = parse()
if (options.help) console.log(HELP)
else {
  if (!options.check) await setupOrExit()
  const { buildSite, serveSite } = await import('../apps/site/build.mjs')
  try {
    await buildSite({ force: options.force, say: console.log })
    if (options.serve) console.log(`site: ${await serveSite(options)} (Ctrl-C ends it)`)
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}

function parse() {
  const flags = Object.fromEntries(['force', 'check', 'serve', 'open', 'help'].map((name) => [name, { type: 'boolean' }]))
  try {
    const { values } = parseArgs({ options: { ...flags, port: { type: 'string' } } })
    if (values.port === undefined) return values
    const port = Number(values.port)
    if (Number.isInteger(port) && port > 0 && port < 65536) return { ...values, port }
    throw new Error(`--port: expected a number from 1 to 65535, got '${values.port}'`)
  } catch (error) {
    console.error(`${error.message}\nTry: npm run docs -- --help`)
    process.exit(2)
  }
}
