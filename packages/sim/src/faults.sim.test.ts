/** Fault rules on bare links of a world: which frames they apply to, what they do to them, and that the session above repairs it. */
import { describe, expect, test } from '@jest/globals'
import type { Frame, Link, LinkClosed } from '@postgrad/transport'
import type { FaultRecord, FaultRule } from './faults.js'
import { SimWorld, type SimWorldOptions } from './world.js'

const frame = (text: string): Frame => ({ header: new Uint8Array(Buffer.from(text)), segments: [] })
const text = ({ header }: Frame): string => Buffer.from(header).toString()
/** The first letter is the kind. */
const classify = (got: Frame): string => text(got)[0] ?? ''
const words = (count: number, kind = 'x'): string[] => Array.from({ length: count }, (_, i) => `${kind}${i}`)

class End {
  readonly got: string[] = []
  /** When each came. */
  readonly atMs: number[] = []
  closed: LinkClosed | null = null

  constructor(world: SimWorld, link: Link) {
    link.open({
      onFrame: (received) => {
        this.got.push(text(received))
        this.atMs.push(world.nowMs)
      },
      onTurnEnd() {},
      onClose: (reason) => {
        this.closed = reason
      },
    })
  }
}

interface Two {
  readonly world: SimWorld
  readonly a: Link
  readonly b: Link
  readonly atA: End
  readonly atB: End
}

function two(rules: readonly FaultRule[] | null, seed = 1, options: SimWorldOptions = {}): Two {
  const world = new SimWorld(seed, { ...options, ...(rules === null ? {} : { faults: { rules, classify } }) })
  const [a, b] = world.link('a', 'b')
  return { world, a, b, atA: new End(world, a), atB: new End(world, b) }
}

/** Sends the words from a to b and gives what arrived when. */
async function sent(rules: readonly FaultRule[], list: readonly string[], seed = 1): Promise<Two> {
  const pair = two(rules, seed)
  for (const word of list) pair.a.send(frame(word))
  await pair.world.drain()
  return pair
}

const dropped = ({ world }: Two): number => world.faults!.injected.drop
const kinds = ({ world }: Two): string[] => world.trace.events.map(({ kind, from, to }) => `${kind} ${from}→${to}`)

