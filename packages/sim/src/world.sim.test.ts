/** The simulated world: what a seed decides, what it must not decide, how a run ends. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { currentScope, withScope } from '@postgrad/base/internal'
import type { Frame, Link, LinkReceiver } from '@postgrad/transport'
import fc from 'fast-check'
import { SimWorld, type SimWorldOptions } from './world.js'

const frame = (text: string): Frame => ({ header: new Uint8Array(Buffer.from(text)), segments: [] })
const text = (got: Frame): string => Buffer.from(got.header).toString()

function receiver(onFrame: (text: string) => void, more: Partial<LinkReceiver> = {}): LinkReceiver {
  return { onFrame: (got) => onFrame(text(got)), onTurnEnd() {}, onClose() {}, ...more }
}

const never = () => new Promise<never>(() => {})

/** Three workers that talk, set timers and defer for a while; everything that a run depends on. */
async function busyRun(
  seed: number,
  options?: SimWorldOptions,
  between: () => void = () => {},
): Promise<{ world: SimWorld; log: string[] }> {
  const world = new SimWorld(seed, options)
  const log: string[] = []
  const names = ['a', 'b', 'c']
  let open = 3 * 2 * 20
  const main = new Promise<void>((resolve) => {
    for (const [i, x] of names.entries()) {
      for (const y of names.slice(i + 1)) {
        const ends = world.link(x, y)
        for (const [me, end] of [x, y].map((name, k) => [name, ends[k]!] as const)) {
          end.open(
            receiver((got) => {
              between()
              log.push(`${me} got ${got}`)
              const [word, left] = got.split(' ') as [string, string]
              if (Number(left) === 0) {
                if (--open === 0) resolve()
                return
              }
              const clock = world.clockOf(me)
              const answer = () => end.send(frame(`${word} ${Number(left) - 1}`))
              if (Number(left) % 3 === 0) clock.defer(answer)
              else if (Number(left) % 3 === 1) clock.setTimer(Number(left), answer)
              else void Promise.resolve().then(answer)
            }),
          )
          for (let n = 0; n < 20; n++) end.send(frame(`${me}${n} ${n % 7}`))
        }
      }
    }
  })
  await world.run(main)
  return { world, log }
}

describe('a seed', () => {
  test.each([0, 1, 42, -7, 2 ** 40 + 3])('%p gives the same run twice: events, their text and the hash', async (seed) => {
    const first = await busyRun(seed)
    const second = await busyRun(seed)
    expect(second.log).toEqual(first.log)
    expect(second.world.trace.text).toBe(first.world.trace.text)
    expect(second.world.trace.hash).toBe(first.world.trace.hash)
    expect(first.world.trace.count).toBeGreaterThan(300)
  })

  test('collections forced between events change nothing', async () => {
    const { setFlagsFromString } = await import('node:v8')
    const { runInNewContext } = await import('node:vm')
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const plain = await busyRun(5)
    let n = 0
    const collected = await busyRun(5, {}, () => {
      if (n++ % 100 === 0) gc()
    })
    expect(n).toBeGreaterThan(300)
    expect(collected.world.trace.text).toBe(plain.world.trace.text)
  })

  test('other seeds give other runs', async () => {
    const hashes = new Set<string>()
    for (let seed = 0; seed < 30; seed++) hashes.add((await busyRun(seed)).world.trace.hash)
    expect(hashes.size).toBe(30)
  })

  test('all 6 orders of 3 concurrent frames come up within 200 seeds, each about as often', async () => {
    const orders = new Map<string, number>()
    for (let seed = 0; seed < 200; seed++) {
      const world = new SimWorld(seed)
      const order: string[] = []
      for (const peer of ['x', 'y', 'z']) {
        const [there, here] = world.link(peer, 'me')
        here.open(receiver((got) => order.push(got)))
        there.send(frame(peer))
      }
      await world.drain()
      orders.set(order.join(''), (orders.get(order.join('')) ?? 0) + 1)
    }
    expect([...orders.keys()].sort()).toEqual(['xyz', 'xzy', 'yxz', 'yzx', 'zxy', 'zyx'])
    // 33 expected of each; 5 standard deviations are 26.
    expect(Math.min(...orders.values())).toBeGreaterThan(7)
  })

  test('frames of one pair arrive alone and together, and a poll finds some, all or none of them', async () => {
    const turns = new Set<number>()
    const polled = new Set<number>()
    for (let seed = 0; seed < 100; seed++) {
      const world = new SimWorld(seed)
      const [a, b] = world.link('a', 'b')
      let sinceTurn = 0
      b.open(
        receiver(() => sinceTurn++, {
          onTurnEnd() {
            turns.add(sinceTurn)
            sinceTurn = 0
          },
        }),
      )
      for (let i = 0; i < 3; i++) a.send(frame(`${i}`))
      await world.drain()
      for (let i = 0; i < 3; i++) a.send(frame(`${i}`))
      polled.add(b.poll())
    }
    expect([...turns].sort()).toEqual([1, 2, 3])
    expect([...polled].sort()).toEqual([0, 1, 2, 3])
  })

  test('seedFor gives each name a seed of its own, and takes nothing from the run', () => {
    const world = new SimWorld(1)
    const seeds = new Set(Array.from({ length: 100 }, (_, i) => world.seedFor(`worker${i}`)))
    seeds.add(new SimWorld(2).seedFor('worker0'))
    expect(seeds.size).toBe(101)
    expect(world.seedFor('worker0')).toBe(new SimWorld(1).seedFor('worker0'))
    expect(world.random.below(1000)).toBe(new SimWorld(1).random.below(1000))
  })
})

