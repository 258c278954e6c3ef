/** docs/pytorch.md, which `npm run pytorch` writes, agrees with today's exports. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import * as data from './data.js'
import * as distributed from './distributed.js'
import * as index from './index.js'
import * as nn from './nn.js'
import * as functional from './nn-functional.js'
import * as optim from './optim.js'

const ours = { ...index, ...nn, ...functional, ...optim, ...data }

/** Kinds whose names mean something else elsewhere. */
const OWN: Readonly<Record<string, object>> = {
  'torch.nn': { ...ours, ...distributed },
  'torch.nn.init': ours.init,
  'torch.nn.utils': nn,
  'torch.distributed': { ...distributed, PrefixStore: index.PrefixStore },
  'torch.nn.parallel': { ...ours, ...distributed },
  'torch.distributed.optim': { ...ours, ...distributed },
}

const page = readFileSync(new URL('../../../docs/pytorch.md', import.meta.url), 'utf8')
const rows = [...page.matchAll(/^\| (torch[\w.]*): (\d+) of (\d+) \| (.*) \| (.*) \|$/gm)]
const TYPES = ['Dataset', 'IterableDataset', 'Sampler'] // interfaces

const camelCase = (name: string) => name.replace(/(?<=[a-z0-9])_(?=[a-z0-9])/g, '\0').replace(/\0(.)/g, (_, letter) => letter.toUpperCase())
/** `a` → `b` counts as b. */
const namesOf = (cell: string) => [...cell.matchAll(/`(\w+)`(?: → `(\w+)`)?/g)].map(([, name, other]) => camelCase(other ?? name!))
const isHere = (kind: string, name: string) =>
  TYPES.includes(name) || name in (OWN[kind] ?? ours) || (OWN[kind] === undefined && name in ours.Tensor.prototype)

test('what the page says is here is exported or a method, and nothing else is', () => {
  expect(rows.length).toBeGreaterThan(8)
  for (const [, kind, count, all, here, not] of rows) {
    expect(namesOf(here!).filter((name) => !isHere(kind!, name))).toEqual([])
    expect(namesOf(not!).filter((name) => isHere(kind!, name))).toEqual([])
    expect([namesOf(here!).length, namesOf(here!).length + namesOf(not!).length]).toEqual([Number(count), Number(all)])
  }
})

test('each function of torch.nn.functional that is here is in postgrad/nn/functional', () => {
  const [, , , , here] = rows.find(([, kind]) => kind === 'torch.nn.functional')!
  expect(namesOf(here!).filter((name) => !(name in functional))).toEqual([])
})
