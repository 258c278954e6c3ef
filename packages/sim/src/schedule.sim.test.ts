/** Schedules: which questions a world asks, which answers it writes down, and that the answers that it wrote down repeat the run. */
import { expect, test } from '@jest/globals'
import type { Frame, Link } from '@postgrad/transport'
import type { FaultRule } from './faults.js'
import { type DrawKind, FairSchedule, type Possible, ReplaySchedule, type Schedule, SeedSchedule } from './schedule.js'
import { SimWorld, type SimWorldOptions } from './world.js'

const frame = (text: string): Frame => ({ header: new Uint8Array(Buffer.from(text)), segments: [] })
const NAMES = ['a', 'b', 'c']

/** Three workers that answer each other, defer and set timers; one of them crashes. Every kind of question comes up. */
async function busyRun(seed: number, options: SimWorldOptions = {}): Promise<SimWorld> {
  const world = new SimWorld(seed, options)
  let frames = 0
  const open = (me: string, end: Link) => {
    const clock = world.clockOf(me)
    end.open({
      onFrame: ({ header }) => {
        if (++frames === 30) world.crash('c')
        const left = Number(Buffer.from(header).toString())
        if (left === 0 || end.closed) return
        const answer = () => end.closed || end.send(frame(`${left - 1}`))
        if (left % 3 === 0) clock.defer(answer)
        else if (left % 3 === 1) clock.setTimer(left % 2, answer)
        else answer()
        if (left === 4) end.poll()
      },
      onTurnEnd() {},
      onClose() {},
    })
    for (let n = 0; n < 8; n++) end.send(frame(`${n % 7}`))
  }
  for (const [i, x] of NAMES.entries()) {
    for (const y of NAMES.slice(i + 1)) {
      const [atX, atY] = world.link(x, y)
      open(x, atX)
      open(y, atY)
    }
  }
  await world.run(new Promise<void>((resolve) => world.clock.setTimer(1000, resolve)))
  return world
}

const FAULTS: FaultRule[] = [{ match: { probability: 0.3 }, do: 'drop' }]

test('TK-1: a seed decides as it did before there were schedules', async () => {
  // Written by the world that drew from its seed itself.
  expect((await busyRun(7)).trace.hash).toBe('c8d7aee168c3838d')
  expect((await busyRun(7, { faults: { rules: FAULTS } })).trace.hash).toBe('4d86830ef8d5bcf7')
})

test('TK-1: a schedule is asked only where there is more than one answer, and about what is possible', async () => {
  const kinds = new Set<DrawKind>()
  const labels = new Set<string>()
  const numbers = new Map<string, number>()
  const seeded = new SeedSchedule(3)
  const asked: Schedule = {
    next(possible: Possible) {
      expect(possible.size).toBeGreaterThan(1)
      const here = Array.from({ length: possible.size }, (_, i) => possible.get(i))
      for (const { label, number, worker } of here) {
        labels.add(label)
        expect(numbers.get(label) ?? number).toBe(number)
        numbers.set(label, number)
        expect(label.split('/')[0]!.split('→').at(-1)).toBe(worker)
      }
      expect(new Set(here.map(({ label }) => label)).size).toBe(possible.size)
      expect(new Set(here.map(({ since }) => since)).size).toBe(possible.size)
      return seeded.next(possible)
    },
    draw(kind, label, count, chance) {
      expect(count).toBeGreaterThan(1)
      kinds.add(kind)
      return seeded.draw(kind, label, count, chance)
    },
  }
  const world = await busyRun(3, { schedule: asked, faults: { rules: FAULTS } })
  expect(world.trace.hash).toBe((await busyRun(3, { faults: { rules: FAULTS } })).trace.hash)
  expect([...kinds].sort()).toEqual(['arrival', 'cut', 'fault', 'turn'])
  expect([...labels].sort()).toEqual(['a', 'a→b', 'a→c', 'b', 'b→a', 'b→c', 'c', 'c→a', 'c→b'])
})

