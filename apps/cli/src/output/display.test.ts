/** What the displays and error texts say, without a process. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from 'postgrad'
import { errorText } from '../error-text.js'
import { progressText, type WorkerState } from './display.js'
import { JsonDisplay } from './json-display.js'
import { footLines, LiveDisplay, lineText } from './live-display.js'
import { PlainDisplay } from './plain-display.js'
import { WholeLines } from './whole-lines.js'

describe('progressText', () => {
  test.each([
    [{ done: 3 }, '3'],
    [{ done: 3, total: 10 }, '3/10 (30%)'],
    [{ done: 0, total: 0 }, '0/0'],
    [{ done: 3, total: 10, text: 'loss 2.1\n and more' }, '3/10 (30%) loss 2.1 and more'],
  ])('%j', (progress, text) => {
    expect(progressText(progress)).toBe(text)
  })
})

describe('lineText', () => {
  const line = { name: 'a', state: 'running', progress: { done: 1, total: 2, text: 'loss 2' } } as const

  test('aligns names and states, draws the bar where the total is known', () => {
    expect(lineText(line, 3, 120)).toBe(`a    running   ${'█'.repeat(12)}${'░'.repeat(12)} 1/2  loss 2`)
    expect(lineText({ ...line, progress: { done: 7 } }, 1, 120)).toBe('a  running   7')
    expect(lineText({ ...line, progress: null }, 1, 120)).toBe('a  running')
  })

  test('never exceeds the width, nor the bar its frame', () => {
    expect(lineText(line, 3, 20)).toHaveLength(20)
    expect(lineText({ ...line, progress: { done: 9, total: 2 } }, 1, 120)).toContain(`${'█'.repeat(24)} 9/2`)
  })
})

/** A terminal, as far as it is written to here: lines, a row that the cursor is in, what lies below erased. */
class Screen {
  readonly columns = 100
  readonly rows = 30
  readonly lines: string[] = []

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal is sent
    for (const [part, count] of text.matchAll(/\x1b\[(\d*)A|\x1b\[[^A-Za-z]*[A-Za-z]|\r|[^\n\x1b\r]*\n/g)) {
      if (count !== undefined) this.lines.splice(this.lines.length - Number(count))
      else if (part.endsWith('\n')) this.lines.push(part.slice(0, -1))
    }
  }
}

describe('LiveDisplay', () => {
  test('CLU-60 lines stand whole above the bars, whatever comes between their parts', () => {
    const screen = new Screen()
    const workers = ['a', 'b', 'c']
    const display = new LiveDisplay(screen, workers)
    const lines = new WholeLines((line, worker) => display.print(worker, 'stdout', line))
    const expected: string[] = []
    for (let i = 0; i < 20; i++) {
      for (const name of workers) lines.take(`${name} part one `, name)
      for (const name of workers) {
        lines.take(`and two of ${i}\n${name} a long`, name)
        expected.push(`${name} part one and two of ${i}`)
        display.progress(name, { done: i, total: 20 })
      }
      for (const name of workers) {
        lines.take(' line\n', name)
        expected.push(`${name} a long line`)
      }
    }
    lines.take('not ended', 'b')
    lines.flush()
    display.close()
    expect(screen.lines).toEqual([
      ...expected,
      'not ended',
      ...workers.map((name) => expect.stringMatching(`^${name}  starting  .* 19/20$`)),
    ])
  })

  test('a terminal that says it has no size is taken for one that has', () => {
    let text = ''
    const display = new LiveDisplay({ columns: 0, rows: 0, write: (piece) => (text += piece) }, ['a', 'b'])
    display.close()
    expect(text).toContain('b  starting')
  })

  test('shows as many workers as there is room for', () => {
    const lines = Array.from({ length: 40 }, (_, i) => ({ name: `w${i}`, state: 'running', progress: null }) as const)
    expect(footLines(lines, 3, 80, 30)).toHaveLength(30)
    expect(footLines(lines, 3, 80, 30).at(-1)).toBe('and 11 more workers')
    expect(footLines(lines.slice(0, 30), 3, 80, 30).at(-1)).toContain('w29')
  })
})

describe('PlainDisplay', () => {
  test('prints at most a line a second, the last report before the next state', () => {
    let nowMs = 0
    const lines: string[] = []
    const display = new PlainDisplay(
      (text) => lines.push(text),
      () => {},
      () => nowMs,
    )
    display.state('a', 'running')
    for (const [ms, done] of [
      [0, 1],
      [10, 2],
      [20, 3],
      [1000, 4],
      [1010, 5],
    ] as const) {
      nowMs = ms
      display.progress('a', { done })
    }
    display.state('a', 'done')
    display.close()
    expect(lines).toEqual(['[a] running\n', '[a] 1\n', '[a] 4\n', '[a] 5\n', '[a] done\n'])
  })
})

describe('CLI-23 a worker that stands still, and goes on', () => {
  test('plain: a line each', () => {
    const lines: string[] = []
    const display = new PlainDisplay(
      (text) => lines.push(text),
      () => {},
      () => 0,
    )
    display.progress('a', { done: 1 })
    display.progress('a', { done: 2 })
    display.stall('a', 10_004)
    display.stall('a', null)
    expect(lines).toEqual(['[a] 1\n', '[a] 2\n', '[a] stalled: no turn for 10 s\n', '[a] recovered\n'])
  })

  test('JSON: an event each', () => {
    const lines: string[] = []
    const display = new JsonDisplay(
      (text) => lines.push(text),
      () => 0,
    )
    display.stall('a', 10_004)
    display.stall('a', null)
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { time: '1970-01-01T00:00:00.000Z', worker: 'a', event: 'stalled', silentMs: 10_004 },
      { time: '1970-01-01T00:00:00.000Z', worker: 'a', event: 'recovered' },
    ])
  })

