/** `npm run example NAME -- …`: set-up, then one of the examples; without a name it lists them. Later arguments go to the example. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runApp } from './run-app.mjs'
import { root, setupOrExit } from './setup.mjs'

/** Name → what it shows. Each is a folder of apps/examples/src with a main.ts. `postgrad example` has the same list. */
const EXAMPLES = JSON.parse(readFileSync(join(root, 'apps/examples/examples.json'), 'utf8'))

const [name, ...rest] = process.argv.slice(2)
const list = Object.entries(EXAMPLES)
  .map(([one, what]) => `  ${one.padEnd(17)} ${what}`)
  .join('\n')
if (name === undefined || name === '--help') {
  console.log(`Usage: npm run example NAME -- [options]\n\nExamples:\n${list}\n\nWhat can be changed: npm run example NAME -- --help`)
} else if (!Object.hasOwn(EXAMPLES, name)) {
  console.error(`npm run example: there is no example '${name}'. There are:\n${list}\nTry: npm run example rl -- --help`)
  process.exitCode = 2
} else {
  await setupOrExit({ say: console.error })
  process.argv = [...process.argv.slice(0, 2), ...rest]
  await runApp(`apps/examples/dist/${name}/main.js`)
}
