/** A program that starts threads which load it again: refused while it is loaded, allowed if `isMainThread` guards it and in later calls. */
import { expect, test } from '@jest/globals'
import { script } from '@postgrad/cluster/suite'

const data = new URL('../fixtures/one-file-data.js', import.meta.url)
const run = (way: string) => script(new URL('../fixtures/one-file.js', import.meta.url), way)

test('CLU-55: a program that launches itself while it is loaded fails the launch with the two lines to write, and no thread is left', async () => {
  const { code, out, err } = await run('awaited')
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/LAUNCH_FAILED[\s\S]*THREADS_WHILE_LOADING/)
  expect(err).toContain("import { isMainThread } from 'node:worker_threads'\n  if (isMainThread) await main() // which calls launch\n")
})

test('CLU-55: also if the program catches it', async () => {
  const { code, out, err } = await run('caught')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const lines = out.trim().split('\n')
  expect(lines.slice(0, -1)).toEqual(lines.slice(0, -1).fill('worker: THREADS_WHILE_LOADING'))
  expect(lines.at(-1)).toBe('LAUNCH_FAILED THREADS_WHILE_LOADING')
})

test('CLU-55: what its top level has set going counts as well, whenever it comes to it', async () => {
  const { code, out } = await run('later')
  expect(code).toBe(0)
  const lines = out.trim().split('\n')
  expect(lines).toContain('8')
  expect(lines.filter((line) => line !== '8')).toEqual(lines.slice(1).fill('worker: THREADS_WHILE_LOADING'))
})

test('CLU-55: jobs on their own file fail with it', async () => {
  const { code, out, err } = await run('jobs')
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toContain('THREADS_WHILE_LOADING')
  expect(err).toContain('which calls jobs')
})

test('CLU-55: a DataLoader in the file of its dataset', async () => {
  const { code, out, err } = await script(data, 'bare')
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/DATASET_FAILED[\s\S]*THREADS_WHILE_LOADING/)
  expect(err).toContain('which calls workerDataset')
})

test('CLU-55: a script behind isMainThread may await the dataset that it exports itself', async () => {
  expect(await script(data)).toEqual({ code: 0, out: 'tensor([1., 2., 3.])\n', err: '' })
})

test('CLU-59: a dataset that is named in the file whose top level awaits it is an error, where Node would end without a word', async () => {
  const { code, out, err } = await script(data, 'named')
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/DATASET_FAILED[\s\S]*MODULE_NEVER_LOADED/)
  expect(err).toContain('one-file-data.js awaits the import of this module itself')
})

test('CLU-55: behind isMainThread one file is enough', async () => {
  expect(await run('guarded')).toEqual({ code: 0, out: '8\n', err: '' })
})

test('CLU-55: a function that is called later may launch a cluster, of the same program too', async () => {
  expect(await run('grandchild')).toEqual({ code: 0, out: '8\n', err: '' })
})
