/** Tests the mailbox: each rule of SPEC.md by example, then all against a slow and obvious model. */

import { describe, expect, test } from '@jest/globals'
import { LANE_COUNT, Lane, type MessageLane } from '@postgrad/base/internal'
import fc from 'fast-check'
import { Mailbox, PASSED_MAX, SHARE_MAX, Source } from './mailbox.js'

const MESSAGE_LANES: readonly MessageLane[] = [Lane.signal, Lane.control, Lane.gradient, Lane.call]

function drain<T extends NonNullable<unknown>>(mailbox: Mailbox<T>): T[] {
  const taken: T[] = []
  for (let item = mailbox.take(); item !== undefined; item = mailbox.take()) taken.push(item)
  return taken
}

describe('order', () => {
  test('MB-1 the highest lane goes first', () => {
    const mailbox = new Mailbox<string>()
    mailbox.push(Lane.call, 'call')
    mailbox.pushTask('task', 1)
    mailbox.push(Lane.gradient, 'gradient')
    mailbox.push(Lane.control, 'control')
    mailbox.push(Lane.signal, 'signal')
    expect(drain(mailbox)).toEqual(Object.keys(Lane))
  })

  test.each(MESSAGE_LANES)('MB-2 lane %p is first in, first out, through growth and wrap-around', (lane) => {
    const mailbox = new Mailbox<number>()
    const taken: number[] = []
    let pushed = 0
    for (const burst of [5, 40, 3, 100, 1]) {
      for (let i = 0; i < burst; i++) mailbox.push(lane, pushed++)
      for (let i = 0; i < burst / 2; i++) taken.push(mailbox.take()!)
    }
    expect([...taken, ...drain(mailbox)]).toEqual(Array.from({ length: pushed }, (_, i) => i))
  })

  test('MB-3 tasks by priority, ties in order of pushing', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 })), (priorities) => {
        const mailbox = new Mailbox<{ priority: number; order: number }>()
        const tasks = priorities.map((priority, order) => ({ priority, order }))
        for (const task of tasks) mailbox.pushTask(task, task.priority)
        expect(drain(mailbox)).toEqual([...tasks].sort((a, b) => b.priority - a.priority || a.order - b.order))
      }),
    )
  })

  test('MB-3 the highest possible priority of AccumulateGrad stays above every sequence number', () => {
    const mailbox = new Mailbox<string>()
    mailbox.pushTask('node', Number.MAX_SAFE_INTEGER)
    mailbox.pushTask('accumulate', Number.POSITIVE_INFINITY)
    expect(drain(mailbox)).toEqual(['accumulate', 'node'])
  })
})

describe('causality', () => {
  test('MB-4 what is about two ids waits for both', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'call that makes 9', 9n)
    mailbox.pushFrom(a, Lane.call, 'call in 7', 7n)
    mailbox.pushFrom(a, Lane.control, 'about both', 7n, 9n)
    mailbox.pushFrom(a, Lane.signal, 'about 9 alone', null, 9n)
    mailbox.pushFrom(a, Lane.signal, 'about nothing')
    expect(drain(mailbox)).toEqual(['about nothing', 'call that makes 9', 'call in 7', 'about both', 'about 9 alone'])
  })

  test('MB-4 MB-5 a clean-up does not overtake the call before it, nor a gradient that call', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'call in 7', 7n)
    mailbox.pushFrom(a, Lane.gradient, 'gradient in 7', 7n)
    mailbox.pushFrom(a, Lane.control, 'clean-up of 7', 7n)
    expect(mailbox.depth(Lane.call)).toBe(3)
    expect(drain(mailbox)).toEqual(['call in 7', 'gradient in 7', 'clean-up of 7'])
  })

  test('MB-6 other contexts, other senders and what is about nothing keep their lanes', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    const b = new Source('b')
    mailbox.pushFrom(a, Lane.call, 'a calls in 7', 7n)
    mailbox.pushFrom(a, Lane.gradient, 'a about 8', 8n)
    mailbox.pushFrom(b, Lane.gradient, 'b about 7', 7n)
    mailbox.pushFrom(a, Lane.control, 'a replies')
    mailbox.pushFrom(a, Lane.control, 'a releases 7', 7n)
    expect(drain(mailbox)).toEqual(['a replies', 'a about 8', 'b about 7', 'a calls in 7', 'a releases 7'])
  })

  test('MB-7 a call that makes an RRef in a context is overtaken under neither id', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'remote', 7n, 100n)
    mailbox.pushFrom(a, Lane.control, 'delete the RRef', 100n)
    mailbox.pushFrom(a, Lane.control, 'release the context', 7n)
    expect(drain(mailbox)).toEqual(['remote', 'delete the RRef', 'release the context'])
  })

  test('MB-7 one id given twice is one id', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'first', 7n, 7n)
    mailbox.pushFrom(a, Lane.control, 'second', null, 7n)
    expect(drain(mailbox)).toEqual(['first', 'second'])
    expect(a.keys.size).toBe(0)
  })
})

