/** The watch over stalled workers, without threads: a test sets the time. Rules CLU-20 to CLU-23 in SPEC.md. */
import { describe, expect, test } from '@jest/globals'
import { StallWatch } from './heartbeat.js'
import { SharedCounter } from './shared-counter.js'

function watching(stallMs: number, names: readonly string[]) {
  const heard: string[] = []
  const watch = new StallWatch<string>(stallMs, 0, {
    onStalled: (who, silentMs) => heard.push(`${who} stalled ${silentMs}`),
    onRecovered: (who) => heard.push(`${who} recovered`),
  })
  const words = new Map(names.map((name) => [name, new SharedCounter()] as const))
  for (const [name, word] of words) watch.watch(name, word)
  return { watch, heard, beat: (name: string) => words.get(name)!.add() }
}

describe('a watch over heartbeats', () => {
  test('CLU-20 who does not beat for stallMs is stalled, once; who beats is not', () => {
    const { watch, heard, beat } = watching(100, ['a', 'b'])
    for (let nowMs = 25; nowMs <= 400; nowMs += 25) {
      beat('b')
      watch.look(nowMs)
      expect(heard).toEqual(nowMs < 100 ? [] : ['a stalled 100'])
    }
    expect([watch.isStalled('a'), watch.isStalled('b'), watch.isStalled('nobody')]).toEqual([true, false, false])
  })

  test('CLU-21 one that beats again has recovered, and may stall again', () => {
    const { watch, heard, beat } = watching(100, ['a'])
    for (let nowMs = 25; nowMs <= 150; nowMs += 25) watch.look(nowMs)
    beat('a')
    for (let nowMs = 175; nowMs <= 300; nowMs += 25) watch.look(nowMs)
    expect(heard).toEqual(['a stalled 100', 'a recovered', 'a stalled 100'])
  })

  test('CLU-22 a watch that was asleep itself blames nobody at once', () => {
    const { watch, heard } = watching(100, ['a'])
    watch.look(25)
    watch.look(100_000)
    expect(heard).toEqual([])
    watch.look(100_025)
    expect(heard).toEqual(['a stalled 100'])
  })

  test('CLU-118 a watch for longer than Node’s timers can be looks seldom, not each millisecond', () => {
    for (const stallMs of [2 ** 33, 2 ** 60, Number.POSITIVE_INFINITY]) {
      const { watch, heard } = watching(stallMs, ['a'])
      expect(watch.intervalMs).toBe(2 ** 31 - 1)
      for (let nowMs = 0; nowMs < 2 ** 32; nowMs += 2 ** 30) watch.look(nowMs)
      expect(heard).toEqual([])
    }
  })

  test('who is not watched any more is not told of', () => {
    const { watch, heard } = watching(100, ['a'])
    watch.unwatch('a')
    for (let nowMs = 25; nowMs <= 400; nowMs += 25) watch.look(nowMs)
    expect(heard).toEqual([])
  })

  test('a beat that wraps around 32 bits is a beat', () => {
    const { watch, heard, beat } = watching(100, ['a'])
    const memory = new SharedArrayBuffer(4)
    new Int32Array(memory)[0] = -1
    const beats = new SharedCounter(memory)
    watch.watch('a', beats)
    for (let nowMs = 25; nowMs <= 90; nowMs += 25) watch.look(nowMs)
    beats.add()
    watch.look(100)
    beat('a')
    expect(heard).toEqual([])
  })
})

test('CLU-115 nobody is stalled while a debugger may hold the workers', async () => {
  const heard: string[] = []
  const watch = new StallWatch<string>(4, 0, { onStalled: (who) => heard.push(who), onRecovered: () => {} })
  watch.watch('held', new SharedCounter())
  await new Promise<void>((resolve) => {
    let nowMs = 0
    watch.start(
      () => {
        nowMs += 10
        if (nowMs === 100) resolve()
        return nowMs
      },
      () => true,
    )
  })
  watch.stop()
  expect(heard).toEqual([])
})
