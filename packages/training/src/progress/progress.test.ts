/** Progress bars on a terminal and elsewhere, with a clock of the test. */
import { expect, test } from '@jest/globals'
import { ProgressBar, type ProgressBarOptions, type ProgressStream, progress } from './progress-bar.js'
import { barText, lineText, metricsText, type Shown } from './text.js'

function streamOf(isTTY: boolean, columns = 80): ProgressStream & { readonly written: string[] } {
  const written: string[] = []
  return { isTTY, columns, written, write: (text: string) => written.push(text) }
}

/** A clock, and a bar that it drives. */
function barOf(isTTY: boolean, options: ProgressBarOptions = {}) {
  let ms = 0
  const stream = streamOf(isTTY)
  const bar = new ProgressBar({ stream, now: () => ms, ...options })
  const pass = (by: number): void => {
    ms += by
  }
  return { bar, pass, written: stream.written }
}

const SHOWN: Shown = { label: 'epoch 1', done: 42, total: 100, unit: 'it', seconds: 10, rate: 4.2, postfix: 'loss 0.3125' }

test('TR-20 a line of the terminal', () => {
  expect(barText(SHOWN, 79)).toBe('epoch 1  42% ████████▊            | 42/100 [00:10<00:14, 4.20 it/s] loss 0.3125')
  expect(barText({ ...SHOWN, total: null }, 79)).toBe('epoch 1 42 it [00:10, 4.20 it/s] loss 0.3125')
  expect(barText({ ...SHOWN, rate: null, label: '', postfix: '' }, 60)).toBe(' 42% ██████████              | 42/100 [00:10]')
  expect(barText({ ...SHOWN, seconds: 3725, rate: 0.25 }, 90)).toContain('[1:02:05<03:52, 4.00 s/it]')
  expect(barText({ ...SHOWN, done: 0, total: 0 }, 79)).toContain('100% ')
  for (let columns = 1; columns < 100; columns++) expect(barText(SHOWN, columns).length).toBeLessThanOrEqual(columns)
  expect(metricsText({ loss: 0.123456, step: 120_000, phase: 'warm' })).toBe('loss 0.1235, step 120000, phase warm')
})