  test('on a terminal: in its line, until it goes on or ends; of a worker without a line, above', () => {
    const shown = (...change: ((display: LiveDisplay) => void)[]): readonly string[] => {
      const screen = new Screen()
      const display = new LiveDisplay(screen, ['a'])
      for (const one of change) one(display)
      display.close()
      return screen.lines
    }
    const stall = (name: string) => (display: LiveDisplay) => display.stall(name, 2000)
    const state = (to: WorkerState) => (display: LiveDisplay) => display.state('a', to)
    expect(shown(state('running'), stall('a'))).toEqual(['a  stalled'])
    expect(shown(state('done'), stall('a'), (display) => display.stall('a', null))).toEqual(['a  done'])
    expect(shown(stall('a'), state('died'))).toEqual(['a  died'])
    expect(shown(stall('b'), (display) => display.stall('b', null))).toEqual([
      '[b] stalled: no turn for 2 s',
      '[b] recovered',
      'a  starting',
    ])
  })
})

describe('errorText', () => {
  test('says where, what, code, causes', () => {
    const error = new PostgradError('SOME_CODE', { op: 'call', message: 'it broke', remedy: 'Mend it.', cause: new TypeError('inner') })
    const text = errorText(error, "worker 'a'")
    expect(text).toMatch(/^postgrad: worker 'a' failed: call: it broke\. Mend it\.\n {2}code: SOME_CODE\n {2}caused by: TypeError: inner\n/)
    expect(text).toContain('display.test')
    expect(errorText(new PostgradError('SOME_CODE', { op: 'launch', message: 'typed, from here' }), null)).not.toContain('stack')
  })

  test('says nothing twice, and shows none of its own insides', () => {
    const refused = new PostgradError('AUTH_FAILED', { op: 'connect', message: 'the proof is not that of its key' })
    const whole = new PostgradError('AUTH_FAILED', {
      op: 'connect',
      message: `no connection: AUTH_FAILED, ${refused.message.slice('connect: '.length)}`,
      cause: refused,
    })
    expect(errorText(whole, null)).toBe(
      "postgrad: connect: no connection: AUTH_FAILED, the proof is not that of its key.\n  code: AUTH_FAILED\n  cause's code: AUTH_FAILED\n  more: npx postgrad explain AUTH_FAILED\n",
    )
    let missing: unknown
    try {
      readFileSync('/nowhere/cluster.key')
    } catch (error) {
      missing = error
    }
    const unread = new PostgradError('KEY_FILE_UNREADABLE', { op: 'key file', message: 'it cannot be read', cause: missing })
    expect(errorText(unread, null)).not.toContain('stack')
    // What a program has met is its own.
    expect(errorText(missing, "worker 'a'")).toContain('stack')
  })

  test('a stack ends with the program: who has called it says nothing', () => {
    const library = 'at async Member.run (/app/node_modules/postgrad/dist/library.cjs:7286:32)'
    const thrower = 'at pack (/app/node_modules/postgrad/dist/library.cjs:12:3)'
    const main = 'at async main (file:///app/program.ts:20:62)'
    const callers = [library, 'at async ofMain (file:///app/node_modules/postgrad/dist/cli/run/run-member.js:1:2)', 'at node:events:1:2']
    const framesOf = (error: Error, stack: readonly string[]): string[] => {
      error.stack = `${error.name}: x\n    ${stack.join('\n    ')}`
      return errorText(error, 'main')
        .split('\n')
        .filter((line) => line.startsWith('    '))
        .map((line) => line.trim())
    }
    expect(framesOf(new RangeError('x'), [thrower, main, ...callers])).toEqual([thrower, main])
    expect(framesOf(new RangeError('x'), [thrower, library])).toEqual([thrower, library])
    const remote = Object.assign(new PostgradError('SOME_CODE', { op: 'call', message: 'x' }), {
      remoteStack: `Error: x\n${thrower}\n${library}`,
    })
    expect(framesOf(remote, [])).toEqual([])
    const [second, first] = ["--- above: on worker 'worker2' ---", "--- above: on worker 'worker1' ---"]
    const passed = [thrower, main, library, second, library, first, main, ...callers]
    expect(framesOf(new RangeError('x'), passed)).toEqual([thrower, main, second, first, main])
  })

  test('takes anything that can be thrown', () => {
    for (const thrown of ['text', 7, null, undefined, {}, new Error('x', { cause: null })])
      expect(errorText(thrown, null)).toMatch(/^postgrad: /)
  })
})
