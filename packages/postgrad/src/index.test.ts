/** This package passes on every public name of the packages below, each as it is: what is not here, users cannot reach. */
import { describe, expect, test } from '@jest/globals'
import * as postgrad from './index.js'
import * as testing from './testing.js'

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
] as const

describe('every public name', () => {
  test.each(BELOW)('of @postgrad/%s', async (name) => {
    const names = (await import(`@postgrad/${name}`)) as Record<string, unknown>
    const missing = Object.keys(names).filter((key) => (postgrad as Record<string, unknown>)[key] !== names[key])
    expect(missing).toEqual([])
  })

  test('of @postgrad/testing, through postgrad/testing', async () => {
    const names = (await import('@postgrad/testing')) as Record<string, unknown>
    expect(Object.keys(testing).sort()).toEqual(Object.keys(names).sort())
  })

  test('of this package', () => {
    expect(Object.keys(postgrad)).toEqual(expect.arrayContaining(['launch', 'reportProgress']))
    // Types only: `launch` makes them, from parts that nobody outside can have.
    for (const name of ['Cluster', 'Controller', 'WorkerRuntime']) expect(Object.keys(postgrad)).not.toContain(name)
  })
})
