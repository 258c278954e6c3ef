/** Programs given by `node -e`: Node takes its flag --input-type only for such text, but threads inherit the flag. */
import { spawnSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

const BASICS = new URL('../fixtures/basics.js', import.meta.url)

test.each([
  [['--input-type=module'], {}],
  [['--input-type', 'commonjs'], {}],
  [[], { NODE_OPTIONS: '--input-type=module' }],
])('CLU-111: a program by node %j -e launches threads, with %j', (flags, options) => {
  const program = `import(${JSON.stringify(new URL('../index.js', import.meta.url).href)}).then(async ({ launch }) => {
    const { whoAmI } = await import(${JSON.stringify(BASICS.href)})
    const cluster = await launch(${JSON.stringify(BASICS.href)}, { workers: 1 })
    console.log(await cluster.on('worker0').run(whoAmI))
    await cluster.close()
  })`
  const { NODE_OPTIONS: _, ...env } = process.env
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program], {
    env: { ...env, ...options },
    timeout: 30_000,
    encoding: 'utf8',
  })
  expect([stdout, stderr]).toEqual(['worker0\n', ''])
})