describe('ageing', () => {
  test(`MB-9 a call gets its turn although control never ends, after ${PASSED_MAX} turns`, () => {
    const mailbox = new Mailbox<string>()
    mailbox.push(Lane.call, 'call')
    const taken: string[] = []
    for (let i = 0; i < 2 * PASSED_MAX; i++) {
      mailbox.push(Lane.control, 'control')
      taken.push(mailbox.take()!)
    }
    expect(taken.indexOf('call')).toBe(PASSED_MAX)
  })

  test(`MB-9 with every lane full each is served within ${PASSED_MAX + 4} turns, a signal within 5`, () => {
    const mailbox = new Mailbox<number>()
    const last = new Array(LANE_COUNT).fill(0)
    const gap = new Array(LANE_COUNT).fill(0)
    for (let turn = 1; turn <= 2000; turn++) {
      while (mailbox.depth(Lane.task) < 2) mailbox.pushTask(Lane.task, 1)
      for (const lane of MESSAGE_LANES) while (mailbox.depth(lane) < 2) mailbox.push(lane, lane)
      const lane = mailbox.take()!
      expect(mailbox.takenLane).toBe(lane)
      gap[lane] = Math.max(gap[lane], turn - last[lane])
      last[lane] = turn
    }
    expect(gap[Lane.signal]).toBeLessThanOrEqual(5)
    for (const lane of [Lane.control, Lane.gradient, Lane.task, Lane.call]) {
      expect(gap[lane]).toBeGreaterThan(PASSED_MAX)
      expect(gap[lane]).toBeLessThanOrEqual(PASSED_MAX + 4)
    }
  })

  test('MB-10 an aged call waits for the gradient before it', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    for (let i = 0; i < 3 * PASSED_MAX; i++) mailbox.push(Lane.gradient, 'other')
    mailbox.pushFrom(a, Lane.gradient, 'gradient in 7', 7n)
    mailbox.pushFrom(a, Lane.call, 'call in 7', 7n)
    mailbox.push(Lane.gradient, 'behind')
    const taken = drain(mailbox)
    expect(taken.slice(3 * PASSED_MAX)).toEqual(['gradient in 7', 'call in 7', 'behind'])
  })
})

describe('the end of a link', () => {
  test('MB-11 the notice stands behind everything that the source sent, in every lane', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'call')
    mailbox.pushFrom(a, Lane.control, 'reply')
    mailbox.pushLast(a, Lane.control, 'closed')
    expect([mailbox.size, mailbox.held]).toEqual([3, 1])
    expect(drain(mailbox)).toEqual(['reply', 'call', 'closed'])
  })

  test('MB-12 and behind nothing else', () => {
    const mailbox = new Mailbox<string>()
    const [a, b, c] = [new Source('a'), new Source('b'), new Source('c')]
    mailbox.pushFrom(b, Lane.call, 'call of b')
    mailbox.pushFrom(a, Lane.gradient, 'gradient of a')
    mailbox.pushLast(a, Lane.control, 'a closed')
    mailbox.pushLast(c, Lane.control, 'c closed')
    expect(drain(mailbox)).toEqual(['c closed', 'gradient of a', 'a closed', 'call of b'])
  })

  test('MB-13 nothing comes after it', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushLast(a, Lane.control, 'closed')
    expect(() => mailbox.pushFrom(a, Lane.call, 'late')).toThrow('after the last one')
    expect(() => mailbox.pushLast(a, Lane.control, 'again')).toThrow('two last messages')
  })
})