describe('a link in a seeded world', () => {
  test('copies what is sent, a Buffer with its pool too', async () => {
    const world = new SimWorld(1)
    const [a, b] = world.link('a', 'b')
    const got: Frame[] = []
    b.open({ onFrame: (f) => got.push(f), onTurnEnd() {}, onClose() {} })
    const headers = [new Uint8Array([1, 2, 3]), Buffer.from([1, 2, 3]), new Uint8Array([0, 1, 2, 3]).subarray(1)]
    for (const header of headers) {
      a.send({ header, segments: [] })
      header.fill(9)
    }
    await world.drain()
    expect(got.map((f) => [...f.header])).toEqual([0, 1, 2].map(() => [1, 2, 3]))
    expect(got.map((f) => f.header.byteOffset)).toEqual([0, 0, 0])
  })

  test('an end that has closed hears nothing after it, though its peer, who does not know yet, goes on sending', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const world = new SimWorld(seed)
      const [a, b] = world.link('a', 'b')
      const heard: string[] = []
      a.open(receiver((word) => heard.push(word), { onClose: (reason) => heard.push(reason.by) }))
      b.open(receiver(() => {}))
      b.send(frame('before'))
      a.close()
      b.send(frame('after'))
      await world.drain()
      expect(heard).toEqual(['self'])
    }
  })
})

test('per pair the order of send holds, whatever the seed and the traffic, by turn or by poll (fast-check prints its seed)', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(fc.record({ from: fc.nat({ max: 2 }), to: fc.nat({ max: 2 }), run: fc.nat({ max: 3 }), poll: fc.boolean() }), {
        maxLength: 120,
      }),
      async (seed, traffic) => {
        const world = new SimWorld(seed)
        const got = new Map<string, number[]>()
        const ends = new Map<string, Link>()
        for (const pair of ['01', '02', '12']) {
          const [x, y] = [...pair] as [string, string]
          const [atX, atY] = world.link(x, y)
          for (const [me, peer, end] of [
            [x, y, atX],
            [y, x, atY],
          ] as const) {
            ends.set(`${me}${peer}`, end)
            got.set(`${peer}${me}`, [])
            end.open(receiver((n) => got.get(`${peer}${me}`)!.push(Number(n))))
          }
        }
        const sent = new Map<string, number>()
        for (const { from, to, run, poll } of traffic) {
          if (from === to) continue
          const key = `${from}${to}`
          const n = sent.get(key) ?? 0
          ends.get(key)!.send(frame(`${n}`))
          sent.set(key, n + 1)
          for (let i = 0; i < run; i++) world.step()
          if (poll) ends.get(`${to}${from}`)!.poll()
        }
        await world.drain()
        for (const [key, numbers] of got) expect(numbers).toEqual(Array.from({ length: sent.get(key) ?? 0 }, (_, i) => i))
      },
    ),
    { numRuns: 200 },
  )
})

