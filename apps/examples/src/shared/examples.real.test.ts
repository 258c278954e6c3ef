/** The small examples as a user runs them, each in a process of its own. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { expectWellFormed, runScript } from './script.suite.js'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'examples-'))
})
afterAll(() => rm(folder, { recursive: true }))

const main = (name: string) => new URL(`../${name}/main.js`, import.meta.url)

/** A line of JSON for each step. */
async function expectLosses(log: string): Promise<void> {
  const lines = (await readFile(log, 'utf8')).trimEnd().split('\n')
  for (const line of lines) expect(Number.isFinite((JSON.parse(line) as { loss: unknown }).loss)).toBe(true)
}

test('design-note: gradients, and losses that fall by the learning rate', async () => {
  const { code, stdout, stderr } = await runScript(main('design-note'), [
    '--workers',
    '3',
    '--steps',
    '2',
    '--lr',
    '0.5',
    '--out',
    join(folder, 'note.svg'),
  ])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('t4, and its gradient (t1 + t2):')
  const [, first, second, third] = /^worker2 → worker0: loss ([\d.]+), ([-\d.]+), ([-\d.]+)$/m.exec(stdout)!.map(Number)
  expect(first! - second!).toBeCloseTo(9, 2)
  expect(second! - third!).toBeCloseTo(9, 2)
})

test.each([
  ['rnn', ['--epochs', '2', '--batches', '2', '--hidden', '8'], /loss of the first epoch \d\.\d+ nats a tone, of the last \d/],
  ['mlp', ['--steps', '3', '--layers', '2', '--points', '10'], /% of the points right/],
  [
    'pipeline',
    ['--steps', '2', '--layers', '2', '--batch', '8', '--width', '16', '--context', '8'],
    /idle in the last step: [\d.]+ % planned, [\d.]+ % measured/,
  ],
  ['parameter-server', ['--steps', '3', '--users', '500', '--batch', '16', '--mode', 'alone'], /loss in the beginning \d\.\d+, in the end/],
])('%s: what it says, and the picture', async (name, args, says) => {
  const out = join(folder, name, 'curve.svg')
  const { code, stdout, stderr } = await runScript(main(name), [...args, '--out', out])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(says)
  expectWellFormed(await readFile(out, 'utf8'))
  await expectLosses(join(folder, name, 'curve.jsonl'))
})

test.each([
  ['ddp', ['--epochs', '1', '--samples', '32'], /the replicas are alike/],
  ['ddp-hybrid', ['--steps', '3'], /the dense parts are alike/],
  ['ddp-elastic', ['--steps', '30', '--round-steps', '5', '--batch', '6'], /trainer0: \d+ rounds/],
])('%s: what it says, the picture and the log', async (name, args, says) => {
  const out = join(folder, name, 'curve.svg')
  const { code, stdout, stderr } = await runScript(main(name), [...args, '--out', out])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(says)
  expectWellFormed(await readFile(out, 'utf8'))
  await expectLosses(join(folder, name, 'curve.jsonl'))
})

test('Ctrl-C in the middle ends cleanly', async () => {
  const out = join(folder, 'interrupted.svg')
  let interrupted = false
  const { code, stderr } = await runScript(main('parameter-server'), ['--steps', '1000000', '--out', out], (text, kill) => {
    // Once: the second one would end it without ceremony.
    if (!interrupted && text.includes('step 1,')) kill('SIGINT')
    interrupted ||= text.includes('step 1,')
  })
  expect([code, stderr]).toEqual([130, '\nnpm run example parameter-server: interrupted; nothing was written\n'])
  await expect(readFile(out)).rejects.toThrow('ENOENT')
})

test('an option that is none', async () => {
  const { code, stdout, stderr } = await runScript(main('mlp'), ['--layer', '3'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/Unknown option '--layer'[\s\S]*Try: npm run example mlp -- --help/)
})
