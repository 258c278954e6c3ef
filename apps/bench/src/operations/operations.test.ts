/** The rows of operations: PyTorch's have the same names, each does its work, and the summary counts. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { summary } from './operations.js'
import { operationRows } from './rows.js'

const rows = new Map(operationRows())

/** The names in the script: of `row`, `both`, `plain` and `ROWS[…]`, without what their sizes add. */
function torchNames(): Set<string> {
  const text = readFileSync(new URL('../../python/operations.py', import.meta.url), 'utf8')
  return new Set([...text.matchAll(/(?:row|both|plain)\("([^"{]+)"|ROWS\["([^"]+)"\]/g)].map(([, a, b]) => (a ?? b)!))
}

const base = (name: string) => name.replace(/ (forward|backward|both)$/, '').replace(/ (1000|1000000)$/, '')

test('each row has one of PyTorch under its name, and the other way round', () => {
  const ours = new Set([...rows.keys()].filter((name) => !/^matmul \d/.test(name)).map(base))
  const torch = new Set([...torchNames()].map(base))
  expect([...ours].filter((name) => !torch.has(name))).toEqual([])
  expect([...torch].filter((name) => !ours.has(name))).toEqual([])
})

test.each([...rows.keys()].filter((name) => !name.endsWith(' 1000000')))('%s does its work', (name) => {
  expect(() => rows.get(name)!()).not.toThrow()
})

test('the summary has the median ratio of each peer, and how many rows are slower and faster', () => {
  const row = (ours: number, torch: number | null) => ({ name: '', ours, torch, narrow: null, tfjs: null, jax: null })
  expect(summary([row(1, 2), row(3, 1), row(5, 2), row(7, null)])).toEqual([
    'PyTorch: 3 rows, median ratio 2.50, over 2: 2, faster than it: 1',
  ])
})