describe('virtual time', () => {
  test('timers fire in order of time, ties of one worker in order of setting, and time jumps to them', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const world = new SimWorld(seed)
      const clock = world.clockOf('a')
      const fired: string[] = []
      const at = (name: string) => () => fired.push(`${name}@${clock.now()}`)
      clock.setTimer(3_600_000, at('hour'))
      clock.setTimer(10, at('ten'))
      clock.setTimer(10, at('ten again'))
      clock.setTimer(2.5, () => {
        fired.push(`early@${clock.now()}`)
        clock.setTimer(7.5, at('ten too'))
      })
      await world.run(new Promise<void>((resolve) => clock.setTimer(3_600_001, resolve)))
      expect(fired).toEqual(['early@2.5', 'ten@10', 'ten again@10', 'ten too@10', 'hour@3600000'])
      expect(world.nowMs).toBe(3_600_001)
    }
  })

  test('timers of different workers at one moment come in every order', async () => {
    const orders = new Set<string>()
    for (let seed = 0; seed < 100; seed++) {
      const world = new SimWorld(seed)
      const order: string[] = []
      for (const name of ['a', 'b', 'c']) world.clockOf(name).setTimer(5, () => order.push(name))
      await world.run(new Promise<void>((resolve) => world.clock.setTimer(6, resolve)))
      orders.add(order.join(''))
    }
    expect(orders.size).toBe(6)
  })

  test('deferred turns keep their order, due timers keep theirs, and between the two every order comes up', async () => {
    const orders = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const world = new SimWorld(seed)
      const clock = world.clockOf('a')
      const order: string[] = []
      const say = (word: string) => () => order.push(word)
      clock.setTimer(0, say('t1'))
      clock.setTimer(0, say('t2'))
      clock.defer(say('d1'))
      clock.defer(say('d2'))
      expect(order).toEqual([])
      await world.drain()
      orders.add(order.join(' '))
      expect(world.nowMs).toBe(0)
    }
    expect([...orders].sort()).toEqual(['d1 d2 t1 t2', 'd1 t1 d2 t2', 'd1 t1 t2 d2', 't1 d1 d2 t2', 't1 d1 t2 d2', 't1 t2 d1 d2'])
  })

  test('a worker that defers for ever does not starve its timers', async () => {
    const world = new SimWorld(1)
    const clock = world.clockOf('a')
    const again = () => clock.defer(again)
    again()
    await world.run(new Promise<void>((resolve) => clock.setTimer(0, resolve)))
    expect(world.steps).toBeLessThan(100)
  })

  test('cancelled timers never fire, due or not, and leave nothing behind (fast-check prints its seed)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.array(fc.record({ delay: fc.nat({ max: 9 }), cancel: fc.boolean() })), async (seed, plan) => {
        const world = new SimWorld(seed)
        const clock = world.clockOf('a')
        const fired: number[] = []
        const timers = plan.map(({ delay }, i) => clock.setTimer(delay, () => fired.push(i)))
        plan.forEach(({ cancel }, i) => {
          if (cancel) timers[i]!.cancel()
        })
        while (world.step());
        const expected = plan
          .map(({ delay, cancel }, i) => ({ delay, cancel, i }))
          .filter(({ cancel }) => !cancel)
          .sort((x, y) => x.delay - y.delay || x.i - y.i)
        expect(fired).toEqual(expected.map(({ i }) => i))
        for (const timer of timers) timer.cancel()
        expect([world.choices.size, world.nowMs]).toEqual([0, expected.at(-1)?.delay ?? 0])
      }),
    )
  })

  test('a timer can be cancelled by another of the same moment', async () => {
    const world = new SimWorld(1)
    const fired: number[] = []
    const timers = [0, 1, 2, 3].map((i) =>
      world.clock.setTimer(i < 3 ? 5 : 6, () => {
        fired.push(i)
        if (i === 0) timers[1]!.cancel()
      }),
    )
    while (world.step());
    expect(fired).toEqual([0, 2, 3])
  })

  test('CLK-2 a timer of Infinity never comes: time does not jump to it, and cancelling it changes nothing', () => {
    const world = new SimWorld(1)
    const { clock } = world
    const never = clock.setTimer(Number.POSITIVE_INFINITY, () => expect(true).toBe(false))
    expect(world.step()).toBe(false)
    never.cancel()
    expect(world.nowMs).toBe(0)
    expect(() => clock.setTimer(Number.NaN, () => {})).toThrow('a timer of NaN ms')
  })

  test('timers and turns run in the scope in which they were set, frames in that of open', async () => {
    const world = new SimWorld(1)
    const seen: boolean[] = []
    const look = () => seen.push(currentScope().gradEnabled)
    const [a, b] = world.link('a', 'b')
    withScope({ gradEnabled: false }, () => {
      world.clock.setTimer(0, look)
      world.clock.defer(look)
      b.open(receiver(look))
    })
    a.send(frame('x'))
    world.clock.defer(look)
    await world.drain()
    expect(seen.sort()).toEqual([false, false, false, true])
  })
})