describe('accounts', () => {
  test('MB-15 a key that was kept starts again: nothing joins a lane in which nothing waits any more', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    mailbox.pushFrom(a, Lane.call, 'first', 7n)
    drain(mailbox)
    mailbox.pushFrom(a, Lane.call, 'other', 8n)
    mailbox.pushFrom(a, Lane.control, 'second', 7n)
    expect(drain(mailbox)).toEqual(['second', 'other'])
    expect(a.keys.size).toBe(1)
  })

  test('MB-15 a key that was kept twice is still the key of what waits', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    for (const round of ['first', 'second']) {
      mailbox.pushFrom(a, Lane.call, round, 7n)
      drain(mailbox)
    }
    mailbox.pushFrom(a, Lane.call, 'call', 7n)
    mailbox.pushFrom(a, Lane.control, 'other', 8n)
    expect(mailbox.take()).toBe('other')
    mailbox.pushFrom(a, Lane.control, 'clean-up', 7n)
    expect(drain(mailbox)).toEqual(['call', 'clean-up'])
  })

  test('MB-15 a burst leaves one key and no memory behind', () => {
    const mailbox = new Mailbox<object>()
    const a = new Source('a')
    for (let i = 0; i < 5000; i++) mailbox.pushFrom(a, Lane.call, {}, BigInt(i % 500), BigInt(1000 + i))
    expect(a.keys.size).toBe(5500)
    drain(mailbox)
    expect([a.keys.size, a.waiting, mailbox.size]).toEqual([1, 0, 0])
    const rings = (mailbox as unknown as { rings: { capacity: number; items: unknown[]; marks: unknown[] }[] }).rings
    for (const ring of rings) {
      expect(ring.capacity).toBeLessThanOrEqual(1024)
      expect(ring.items.filter((item) => item !== undefined)).toEqual([])
      expect(ring.marks.filter((mark) => mark !== null)).toEqual([])
    }
  })
})

/** A pushed item, as the model knows it. */
interface Pushed {
  readonly order: number
  readonly lane: Lane
  readonly source: number | null
  readonly ids: readonly bigint[]
  readonly priority: number
  readonly last: boolean
}

type Step =
  | { kind: 'take' }
  | { kind: 'push'; lane: MessageLane }
  | { kind: 'task'; priority: number }
  | { kind: 'from'; source: number; lane: MessageLane; ids: bigint[] }
  | { kind: 'last'; source: number; lane: MessageLane }

const lane = fc.constantFrom(...MESSAGE_LANES)
const source = fc.nat({ max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'take' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('push' as const), lane }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('task' as const), priority: fc.nat({ max: 3 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('from' as const),
      source,
      lane,
      ids: fc.array(fc.bigInt({ min: 0n, max: 2n }), { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('last' as const), source, lane }) },
)

test('MB-2 to MB-14 any history: causal per key, FIFO per lane, nothing lost, nothing starved (fast-check prints its seed)', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 400 }), (steps) => {
      const mailbox = new Mailbox<Pushed>()
      const sources = [0, 1, 2].map((n) => new Source(`s${n}`))
      const ended = new Set<number>()
      let waiting: Pushed[] = []
      let order = 0
      const take = () => {
        const item = mailbox.take()
        expect(item === undefined).toBe(waiting.length === 0)
        if (item === undefined) return
        expect(waiting).toContain(item)
        const earlier = waiting.filter((other) => other.order < item.order)
        // MB-4, MB-7: no earlier item under one of its keys still waits.
        expect(earlier.filter((other) => other.source === item.source && item.ids.some((id) => other.ids.includes(id)))).toEqual([])
        // MB-11: after a last item, nothing of its source waits.
        if (item.last) expect(waiting.filter((other) => other.source === item.source && other !== item)).toEqual([])
        // MB-2: items without source are FIFO in a lane. MB-3: tasks by priority.
        if (item.source === null && item.lane !== Lane.task) {
          expect(earlier.filter((other) => other.source === null && other.lane === item.lane)).toEqual([])
        }
        if (item.lane === Lane.task)
          expect(waiting.filter((other) => other.lane === Lane.task && other.priority > item.priority)).toEqual([])
        waiting = waiting.filter((other) => other !== item)
        expect(mailbox.size).toBe(waiting.length)
      }
      const pushed = (more: Partial<Pushed> & { lane: Lane }): Pushed => {
        const item = { order: order++, source: null, ids: [], priority: 0, last: false, ...more }
        waiting.push(item)
        return item
      }
      for (const s of steps) {
        if (s.kind === 'take') take()
        else if (s.kind === 'push') mailbox.push(s.lane, pushed({ lane: s.lane }))
        else if (s.kind === 'task') mailbox.pushTask(pushed({ lane: Lane.task, priority: s.priority }), s.priority)
        else if (ended.has(s.source)) continue
        else if (s.kind === 'from') {
          const item = pushed({ lane: s.lane, source: s.source, ids: s.ids })
          mailbox.pushFrom(sources[s.source]!, s.lane, item, s.ids[0] ?? null, s.ids[1] ?? null)
        } else {
          ended.add(s.source)
          mailbox.pushLast(sources[s.source]!, s.lane, pushed({ lane: s.lane, source: s.source, last: true }))
        }
        expect(mailbox.size).toBe(waiting.length)
      }
      while (waiting.length > 0) take()
      expect(mailbox.take()).toBeUndefined()
      for (const s of sources) {
        expect(s.keys.size).toBeLessThanOrEqual(1)
        expect(s.waiting).toBe(0)
      }
    }),
    { numRuns: 300 },
  )
})