test('TR-20 wide characters count as two columns, accents as none, and line breaks become spaces', () => {
  const wide: Shown = { ...SHOWN, label: '訓練', postfix: '損失 0.31 한글 🚀 e\u0301' }
  const columnsOf = (text: string) => text.replaceAll(/[訓練損失한글🚀]/gu, 'xx').replaceAll('\u0301', '').length
  for (let columns = 1; columns < 100; columns++) expect(columnsOf(barText(wide, columns))).toBeLessThanOrEqual(columns)
  expect(columnsOf(barText(wide, 79))).toBe(79)
  const broken = { ...SHOWN, label: 'a\r\nb', postfix: 'c\td\ne\u2028f' }
  expect(barText(broken, 79)).toMatch(/^a {2}b .* c d e f$/)
  expect(lineText(broken)).toMatch(/^a {2}b 42%: c d e f \(/)
})

test('TR-20 a terminal is drawn at most every 100 ms, and in the end', () => {
  const { bar, pass, written } = barOf(true, { total: 1000, label: 'x' })
  for (let i = 0; i < 1000; i++) {
    pass(1)
    bar.update()
  }
  bar.close()
  bar.close()
  bar.update()
  expect(written.length).toBe(12)
  expect(written.every((text, i) => text.startsWith('\r\u001b[K') || i === 11)).toBe(true)
  expect(written.at(-2)).toContain('1000/1000 [00:01<00:00, 1000 it/s]')
  expect(written.at(-1)).toBe('\n')
})

test('TR-20 a terminal that does not know its width, or says 0, counts as 80 columns', () => {
  for (const columns of [0, undefined]) {
    const written: string[] = []
    const size = columns === undefined ? {} : { columns }
    const bar = new ProgressBar({ total: 2, stream: { isTTY: true, ...size, write: (text) => written.push(text) } })
    bar.update()
    expect(written[0]).toContain(' 50% ')
  }
})

test('TR-20 the rate follows the last second; text above the bar leaves it whole', () => {
  const { bar, pass, written } = barOf(true, { total: 100 })
  for (const ms of [1000, 1000, 1000, 100, 100, 100, 100, 100, 100, 100, 100]) {
    pass(ms)
    bar.update()
  }
  expect(Number(/([\d.]+) it\/s/.exec(written.at(-1)!)![1])).toBeGreaterThan(8)
  bar.write('a line')
  expect(written.at(-1)!.split('\n')).toEqual(['\r\u001b[Ka line', expect.stringMatching(/^ 11% /)])
})

test('TR-21 elsewhere there are lines with growing pauses, and the last state', () => {
  const { bar, pass, written } = barOf(false, { total: 300, label: 'training', lineMs: 2000 })
  const at: number[] = []
  for (let i = 1; i <= 300; i++) {
    pass(100)
    bar.postfix({ loss: 1 / i })
    const before = written.length
    bar.update()
    if (written.length > before) at.push(i)
  }
  bar.close()
  // 0.5, 1, 2, 2 … s apart.
  expect(at.slice(0, 5)).toEqual([1, 6, 16, 36, 56])
  expect(written[1]).toBe('training 2%: loss 0.1667 (6/300, 10.0 it/s, 00:29 left)\n')
  expect(written.at(-1)).toBe('training 100%: loss 0.003333 (300/300, 10.0 it/s, 00:00 left)\n')
  expect(lineText({ ...SHOWN, rate: null })).toBe('epoch 1 42%: loss 0.3125')
  expect(lineText({ ...SHOWN, total: null, postfix: '' })).toBe('epoch 1 42 it (4.20 it/s)')
})

test('TR-21 reports of a cluster are shown', () => {
  const { bar, pass, written } = barOf(false, { label: 'training', rate: false })
  bar.show({ done: 1, total: 4, text: 'loss 3' })
  pass(10)
  bar.show({ done: 4 })
  bar.close()
  expect(written).toEqual(['training 25%: loss 3\n', 'training 100%: loss 3\n'])
})

test('TR-21 the last line comes once, also if it was just drawn', () => {
  const { bar, pass, written } = barOf(false)
  bar.update()
  pass(1000)
  bar.update(9)
  pass(1000)
  bar.close()
  expect(written).toEqual(['1 it\n', '10 it (10.0 it/s)\n'])
})

test('TR-23 units that were done before do not count for the rate', () => {
  const { bar, pass, written } = barOf(false, { total: 100, initial: 80 })
  pass(1000)
  bar.update(10)
  pass(1000)
  bar.update(10)
  bar.close()
  expect(written).toEqual(['90% (90/100, 10.0 it/s, 00:01 left)\n', '100% (100/100, 10.0 it/s, 00:00 left)\n'])
})

test('TR-23 a complete bar ends its line, and a later report begins one', () => {
  const { bar, written } = barOf(true, { total: 2, rate: false })
  bar.show({ done: 1 })
  bar.show({ done: 2 })
  expect(written.at(-1)).toBe('\n')
  bar.write('between')
  expect(written.at(-1)).toBe('between\n')
  const { length } = written
  bar.show({ done: 2 })
  bar.close()
  expect(written).toHaveLength(length)
  const next = barOf(true, { total: 2 })
  next.bar.show({ done: 2 })
  next.bar.show({ done: 2, text: 'saved' })
  next.pass(100)
  next.bar.show({ done: 1, total: 4 })
  next.bar.close()
  expect(next.written.filter((text) => text === '\n')).toHaveLength(2)
  expect(next.written.at(-2)).toContain('1/4')
})

test('TR-22 a loop gives every item, and its length is the total', async () => {
  const stream = streamOf(false)
  const seen: number[] = []
  for await (const each of progress([1, 2, 3], { stream })) seen.push(each)
  async function* later() {
    yield 4
    yield 5
  }
  for await (const each of progress(later(), { stream, label: 'later' })) seen.push(each)
  expect(seen).toEqual([1, 2, 3, 4, 5])
  expect(stream.written.some((text) => text.startsWith('100% '))).toBe(true)
  expect(stream.written.at(-1)).toMatch(/^later 2 it/)
})

test('TR-22 a loop that ends early ends its bar and its iterable', async () => {
  const stream = streamOf(true)
  const ended: string[] = []
  async function* items() {
    try {
      for (;;) yield 1
    } finally {
      ended.push('items')
    }
  }
  for await (const _ of progress(items(), { stream })) if (stream.written.length > 0) break
  expect(ended).toEqual(['items'])
  expect(stream.written.at(-1)).toBe('\n')
  const throwing = async () => {
    for await (const _ of progress(items(), { stream })) throw new RangeError('mine')
  }
  await expect(throwing()).rejects.toThrow('mine')
  expect(ended).toEqual(['items', 'items'])
})

test('TR-22 a bar that showed nothing leaves nothing', () => {
  const { bar, written } = barOf(true)
  bar.close()
  expect(written).toEqual([])
})

test('TR-8 wrong arguments of bars', () => {
  const { bar } = barOf(true)
  const wrong: (() => unknown)[] = [
    () => progress(5 as never),
    () => new ProgressBar({ totals: 5 } as never),
    () => new ProgressBar({ total: -1 }),
    () => new ProgressBar({ stream: streamOf(true) }).update(Number.NaN),
    () => progress([1], null as never),
    () => new ProgressBar({ now: 5 as never }),
    () => new ProgressBar({ stream: {} as never }),
    () => new ProgressBar({ stream: null as never }),
    () => new ProgressBar({ total: Number.POSITIVE_INFINITY }),
    () => new ProgressBar({ label: 5 as never }),
    () => bar.show(undefined as never),
    () => bar.show({ done: 1, total: Number.NaN }),
    () => bar.show({ done: 1, text: 5 as never }),
    () => bar.postfix(null as never),
    () => bar.postfix(['loss'] as never),
    () => bar.postfix({ loss: {} as never }),
  ]
  for (const one of wrong) expect(one).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})