describe('how a run ends', () => {
  test('with what main gives or throws; the rest stays in flight until drain', async () => {
    const world = new SimWorld(1)
    const [a, b] = world.link('a', 'b')
    const got: string[] = []
    b.open(receiver((word) => got.push(word)))
    expect(await world.run(Promise.resolve(7))).toBe(7)
    a.send(frame('late'))
    await expect(world.run(Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    expect(got).toEqual([])
    await world.drain()
    expect(got).toEqual(['late'])
  })

  test('SIM_DEADLOCK names the seed, a link that was never opened, and what is real', async () => {
    const world = new SimWorld(77)
    const [a] = world.link('a', 'b')
    a.send(frame('nobody listens'))
    const timer = { handle: undefined as NodeJS.Timeout | undefined }
    const main = async () => {
      await Promise.resolve()
      await new Promise((resolve) => {
        timer.handle = setTimeout(resolve, 50_000)
      })
    }
    const running = world.clock
    running.defer(() => void main())
    const error = await world.run(never()).catch((e: unknown) => e)
    clearTimeout(timer.handle)
    expect(isPostgradError(error, 'SIM_DEADLOCK')).toBe(true)
    expect(error).toMatchObject({ values: { seed: 77, unopened: ['a→b'], real: ['Timeout'] } })
    expect((error as Error).message).toContain('real timers and I/O do not run in a simulation')
  })

  test('a program that defers to real immediates is waited for', async () => {
    const world = new SimWorld(1)
    await world.run(new Promise<void>((resolve) => setImmediate(resolve)))
  })

  test('SIM_LIMIT ends what repeats for ever: by time for a heartbeat, by steps for a ping-pong', async () => {
    const beating = new SimWorld(1, { timeMsMax: 10_000 })
    const beat = () => void beating.clock.setTimer(1000, beat)
    beat()
    await expect(beating.run(never())).rejects.toMatchObject({ code: 'SIM_LIMIT', values: { timeMs: 10_000 } })

    const world = new SimWorld(1, { stepsMax: 100 })
    const [a, b] = world.link('a', 'b')
    a.open(receiver(() => a.send(frame('ping'))))
    b.open(receiver(() => b.send(frame('pong'))))
    a.send(frame('ping'))
    await expect(world.run(never())).rejects.toMatchObject({ code: 'SIM_LIMIT', message: expect.stringContaining('stepsMax') })
  })

  test('what a receiver throws ends the run, and the world can go on', async () => {
    const world = new SimWorld(1, { arrival: 'at-once' })
    const [a, b] = world.link('a', 'b')
    const got: string[] = []
    b.open(
      receiver((word) => {
        got.push(word)
        if (word === '1') throw new Error('receiver')
      }),
    )
    for (const word of ['0', '1', '2']) a.send(frame(word))
    await expect(world.run(never())).rejects.toThrow('receiver')
    await world.drain()
    expect(got).toEqual(['0', '1', '2'])
  })

  test('two runs at once are a bug', async () => {
    const world = new SimWorld(1)
    const first = world.drain()
    await expect(world.drain()).rejects.toThrow('one caller at a time')
    await first
  })
})

describe('a crash', () => {
  test('of what was in flight a seeded number arrives, in order, then the notice; all numbers come up', async () => {
    const arrived = new Set<number>()
    for (let seed = 0; seed < 100; seed++) {
      const world = new SimWorld(seed)
      const [a, b] = world.link('a', 'b')
      const events: string[] = []
      b.open(receiver((word) => events.push(word), { onClose: (reason) => events.push(`${reason.by}: ${reason.detail}`) }))
      for (let i = 0; i < 3; i++) a.send(frame(`${i}`))
      world.crash('a')
      a.send(frame('from the grave'))
      expect(a.closed).toBe(true)
      await world.drain()
      const count = events.length - 1
      arrived.add(count)
      expect(events).toEqual([...['0', '1', '2'].slice(0, count), "peer: worker 'a' crashed"])
      expect(() => b.send(frame('x'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
    }
    expect([...arrived].sort()).toEqual([0, 1, 2, 3])
  })

  test('the dead hear nothing: frames to them vanish, their timers and turns never run, nor any they set later', async () => {
    const world = new SimWorld(3)
    const [a, b] = world.link('a', 'b')
    const seen: string[] = []
    const dead = world.clockOf('a')
    a.open(receiver((word) => seen.push(word), { onClose: () => seen.push('closed'), onTurnEnd: () => seen.push('turn') }))
    b.send(frame('x'))
    dead.setTimer(0, () => seen.push('timer'))
    dead.setTimer(100, () => seen.push('late timer'))
    dead.defer(() => seen.push('defer'))
    world.crash('a')
    world.crash('a')
    dead.setTimer(0, () => seen.push('timer after'))
    dead.defer(() => seen.push('defer after'))
    while (world.step());
    expect(seen).toEqual([])
    expect(world.nowMs).toBe(0)
    expect(world.trace.events.map((event) => event.kind)).toEqual(['crash'])
    expect(() => world.link('b', 'a')).toThrow(expect.objectContaining({ code: 'SIM_CRASHED' }))
  })

  test('inside a delivery it ends the turn there, and others live on', async () => {
    const world = new SimWorld(4, { arrival: 'at-once' })
    const [a, b] = world.link('a', 'b')
    const [b2, c] = world.link('b', 'c')
    const seen: string[] = []
    b.open(
      receiver(
        (word) => {
          seen.push(`b ${word}`)
          if (word === '1') world.crash('b')
        },
        { onTurnEnd: () => seen.push('b turn') },
      ),
    )
    a.open(receiver(() => {}, { onClose: (reason) => seen.push(`a hears ${reason.by}`) }))
    c.open(receiver((word) => seen.push(`c ${word}`), { onClose: () => seen.push('c hears') }))
    b2.close()
    for (const word of ['0', '1', '2']) a.send(frame(word))
    await world.drain()
    expect(seen.filter((s) => s.startsWith('b'))).toEqual(['b 0', 'b 1'])
    expect(seen).toContain('a hears peer')
    expect(seen.filter((s) => s === 'c hears')).toEqual(['c hears'])
  })

  test('an end that had closed itself hears only that', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const world = new SimWorld(seed)
      const [a, b] = world.link('a', 'b')
      const reasons: string[] = []
      b.open(receiver(() => {}, { onClose: (reason) => reasons.push(reason.by) }))
      a.send(frame('x'))
      b.close()
      world.crash('a')
      await world.drain()
      expect(reasons).toEqual(['self'])
    }
  })
})

describe('the trace', () => {
  test('keeps the last events within its bound; its hash covers all', async () => {
    const whole = await busyRun(9)
    const bounded = await busyRun(9, { traceEventsMax: 10 })
    expect(bounded.world.trace.events).toEqual(whole.world.trace.events.slice(-10))
    expect(bounded.world.trace.hash).toBe(whole.world.trace.hash)
    expect(bounded.world.trace.text.split('\n')[0]).toBe(`(${whole.world.trace.count - 10} earlier events were not kept)`)
    const none = await busyRun(9, { traceEventsMax: 0 })
    expect([none.world.trace.hash, none.world.trace.events.length]).toEqual([whole.world.trace.hash, 0])
  })

  test('has a line per event', async () => {
    const world = new SimWorld(1)
    const [a, b] = world.link('a', 'b')
    b.open(receiver(() => world.clockOf('b').setTimer(1.5, () => b.close())))
    a.send({ header: new Uint8Array([1, 2, 3]), segments: [new Uint8Array([4, 5])] })
    while (world.step());
    expect(world.trace.text.replace(/[0-9a-f]{8}$/m, 'HASH')).toBe(
      ['#1 0 ms frame a→b 5 B HASH', '#2 1.5 ms time', '#2 1.5 ms timer b', '#3 1.5 ms close b'].join('\n'),
    )
  })

  test('sees every byte', async () => {
    const hashes = new Set<string>()
    const base = [1, 2, 3, 4, 5, 6, 7]
    for (let at = 0; at <= base.length; at++) {
      const world = new SimWorld(1)
      const [a, b] = world.link('a', 'b')
      b.open(receiver(() => {}))
      const bytes = new Uint8Array(base)
      if (at < base.length) bytes[at] = 99
      a.send({ header: bytes.subarray(0, 3), segments: [bytes.subarray(3)] })
      await world.drain()
      hashes.add(world.trace.hash)
    }
    expect(hashes.size).toBe(base.length + 1)
  })
})