describe('fault rules', () => {
  test('FLT-1 without rules nothing changes: the link is the bare one, and a run is the run that it was before there were rules', async () => {
    const { world, a, b } = two(null, 42)
    for (const word of words(20)) a.send(frame(word))
    for (const word of words(20)) b.send(frame(word))
    a.close()
    await world.drain()
    expect(a.constructor.name).toBe('SimLink')
    expect([world.trace.hash, world.trace.count]).toEqual(['be5c7a9bca2d186a', 22])
  })

  test('FLT-2 the first rule that applies decides, and pass keeps a frame from those behind it', async () => {
    const { world, atB } = await sent(
      [{ match: { kind: 'p' }, do: 'pass' }, { match: { nth: 1 }, do: 'drop' }, { do: 'duplicate' }],
      ['p', 'x', 'y'],
    )
    expect(atB.got).toEqual(['p', 'x', 'y'])
    // x is lost and sent again, y is repeated, and so is what is sent again; the acknowledgements too.
    expect(world.faults!.injected).toMatchObject({ drop: 1, delay: 0, crash: 0 })
    expect(world.faults!.injected.duplicate).toBeGreaterThanOrEqual(2)
  })

  test.each<[string, FaultRule['match'], number]>([
    ['all', undefined, 20],
    ['from', { from: 'b' }, 0],
    ['from, one of', { from: ['a', 'c'] }, 20],
    ['to', { to: 'b' }, 20],
    ['kind', { kind: 'y' }, 10],
    ['kinds', { kind: ['x', 'y'] }, 20],
    ['nth', { kind: 'x', nth: 3 }, 1],
    ['every', { every: 6 }, 3],
    ['when', { when: ({ bytes }) => bytes > 34 }, 0],
    ['between', { between: ['b', ['c', 'a']] }, 20],
    ['between others', { between: ['b', 'c'] }, 0],
    ['function', ({ kind, message, timeMs }) => kind === 'y' && message > 15 && timeMs === 0, 5],
    ['probability 0', { probability: 0 }, 0],
    ['probability 1', { probability: 1 }, 20],
  ])('FLT-3 %s: a rule meets the frames that match all of it', async (_, match, count) => {
    const rule: FaultRule = { ...(match === undefined ? {} : { match }), do: 'drop' }
    const pair = two([
      { match: { kind: ['SESSION_ACK'] }, do: 'pass' },
      { ...rule, untilMs: 1 },
    ])
    for (const word of words(10)) pair.a.send(frame(word))
    for (const word of words(10, 'y')) pair.a.send(frame(word))
    await pair.world.drain()
    expect(dropped(pair)).toBe(count)
    expect(pair.atB.got).toEqual([...words(10), ...words(10, 'y')])
  })

  test('FLT-3 a probability is met about so often, by the seed', async () => {
    const counts = new Set<number>()
    for (let seed = 0; seed < 20; seed++) {
      const pair = await sent([{ match: { kind: 'x', probability: 0.3 }, do: 'drop', untilMs: 1 }], words(200), seed)
      expect(dropped(pair)).toBeGreaterThan(30)
      expect(dropped(pair)).toBeLessThan(90)
      counts.add(dropped(pair))
    }
    expect(counts.size).toBeGreaterThan(5)
  })

  test('FLT-4 times bounds a rule; timesEach bounds it for each message, which keeps its number when it is sent again', async () => {
    const some = await sent([{ match: { kind: 'x' }, do: 'drop', times: 3 }], words(5))
    expect(dropped(some)).toBe(3)
    expect(some.atB.atMs).toEqual([50, 50, 50, 50, 50])
    const each = await sent([{ match: { kind: 'x' }, do: 'drop', timesEach: 3 }], words(5))
    expect(dropped(each)).toBe(15)
    // Sent at 0, 50, 150 and 350.
    expect(each.atB.atMs).toEqual([350, 350, 350, 350, 350])
    expect(each.atB.got).toEqual(words(5))
  })

  test('FLT-4 a rule holds from a time until before another', async () => {
    const pair = two([{ do: 'drop', fromMs: 100, untilMs: 200 }])
    for (const at of [0, 99, 100, 199, 200]) pair.world.clock.setTimer(at, () => pair.a.send(frame(`${at}`)))
    await pair.world.run(new Promise<void>((resolve) => pair.world.clock.setTimer(1000, resolve)))
    expect(pair.atB.got).toEqual(['0', '99', '100', '199', '200'])
    expect(pair.atB.atMs.slice(0, 2)).toEqual([0, 99])
    expect(pair.atB.atMs[2]).toBeGreaterThanOrEqual(200)
  })

  test('FLT-5 what is put off arrives so much later; what is behind it waits in the session; a copy is nothing to the program', async () => {
    const late = await sent([{ match: { kind: 'x', nth: 1 }, do: 'delay', delayMs: 20 }], words(3))
    expect(late.atB.got).toEqual(words(3))
    expect(late.atB.atMs).toEqual([20, 20, 20])
    const twice = await sent(
      [
        { match: { kind: 'x' }, do: 'duplicate' },
        { match: { kind: 'y' }, do: 'duplicate', delayMs: 30 },
      ],
      ['x', 'y', 'z'],
    )
    expect(twice.atB.got).toEqual(['x', 'y', 'z'])
    expect(twice.world.frames.repeated).toBe(2)
    expect(kinds(twice)).toContain('duplicate a→b')
  })

  test('FLT-6 frames are accounted for: sent and repeated are delivered, dropped or lost', async () => {
    for (let seed = 0; seed < 50; seed++) {
      const rules: readonly FaultRule[] = [
        { match: { probability: 0.2 }, do: 'drop', times: 40 },
        { match: { probability: 0.2 }, do: 'duplicate', delayMs: seed % 3 },
        { match: { probability: 0.2 }, do: 'delay', delayMs: 7 },
        ...(seed % 2 === 0 ? [] : [{ match: { nth: 30 }, do: 'crash' } as const]),
      ]
      const { world, a, b, atA, atB } = two(rules, seed)
      for (const word of words(30)) a.send(frame(word))
      for (const word of words(30)) b.send(frame(word))
      await world.drain()
      // Delayed or repeated frames may still be under way.
      await world.run(new Promise<void>((resolve) => world.clock.setTimer(100, resolve)))
      const { sent: all, repeated, delivered, dropped: gone, lost } = world.frames
      expect({ seed, sum: delivered + gone + lost }).toEqual({ seed, sum: all + repeated })
      expect(world.faults!.injected.drop + world.faults!.injected.crash).toBe(gone)
      if (seed % 2 === 0) expect([atA.got, atB.got]).toEqual([words(30), words(30)])
      else expect([atA, atB].filter(({ closed }) => closed !== null).length).toBe(1)
    }
  })

  test('FLT-7 a seed gives the same run under rules: what arrives when, what was done, and the trace', async () => {
    const rules: readonly FaultRule[] = [
      { match: { probability: 0.3 }, do: 'drop', times: 30 },
      { match: { probability: 0.3 }, do: 'delay', delayMs: 3 },
      { match: { probability: 0.3 }, do: 'duplicate' },
    ]
    const hashes = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const [one, other] = [await sent(rules, words(40), seed), await sent(rules, words(40), seed)]
      expect(other.world.trace.text).toBe(one.world.trace.text)
      expect(other.world.trace.hash).toBe(one.world.trace.hash)
      expect(other.world.faults!.injected).toEqual(one.world.faults!.injected)
      expect(other.atB.atMs).toEqual(one.atB.atMs)
      hashes.add(one.world.trace.hash)
    }
    expect(hashes.size).toBe(20)
  })

  test('FLT-8 a partition that heals is a delay; one that lasts breaks the link at both ends, once the session gives up', async () => {
    const apart = (untilMs: number): FaultRule => ({ match: { from: ['a', 'b'], to: ['a', 'b'] }, do: 'drop', untilMs })
    const heals = two([apart(5000)])
    heals.a.send(frame('x'))
    heals.b.send(frame('y'))
    await heals.world.drain()
    expect([heals.atA.got, heals.atB.got]).toEqual([['y'], ['x']])
    const lasts = two([apart(Number.POSITIVE_INFINITY)])
    lasts.a.send(frame('x'))
    await lasts.world.drain()
    expect(lasts.world.nowMs).toBe(30_000)
    expect(lasts.atA.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('acknowledged nothing') })
    expect(lasts.atB.closed).toMatchObject({ by: 'peer' })
  })

  test('FLT-8 a slow link is slow, and what is sent again for it is nothing to the program', async () => {
    const { world, a, b, atA, atB } = two([{ do: 'delay', delayMs: 200 }])
    for (const word of words(5)) a.send(frame(word))
    b.send(frame('back'))
    await world.drain()
    expect([atB.got, atB.atMs]).toEqual([words(5), [200, 200, 200, 200, 200]])
    expect([atA.got, atA.atMs]).toEqual([['back'], [200]])
    expect(world.nowMs).toBeLessThan(1000)
  })

  test('FLT-12 frames of a slow line keep their order, one waits for the other, and it is as fast as it is said to be', async () => {
    const { world, atB } = await sent([{ match: { between: ['a', 'b'], kind: 'x' }, do: 'slow', delayMs: 5, bytesPerMs: 10 }], words(4), 3)
    expect(atB.got).toEqual(words(4))
    // A session's frame around two letters has 34 bytes.
    expect(atB.atMs.map((ms) => Math.round(ms * 10) / 10)).toEqual([8.4, 11.8, 15.2, 18.6])
    expect(world.faults!.injected).toMatchObject({ delay: 4, drop: 0 })
  })

  test('FLT-13 a rule that is added goes before the others until it is taken away; when all has ended nothing happens any more', async () => {
    const pair = two([{ match: { kind: 'x' }, do: 'drop' }])
    const remove = pair.world.faults!.add({ match: { nth: 2 }, do: 'pass' })
    expect(() => pair.world.faults!.add({ match: { probability: 2 }, do: 'pass' })).toThrow('probability')
    for (const word of words(3)) pair.a.send(frame(word))
    await pair.world.run(new Promise<void>((resolve) => pair.world.clock.setTimer(10, resolve)))
    expect(dropped(pair)).toBe(2)
    remove()
    remove()
    pair.world.faults!.end()
    await pair.world.drain()
    expect([dropped(pair), pair.atB.got]).toEqual([2, words(3)])
  })

  test('FLT-14 what happened is known by its frames, and a run can be repeated with some of it alone', async () => {
    const rules: readonly FaultRule[] = [
      { match: { kind: 'x' }, do: 'drop', times: 3 },
      { match: { kind: 'x' }, do: 'duplicate' },
    ]
    const run = async (exactly?: readonly FaultRecord[]) => {
      const world = new SimWorld(1, { faults: { rules, classify, ...(exactly === undefined ? {} : { exactly }) } })
      const [a, b] = world.link('a', 'b')
      new End(world, a)
      const atB = new End(world, b)
      for (const word of words(3)) a.send(frame(word))
      await world.drain()
      expect(atB.got).toEqual(words(3))
      return { happened: world.faults!.happened, hash: world.trace.hash }
    }
    const { happened, hash } = await run()
    expect(happened.map(({ frame: name, action }) => `${action} ${name}`)).toEqual([
      'drop a→b x 1',
      'drop a→b x 2',
      'drop a→b x 3',
      'duplicate a→b x 1/1',
      'duplicate a→b x 2/1',
      'duplicate a→b x 3/1',
    ])
    expect((await run(happened)).hash).toBe(hash)
    expect((await run([])).happened).toEqual([])
    // Without the others it is still the same frame.
    expect((await run(happened.slice(2, 3))).happened).toEqual(happened.slice(2, 3))
  })

  test('FLT-9 a worker crashes by a frame: the receiver, unless the rule names another; the frame is lost with it', async () => {
    const pair = await sent([{ match: { kind: 'x', nth: 3 }, do: 'crash' }], words(5))
    expect(pair.atB.got).toEqual(words(2))
    expect(pair.world.isCrashed('b')).toBe(true)
    expect(pair.atA.closed).toEqual({ by: 'peer', detail: "worker 'b' crashed" })
    expect(pair.world.faults!.injected).toEqual({ drop: 0, duplicate: 0, delay: 0, crash: 1, restart: 0 })
    const other = await sent([{ match: { kind: 'x', nth: 3 }, do: 'crash', worker: 'a' }], words(5))
    expect(other.atB.got.length).toBeGreaterThanOrEqual(2)
    expect(other.atB.closed).toEqual({ by: 'peer', detail: "worker 'a' crashed" })
  })

  test('FLT-10 a worker that is restarted by a frame comes back after the delay, in another life: frames of the former are refused', async () => {
    const restarted: [string, number][] = []
    const rules: readonly FaultRule[] = [
      { match: { kind: 'x', nth: 1 }, do: 'pass' },
      { match: { kind: 'x' }, do: 'restart', delayMs: 40 },
    ]
    const world: SimWorld = new SimWorld(1, {
      faults: {
        rules,
        classify,
        restart: (worker) => {
          restarted.push([worker, world.nowMs])
          world.revive(worker)
        },
      },
    })
    const [a, b] = world.link('a', 'b')
    const atB = new End(world, b)
    const atA = new End(world, a)
    for (const word of words(3)) a.send(frame(word))
    await world.run(new Promise<void>((resolve) => world.clock.setTimer(100, resolve)))
    expect(restarted).toEqual([['b', 40]])
    expect(atB.got).toEqual(['x0'])
    expect(atA.closed).toMatchObject({ by: 'peer' })
    const [again, there] = world.link('a', 'b')
    const fresh = new End(world, there)
    again.send(frame('y'))
    await world.drain()
    expect(fresh.got).toEqual(['y'])
    expect(atB.got).toEqual(['x0'])
    expect(kinds({ world } as Two)).toContain('restart b→')
  })

  test('FLT-10 a worker that has not crashed cannot be revived, and a world that can start nobody again says so', async () => {
    const { world } = two([{ do: 'restart' }])
    expect(() => world.revive('a')).toThrow(expect.objectContaining({ code: 'SIM_ALIVE' }))
    const pair = two([{ do: 'restart' }])
    pair.a.send(frame('x'))
    await expect(pair.world.run(new Promise<void>((resolve) => pair.world.clock.setTimer(100, resolve)))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })

  test.each<[string, unknown]>([
    ['an action that there is not', { do: 'explode' }],
    ['a delay that never ends', { do: 'delay', delayMs: Number.POSITIVE_INFINITY }],
    ['a probability over 1', { match: { probability: 1.5 }, do: 'drop' }],
    ['the zeroth frame', { match: { nth: 0 }, do: 'drop' }],
    ['every zeroth', { match: { every: 0 }, do: 'drop' }],
    ['a negative count', { do: 'drop', times: -1 }],
  ])('FLT-11 %s fails with INVALID_ARGUMENT when the world is made', (_, rule) => {
    expect(() => two([rule as FaultRule])).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  test.each<[string, unknown, RegExp, string[]]>([
    [
      'a key that is misspelt in match',
      { match: { nht: 2 }, do: 'drop' },
      /^faults: expected match with the keys from, to, .*, got nht\. Did you mean nth\?/,
      ['nht'],
    ],
    ['a condition next to match', { to: 'b', do: 'drop' }, /got to\. Write to in match\./, ['to']],
    ['an action in match', { match: { times: 2 }, do: 'drop' }, /got times\. Write times next to match\./, ['times']],
    ['a key of a rule that is misspelt', { do: 'delay', delayMS: 5 }, /got delayMS\. Did you mean delayMs\?/, ['delayMS']],
    ['keys that are like none', { do: 'drop', colour: 1, x: 2 }, /got colour, x\. Correct the name/, ['colour', 'x']],
    ['a match that is a text', { match: 'CALL', do: 'drop' }, /got CALL\. Write \{ match: \{ kind/, []],
    ['a rule that is a text', 'drop', /expected a rule with the keys match, do, .*got drop/, []],
  ])('FLT-11 %s fails with INVALID_ARGUMENT, which says what is known', (_, rule, message, unknown) => {
    expect(() => two([rule as FaultRule])).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(message),
        values: expect.objectContaining({ unknown }),
      }),
    )
  })

  test('FLT-11 a rule about a kind that there is not is refused where the kinds are known; what the session sends is known', () => {
    const world = (kind: string | readonly string[]) =>
      new SimWorld(1, { faults: { rules: [{ match: { kind }, do: 'drop' }], kinds: ['CALL'] } })
    expect(() => world('CALLS')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', values: { unknown: ['CALLS'] } }))
    expect(() => world(['CALL', 'SESSION_ACK', 'SESSION_END'])).not.toThrow()
  })

  test('FLT-11 a rule that crashes a worker that is not there ends the run when it applies', async () => {
    const pair = two([{ do: 'crash', worker: 'c' }])
    pair.a.send(frame('x'))
    await expect(pair.world.drain()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', values: { worker: 'c' } })
  })
})