describe('a flood', () => {
  test(`MB-9, MB-16 with 100,000 calls waiting, control, gradients and node tasks go first, the calls get one turn in ${PASSED_MAX + 1}, and none is dropped`, () => {
    const mailbox = new Mailbox<string>()
    const peers = Array.from({ length: 8 }, (_, i) => new Source(`peer${i}`))
    const CALLS = 100_000
    for (let i = 0; i < CALLS; i++) mailbox.pushFrom(peers[i % 8]!, Lane.call, 'call')
    const taken: Record<string, number> = { call: 0, control: 0, gradient: 0, task: 0 }
    let longestWait = 0
    for (let turn = 0; turn < 10_000; turn++) {
      if (mailbox.depth(Lane.control) === 0) mailbox.pushFrom(peers[turn % 8]!, Lane.control, 'control')
      if (mailbox.depth(Lane.task) === 0) mailbox.pushTask('task', turn)
      if (turn % 10 === 0) mailbox.pushFrom(peers[turn % 8]!, Lane.gradient, 'gradient', 7n)
      longestWait = Math.max(longestWait, mailbox.depth(Lane.control))
      taken[mailbox.take()!]!++
    }
    expect(longestWait).toBe(1)
    // Lanes that never run empty under one that is never empty have one turn in PASSED_MAX + 1 each.
    expect(taken.call).toBeGreaterThanOrEqual(Math.floor(10_000 / (PASSED_MAX + 4)))
    expect(taken.task).toBeGreaterThanOrEqual(Math.floor(10_000 / (PASSED_MAX + 4)))
    while (mailbox.size > 0) taken[mailbox.take()!]!++
    expect(taken.call).toBe(CALLS)
    expect(taken.gradient).toBe(1000)
  })

  test('MB-9 node tasks that never end leave the calls their turns, and calls that never end the node tasks theirs', () => {
    for (const [endless, other] of [
      [Lane.task, Lane.call],
      [Lane.call, Lane.task],
    ] as const) {
      const mailbox = new Mailbox<string>()
      const push = (lane: typeof Lane.task | typeof Lane.call, item: string) =>
        lane === Lane.task ? mailbox.pushTask(item, 1) : mailbox.push(lane, item)
      for (let i = 0; i < 10; i++) push(other, 'other')
      const turns: number[] = []
      for (let turn = 0; turns.length < 10; turn++) {
        expect(turn).toBeLessThan(10 * (PASSED_MAX + 1) + 1)
        push(endless, 'endless')
        if (mailbox.take() === 'other') turns.push(turn)
      }
      expect(mailbox.depth(other)).toBe(0)
    }
  })
})

