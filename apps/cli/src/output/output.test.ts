/** Prefixes, colours, JSON lines, last lines and their streams, without a process. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from 'postgrad'
import { surroundings } from '../surroundings.fixture.js'
import { LAST_LINES, LastLines } from './last-lines.js'
import { Prefix, showsColour } from './prefix.js'
import { Screen } from './screen.js'

describe('colours', () => {
  test.each<[boolean | undefined, boolean, Record<string, string>, boolean]>([
    [undefined, true, {}, true],
    [undefined, false, {}, false],
    [undefined, true, { NO_COLOR: '1' }, false],
    [undefined, true, { NO_COLOR: '' }, true],
    [undefined, true, { TERM: 'dumb' }, false],
    [undefined, false, { FORCE_COLOR: '1' }, true],
    [undefined, true, { FORCE_COLOR: '0' }, false],
    [undefined, true, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
    [true, false, { NO_COLOR: '1' }, true],
    [false, true, { FORCE_COLOR: '1' }, false],
  ])('CLI-20 --color %s, terminal %s, %j: %s', (flag, isTerminal, env, shown) => {
    expect(showsColour(flag, isTerminal, env)).toBe(shown)
  })

  test('CLI-20 workers beside each other have other colours, none is red', () => {
    const names = Array.from({ length: 30 }, (_, i) => `w${i}`)
    const coloured = new Prefix(names, true)
    const texts = names.map((name) => coloured.before(name))
    const colours = texts.map((text) => text.slice(0, text.indexOf('[w')))
    for (let i = 1; i < colours.length; i++) expect(colours[i]).not.toBe(colours[i - 1])
    expect(colours.some((text) => text.includes('31') || text.includes('91'))).toBe(false)
    expect(new Prefix(names, false).before('w3')).toBe('[w3] ')
  })
})

test('CLI-22 the last twenty lines of each, long ones cut', () => {
  const lines = new LastLines()
  for (let i = 0; i < 50; i++) lines.add('a', `line ${i}`)
  lines.add('b', 'x'.repeat(10_000))
  expect(lines.of('a')).toEqual(Array.from({ length: LAST_LINES }, (_, i) => `line ${30 + i}`))
  expect(lines.of('b')[0]).toHaveLength(401)
  expect(lines.of('c')).toEqual([])
})

describe('Screen', () => {
  test('CLI-20 prefixes lines of both streams where several processes are, and what was begun', () => {
    const around = surroundings()
    const screen = new Screen({}, ['a', 'b'], around, { hasPrefix: true, isShared: false })
    screen.sinks!.stdout('one\ntw', 'a')
    screen.sinks!.stderr('bad\n', 'b')
    screen.sinks!.stdout('o', 'a')
    screen.end()
    screen.end()
    expect([around.out(), around.err()]).toEqual(['[a] one\n[a] two\n', '[b] bad\n'])
  })

  test('CLI-20 none for threads, unless asked for; a single worker passes byte by byte', () => {
    for (const [prefix, text] of [
      [undefined, 'one\n'],
      [true, '[a] one\n'],
    ] as const) {
      const around = surroundings()
      const screen = new Screen(prefix === undefined ? {} : { prefix }, ['a', 'b'], around, { hasPrefix: false, isShared: false })
      screen.sinks!.stdout('one\n', 'a')
      screen.end()
      expect(around.out()).toBe(text)
    }
    expect(new Screen({}, ['a'], surroundings(), { hasPrefix: false, isShared: false }).sinks).toBeNull()
    expect(new Screen({ prefix: true }, ['a'], surroundings(), { hasPrefix: false, isShared: false }).sinks).not.toBeNull()
    expect(new Screen({ output: 'json' }, ['a'], surroundings(), { hasPrefix: false, isShared: false }).sinks).not.toBeNull()
  })

  test('CLI-20 on a terminal prefixes are coloured, and what is not in the terminal is not', () => {
    const around = surroundings({ terminal: 'stdout', env: { TERM: 'xterm' } })
    const screen = new Screen({}, ['a', 'b'], around, { hasPrefix: true, isShared: false })
    screen.sinks!.stdout('one\n', 'a')
    screen.sinks!.stderr('bad\n', 'b')
    screen.end()
    expect(around.out()).toContain('\x1b[36m[a]\x1b[0m one\n')
    expect(around.err()).toBe('[b] bad\n')
  })

  test('CLI-20 one of several processes draws nothing again on a terminal that the others write to', () => {
    const around = surroundings({ terminal: 'stdout', env: { TERM: 'xterm' } })
    const screen = new Screen({}, ['a'], around, { hasPrefix: true, isShared: true })
    screen.display.state('a', 'running')
    screen.sinks!.stdout('one\n', 'a')
    screen.display.state('a', 'done')
    screen.end()
    expect([around.out(), around.err()]).toEqual(['\x1b[36m[a]\x1b[0m one\n', '[a] running\n[a] done\n'])
  })

  test('CLI-21 lines of JSON: output with its stream, states, progress, the end', () => {
    const around = surroundings()
    const screen = new Screen({ output: 'json' }, ['a', 'b'], around, { hasPrefix: true, isShared: false })
    const { display } = screen
    display.state('a', 'starting')
    display.state('a', 'running')
    screen.sinks!.stdout('say "hi"\n\n', 'a')
    screen.sinks!.stderr('bad', 'b')
    display.progress('a', { done: 1, total: 2, text: 'half' })
    display.state('a', 'done')
    display.state('b', 'died')
    display.note('a word')
    screen.end()
    display.failure('b', new PostgradError('WORKER_DIED', { op: 'run', message: 'it died', values: { worker: 'b' } }), ['bad'])
    display.failure(null, 'thrown', [])
    const time = new Date(around.wallMs()).toISOString()
    expect(
      around
        .out()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(
      [
        { worker: 'a', event: 'started' },
        { worker: 'a', stream: 'stdout', text: 'say "hi"' },
        { worker: 'a', stream: 'stdout', text: '' },
        { worker: 'a', event: 'progress', done: 1, total: 2, text: 'half' },
        { worker: 'a', event: 'done' },
        { worker: 'b', event: 'died' },
        { worker: null, event: 'note', text: 'a word' },
        { worker: 'b', stream: 'stderr', text: 'bad' },
        { worker: 'b', event: 'failure', message: 'run: it died.', code: 'WORKER_DIED', values: { worker: 'b' }, lastLines: ['bad'] },
        { worker: null, event: 'failure', message: 'thrown' },
      ].map((line) => ({ time, ...line })),
    )
    expect(around.err()).toBe('')
  })

  test('CLI-22 last lines stand in the report, after the stack', () => {
    const around = surroundings()
    const screen = new Screen({}, ['a', 'b'], around, { hasPrefix: true, isShared: false })
    screen.end()
    screen.display.failure('a', new PostgradError('WORKER_DIED', { op: 'run', message: 'it died' }), ['one', 'two'])
    expect(around.err()).toBe(
      "postgrad: worker 'a' failed: run: it died.\n  code: WORKER_DIED\n  its last lines:\n    one\n    two\n  more: npx postgrad explain WORKER_DIED\n",
    )
  })
})
