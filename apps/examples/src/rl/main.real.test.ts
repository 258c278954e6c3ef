/** The example as a user runs it, in a process of its own, small; and its program on threads when an observer is killed. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { type End, expectWellFormed, runScript } from '../shared/script.suite.js'
import { batchedEpisode } from './batched.js'
import { episode } from './program.js'
import { readSettings } from './settings.js'

let folder = ''
let out = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rl-'))
  out = join(folder, 'new', 'curve.svg')
})
afterAll(() => rm(folder, { recursive: true }))

const main = (args: readonly string[], onOutput?: Parameters<typeof runScript>[2]): Promise<End> =>
  runScript(new URL('./main.js', import.meta.url), args, onOutput)

test.each(['reinforce', 'batched', 'actor-critic'])('%s: a few episodes, and the picture', async (variant) => {
  const { code, stdout, stderr } = await main(['--variant', variant, '--observers', '2', '--episodes', '4', '--out', out])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/not solved: running reward \d+\.\d after 4 episodes, \d+ steps in/)
  const picture = await readFile(out, 'utf8')
  expectWellFormed(picture)
  expect(picture).toContain('2 observers · 4 episodes')
})

test('it ends when the target is reached', async () => {
  const { code, stdout } = await main(['--variant', 'actor-critic', '--observers', '2', '--target', '11', '--out', out])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^solved: running reward 1\d\.\d/m)
})

test('Ctrl-C in the middle ends cleanly, and the curve so far is written', async () => {
  await rm(out, { force: true })
  let interrupted = false
  const { code, stdout, stderr } = await main(['--observers', '2', '--out', out], (text, kill) => {
    // Once: the second one would end it without ceremony.
    if (!interrupted && text.includes('episode 1:')) kill('SIGINT')
    interrupted ||= text.includes('episode 1:')
  })
  expect(code).toBe(130)
  expect(stderr).toBe('\nnpm run example rl: interrupted; the curve so far was written\n')
  expect(stdout).toContain('not solved: running reward')
  expectWellFormed(await readFile(out, 'utf8'))
})

describe('npm run example', () => {
  const example = (...args: string[]): Promise<End> => runScript(new URL('../../../../scripts/example.mjs', import.meta.url), args)

  test.each([[[]], [['--help']]])('%j lists the examples', async (args) => {
    const { code, stdout } = await example(...args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ {2}rl {16}an agent learns/m)
    for (const name of ['char-lm', 'design-note', 'mlp', 'parameter-server', 'rnn'])
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'))
  })

  test('a name that is none', async () => {
    const { code, stderr } = await example('chess')
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/there is no example 'chess'\. There are:\n {2}char-lm [\s\S]*Try: npm run example rl -- --help/),
    ])
  })
})

describe('what the user can mend', () => {
  test('--help', async () => {
    const { code, stdout } = await main(['--help'])
    expect(code).toBe(0)
    for (const option of ['variant', 'observers', 'seed', 'episodes', 'target', 'out']) expect(stdout).toContain(`--${option}`)
  })

  test.each([
    [['--variant', 'dqn'], "--variant: expected one of reinforce, batched, actor-critic, got 'dqn'"],
    [['--observers', '0'], "--observers: expected a whole number from 1 to 256, got '0'"],
    [['--observers', 'many'], "--observers: expected a whole number from 1 to 256, got 'many'"],
    [['--target', '500'], '--target: expected a number from 0 to below 500'],
    [['--episodes', '-1'], '--episodes'],
  ])('%j', (args, message) => {
    expect(() => readSettings(args)).toThrow(message)
  })

  test('it is told on stderr, with the way to the help', async () => {
    const { code, stdout, stderr } = await main(['--observer', '3'])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain("Unknown option '--observer'")
    expect(stderr).toContain('Try: npm run example rl -- --help')
  })

  test('a folder as --out', async () => {
    const { code, stderr } = await main(['--out', folder])
    expect([code, stderr]).toEqual([1, expect.stringContaining('is a folder. Name a file in it.')])
  })
})

test.each([false, true])('an observer that is killed is left out, the others go on (batched: %p)', async (batched) => {
  const observers = ['observer1', 'observer2', 'observer3']
  await using cluster = await launch(new URL(batched ? './batched.js' : './program.js', import.meta.url), {
    workers: ['agent', ...observers],
    referenceLeaks: 'ignore',
  })
  cluster.onWorkerDeath(() => {})
  const team = { observers, seed: 1 }
  const play = batched ? batchedEpisode : episode
  const agent = cluster.on('agent')
  expect((await agent.run(play, team)).rewards).toHaveLength(3)
  const [next] = await Promise.all([agent.run(play, team), cluster.kill('observer2')])
  // It may have finished that one before.
  const after = await agent.run(play, team)
  expect([...next.lost, ...after.lost]).toEqual(['observer2'])
  expect(after.rewards).toHaveLength(2)
})