describe('shares of sources', () => {
  test.each(MESSAGE_LANES)(
    `MB-20 in lane %p what one source sends waits behind at most ${SHARE_MAX} items of each other, however many those have sent`,
    (lane) => {
      const mailbox = new Mailbox<string>()
      const [flooder, other, honest] = [new Source('flooder'), new Source('other'), new Source('honest')]
      for (let i = 0; i < 10_000; i++) mailbox.pushFrom(flooder, lane, 'flood')
      for (let i = 0; i < 10_000; i++) mailbox.pushFrom(other, lane, 'flood')
      for (let round = 0; round < 20; round++) {
        mailbox.pushFrom(honest, lane, 'honest')
        let before = 0
        while (mailbox.take() !== 'honest') before++
        expect(before).toBeLessThanOrEqual(2 * SHARE_MAX)
      }
      expect(drain(mailbox).length + 20 * 2 * SHARE_MAX).toBeGreaterThanOrEqual(20_000)
      expect([mailbox.size, mailbox.depth(lane)]).toEqual([0, 0])
    },
  )

  test('MB-20 each source keeps the order of its lanes, and MB-4 holds in its lines (fast-check prints its seed)', () => {
    const pushed = fc.record({
      source: fc.integer({ min: 0, max: 1 }),
      lane: fc.constantFrom(...MESSAGE_LANES),
      id: fc.integer({ min: 0, max: 3 }),
    })
    const bursts = fc.array(
      fc.record({ of: pushed, count: fc.integer({ min: 1, max: 3 * SHARE_MAX }), taken: fc.integer({ min: 0, max: 80 }) }),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(bursts, (history) => {
        const mailbox = new Mailbox<{ source: number; lane: Lane; id: number; order: number }>()
        const sources = [new Source('0'), new Source('1')]
        const last = new Map<string, number>()
        let order = 0
        const check = (item: ReturnType<typeof mailbox.take>) => {
          if (item === undefined) return
          // 0: without an id, so of its lane alone.
          const key = item.id === 0 ? `lane ${item.source} ${item.lane}` : `id ${item.source} ${item.id}`
          expect(last.get(key) ?? -1).toBeLessThan(item.order)
          last.set(key, item.order)
        }
        for (const { of, count, taken } of history) {
          for (let i = 0; i < count; i++) {
            const item = { ...of, order: order++ }
            mailbox.pushFrom(sources[of.source]!, of.lane, item, of.id === 0 ? null : BigInt(of.id))
          }
          for (let i = 0; i < taken; i++) check(mailbox.take())
        }
        while (mailbox.size > 0) check(mailbox.take())
        expect(sources.map(({ waiting }) => waiting)).toEqual([0, 0])
      }),
      { numRuns: 200 },
    )
  })

  test('MB-21 calls that are held wait, with what is about the same and comes after them; all else goes on, and released they come in order', () => {
    const mailbox = new Mailbox<string>()
    const [held, other] = [new Source('held'), new Source('other')]
    mailbox.holdCalls(held)
    mailbox.pushFrom(held, Lane.call, 'call in 7', 7n)
    mailbox.pushFrom(held, Lane.control, 'clean-up of 7', 7n)
    mailbox.pushFrom(held, Lane.control, 'reply')
    mailbox.pushFrom(other, Lane.call, 'call of another')
    expect(mailbox.size).toBe(2)
    expect(drain(mailbox)).toEqual(['reply', 'call of another'])
    mailbox.releaseCalls(held)
    expect(mailbox.size).toBe(2)
    expect(drain(mailbox)).toEqual(['call in 7', 'clean-up of 7'])
  })

  test('MB-21 the end of a link waits for what is held, and nothing is held behind it', () => {
    const mailbox = new Mailbox<string>()
    const a = new Source('a')
    for (let i = 0; i < 3 * SHARE_MAX; i++) mailbox.pushFrom(a, Lane.call, `${i}`)
    mailbox.holdCalls(a)
    expect(drain(mailbox)).toHaveLength(SHARE_MAX)
    mailbox.releaseCalls(a)
    mailbox.pushLast(a, Lane.control, 'end')
    mailbox.holdCalls(a)
    expect(drain(mailbox).at(-1)).toBe('end')
    expect(a.waiting).toBe(0)
  })
})
