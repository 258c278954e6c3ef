/** `npm run docs:serve`: set-up, the documentation site, and a server for it on this machine. Ctrl-C ends it. */
import { parseArgs } from 'node:util'
import { setupOrExit } from './setup.mjs'

const HELP = `npm run docs:serve                     builds the documentation site if one of its sources changed, and serves it on this machine
npm run docs:serve -- --port 8080      on another port; without it 4173, or the next one that is free
npm run docs:serve -- --open           also opens a browser`

const { values } = parseArgs({ options: { port: { type: 'string' }, open: { type: 'boolean' }, help: { type: 'boolean' } } })
const port = values.port === undefined ? undefined : Number(values.port)
if (values.help) console.log(HELP)
else if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65536)) {
  console.error(`--port: expected a number from 1 to 65535, got '${values.port}'`)
  process.exitCode = 2
} else {
  await setupOrExit()
  const { buildSite, serveSite } = await import('../apps/site/build.mjs')
  try {
    await buildSite({ say: console.log })
    console.log(`site: ${await serveSite({ port, open: values.open })} (Ctrl-C ends it)`)
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