test('TK-1: labels and numbers are the same in every run', async () => {
  const seen = async (seed: number) => {
    const numbers: Record<string, number> = {}
    const seeded = new SeedSchedule(seed)
    const next = (possible: Possible) => {
      for (let i = 0; i < possible.size; i++) numbers[possible.get(i).label] = possible.get(i).number
      return seeded.next(possible)
    }
    await busyRun(seed, { schedule: { next, draw: (...draw) => seeded.draw(...draw) } })
    return Object.fromEntries(Object.entries(numbers).sort())
  }
  const first = await seen(0)
  for (let seed = 1; seed < 5; seed++) expect(await seen(seed)).toEqual(first)
})

test('TK-2: the decisions that a world wrote down give the same run, and their prefixes its beginning', async () => {
  for (const options of [{}, { faults: { rules: FAULTS } }, { arrival: 'at-once' }] satisfies SimWorldOptions[]) {
    const first = await busyRun(11, options)
    const { decisions } = first
    expect(decisions.length).toBeGreaterThan(50)
    const replay = new ReplaySchedule(decisions)
    const again = await busyRun(11, { ...options, schedule: replay })
    expect(again.trace.text).toBe(first.trace.text)
    expect(again.decisions).toEqual(decisions)
    expect([replay.used, replay.misfits]).toEqual([decisions.length, 0])
    for (const length of [0, 1, 7, 50]) {
      const part = await busyRun(11, { ...options, schedule: new ReplaySchedule(decisions.slice(0, length), new SeedSchedule(5)) })
      expect(part.decisions.slice(0, length)).toEqual(decisions.slice(0, length))
    }
  }
})

test('TK-2: an edited list is answered where it fits, by the fallback where it does not, and is one run each time', async () => {
  const { decisions } = await busyRun(11)
  // Without every third entry; then with entries that nothing fits.
  for (const edited of [
    decisions.filter((_, i) => i % 3 > 0),
    decisions.map((entry, i) => (i % 5 === 0 ? (entry > 0 ? 999 : -999) : entry)),
  ]) {
    const schedule = new ReplaySchedule(edited)
    const first = await busyRun(11, { schedule })
    expect(schedule.misfits).toBeGreaterThan(0)
    expect((await busyRun(11, { schedule: new ReplaySchedule(edited) })).trace.hash).toBe(first.trace.hash)
    // The run's own list fits.
    const fits = new ReplaySchedule(first.decisions)
    expect((await busyRun(11, { schedule: fits })).trace.hash).toBe(first.trace.hash)
    expect(fits.misfits).toBe(0)
  }
  const nothingSaid = new ReplaySchedule(decisions.map((entry) => (entry > 0 ? 0 : -1)))
  expect((await busyRun(11, { schedule: nothingSaid })).trace.hash).toBe((await busyRun(11, { schedule: new FairSchedule() })).trace.hash)
})

test('TK-2: by age, what waits is never passed by more than what waited before it', async () => {
  const waits = new Map<string, number>()
  const fair = new FairSchedule()
  let longest = 0
  const next = (possible: Possible) => {
    const at = fair.next(possible)
    for (let i = 0; i < possible.size; i++) {
      const { label } = possible.get(i)
      waits.set(label, i === at ? 0 : (waits.get(label) ?? 0) + 1)
      longest = Math.max(longest, waits.get(label)!)
    }
    return at
  }
  await busyRun(1, { schedule: { next, draw: () => 0 } })
  expect(longest).toBeGreaterThan(3)
  // Ten choices there are at most.
  expect(longest).toBeLessThan(10)
})

test('TK-1: an answer that is none ends the run', async () => {
  const run = (next: number, draw: number) => busyRun(0, { schedule: { next: () => next, draw: () => draw } })
  await expect(run(99, 0)).rejects.toThrow('a schedule chose 99 of')
  await expect(run(0.5, 0)).rejects.toThrow('a schedule chose 0.5 of')
  await expect(run(0, -1)).rejects.toThrow("a schedule drew -1 of 2 for 'arrival'")
})
