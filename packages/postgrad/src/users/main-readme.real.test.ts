/** The guide's program of a main thread that calls: the guide has exactly this text, and its process ends by itself. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { script } from '@postgrad/cluster/suite'

const sources = new URL('../../src/', import.meta.url)

test.each(['policy', 'run-policy'])('the guide shows %s.ts', (name) => {
  const program = readFileSync(new URL(`fixtures/${name}.ts`, sources), 'utf8')
    .replace("'../index.js'", "'postgrad'")
    .replace(/'\.\.\/(\w+)\.js'/g, "'postgrad/$1'")
  const page = readFileSync(new URL('../../../docs/guide/main-thread.md', sources), 'utf8')
  expect(page).toContain(`\`\`\`ts\n${program}\`\`\`\n`)
})

test('CLU-75 CLU-76 CLU-82: it runs, ends by itself and warns of nothing', async () => {
  const { code, out, err } = await script(new URL('../fixtures/run-policy.js', import.meta.url))
  expect({ code, out, err }).toEqual({ code: 0, out: 'probabilities [ 1, 2 ]\ngradient [ 1, 4 ]\n', err: '' })
})
