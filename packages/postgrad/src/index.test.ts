/** The doors pass on every public name of the packages below, unchanged. Names in none of them are not public. */
import { describe, expect, test } from '@jest/globals'
import * as data from './data.js'
import * as distributed from './distributed.js'
import * as index from './index.js'
import * as jobs from './jobs.js'
import * as nn from './nn.js'
import * as functional from './nn-functional.js'
import * as optim from './optim.js'
import * as pipelining from './pipelining.js'
import * as testing from './testing.js'
import * as training from './training.js'

const DOORS: readonly Readonly<Record<string, unknown>>[] = [index, nn, functional, optim, data, jobs, pipelining, training]
/** Collectives have names that functions of tensors have, too. */
const ALL = [...DOORS, distributed as Readonly<Record<string, unknown>>]
const BELOW = [
  'base',
  'tensor',
  'autograd',
  'nn',
  'data',
  'transport',
  'wire',
  'sim',
  'rpc',
  'dist-autograd',
  'parallel',
  'cluster',
  'jobs',
  'training',
] as const
/** Two of one name: the function of tensors, which records, goes before. */
const HIDDEN: readonly string[] = []

describe('every public name', () => {
  test.each(BELOW)('of @postgrad/%s is in a door', async (name) => {
    const names = (await import(`@postgrad/${name}`)) as Record<string, unknown>
    const missing = Object.keys(names).filter((key) => !ALL.some((door) => door[key] === names[key]))
    expect(missing).toEqual(HIDDEN)
  })

  test('of @postgrad/testing, through postgrad/testing', async () => {
    const names = (await import('@postgrad/testing')) as Record<string, unknown>
    expect(Object.keys(testing).sort()).toEqual(Object.keys(names).sort())
  })

  test('of this package', () => {
    expect(Object.keys(index)).toEqual(expect.arrayContaining(['launch', 'reportProgress']))
    // Types only: `launch` makes them, from parts that nobody outside can have.
    for (const door of DOORS) for (const name of ['Cluster', 'Controller', 'WorkerRuntime']) expect(Object.keys(door)).not.toContain(name)
  })

  test('each loss is in functional and at the root', () => {
    const losses = Object.keys(functional).filter((name) => /Loss$|^(?:bceWithLogits|crossEntropy|klDiv)$/.test(name))
    expect(losses).toEqual(expect.arrayContaining(['crossEntropy', 'mseLoss', 'smoothL1Loss']))
    expect(losses.filter((name) => !(name in index))).toEqual([])
  })

  test('a name in two doors is one value', () => {
    // `init` of postgrad/nn is PyTorch's `nn.init`, that of the root makes this process a worker.
    for (const door of DOORS)
      for (const [name, value] of Object.entries(door))
        if (name in index && name !== 'init') expect([name, (index as Record<string, unknown>)[name] === value]).toEqual([name, true])
  })
})
