/**
 * Little programs of a world, without runtimes: a few workers whose answers depend on all frames that they have received, so that another order at
 * one worker is another outcome. And a plain search through all answers to all questions, one after another: `search.sim.test.ts` compares the clever
 * one with it.
 */
import type { DrawKind, Possible, PossibleChoice, Schedule, SimWorldOptions } from '@postgrad/sim'
import { mix32, Random, SimWorld } from '@postgrad/sim/internal'
import type { Link } from '@postgrad/transport'
import { Order, OrderRecorder } from './order.js'
import { Search } from './search.js'

export interface Little {
  readonly workers: number
  /** Of what the workers do. */
  readonly seed: number
  /** Frames that are sent at the beginning, and how many any worker may send later. */
  readonly first: number
  readonly later: number
  /** What else the workers do. */
  readonly defers: boolean
  readonly timers: boolean
  readonly polls: boolean
  /** The program around them acts too: when a worker has received a frame, it makes another one send. */
  readonly driver: boolean
  readonly crashes?: boolean
  /** A worker may close one of its links. */
  readonly closes?: boolean
  readonly world?: Omit<SimWorldOptions, 'schedule' | 'observer'>
}

/** Runs it to its end; digests each worker's frames, in order. */
export async function runLittle(little: Little, options: Pick<SimWorldOptions, 'schedule' | 'observer'>): Promise<string> {
  const world = new SimWorld(0, { ...little.world, ...options, traceEventsMax: 0 })
  const names = Array.from({ length: little.workers }, (_, i) => `w${i}`)
  const heard = names.map(() => 0)
  const left = names.map(() => little.later)
  const links = new Map<string, Link>()
  let driverHeard = 0
  let driverLeft = 2
  const send = (from: number, to: number, byte: number) =>
    links.get(`${from}${to}`)!.send({ header: new Uint8Array([byte & 255]), segments: [] })

  /** A worker acts after a frame: all that it has received decides how. */
  const act = (me: number) => {
    const random = new Random(mix32(heard[me]! ^ little.seed))
    const clock = world.clockOf(names[me]!)
    if (little.crashes && random.below(4) === 0) world.crash(names[(me + 1) % little.workers]!)
    if (little.closes && random.below(3) === 0) links.get(`${me}${(me + 1) % little.workers}`)!.close()
    for (let n = random.below(3); n > 0 && left[me]! > 0; n--) {
      left[me]!--
      const to = (me + 1 + random.below(little.workers - 1)) % little.workers
      const way = random.below(6)
      const go = () => links.get(`${me}${to}`)!.closed || send(me, to, heard[me]!)
      if (way === 0 && little.defers) clock.defer(go)
      else if (way === 1 && little.timers) clock.setTimer(0, go)
      else if (way === 2 && little.timers) clock.setTimer(1 + random.below(2), go)
      else if (way === 3 && little.polls) links.get(`${me}${to}`)!.poll()
      else go()
    }
    if (little.driver && random.below(2) === 0) {
      world.touch('')
      driverHeard = mix32(driverHeard ^ heard[me]!)
      const from = (driverHeard >>> 0) % little.workers
      if (driverLeft-- > 0) send(from, (from + 1) % little.workers, driverHeard)
    }
  }
  for (let a = 0; a < little.workers; a++) {
    for (let b = a + 1; b < little.workers; b++) {
      const ends = world.link(names[a]!, names[b]!)
      for (const [me, peer, end] of [
        [a, b, ends[0]],
        [b, a, ends[1]],
      ] as const) {
        links.set(`${me}${peer}`, end)
        end.open({
          onFrame: ({ header }) => {
            heard[me] = mix32(heard[me]! ^ mix32((header[0]! << 8) ^ peer))
            act(me)
          },
          onTurnEnd: () => {
            heard[me] = mix32(heard[me]! ^ 0x77)
          },
          onClose: () => {
            heard[me] = mix32(heard[me]! ^ 0x99)
          },
        })
      }
    }
  }
  const random = new Random(little.seed)
  for (let n = 0; n < little.first; n++) {
    const from = random.below(little.workers)
    send(from, (from + 1 + random.below(little.workers - 1)) % little.workers, n)
  }
  await world.drain()
  while (world.step()) await world.drain()
  return `${heard.map((state) => (state >>> 0).toString(16)).join(' ')} ${driverHeard}`
}

export interface Found {
  readonly outcomes: ReadonlySet<string>
  readonly orders: ReadonlySet<string>
  readonly runs: number
}

/** Every answer to every question, as an odometer counts. Null beyond `runsMax`. */
export async function searchAll(little: Little, runsMax: number): Promise<Found | null> {
  const outcomes = new Set<string>()
  const orders = new Set<string>()
  const answers: { value: number; of: number }[] = []
  let runs = 0
  do {
    if (++runs > runsMax) return null
    let asked = 0
    const recorder = new OrderRecorder()
    const ask = (of: number) => {
      if (asked === answers.length) answers.push({ value: 0, of })
      return answers[asked++]!.value
    }
    const schedule: Schedule = {
      next: (possible: Possible) => ask(possible.size),
      draw: (kind: DrawKind, _label: string, of: number) => {
        const value = ask(of)
        recorder.drew(kind, value, of)
        return value
      },
    }
    outcomes.add(await runLittle(little, { schedule, observer: recorder }))
    orders.add(new Order(recorder.events).fingerprint)
    while (answers.length > 0 && ++answers.at(-1)!.value === answers.at(-1)!.of) answers.pop()
  } while (answers.length > 0)
  return { outcomes, orders, runs }
}

export interface Searched extends Found {
  readonly search: Search
}

export async function searchCleverly(little: Little, runsMax = Number.POSITIVE_INFINITY): Promise<Searched> {
  const outcomes = new Set<string>()
  const orders = new Set<string>()
  const search = new Search()
  let runs = 0
  for (; !search.exhausted && runs < runsMax; runs++) {
    const run = search.start()
    outcomes.add(await runLittle(little, { schedule: run, observer: run }))
    if (run.parting !== null) throw new Error(`parted: ${JSON.stringify(run.parting)}`)
    orders.add(search.finish(run).fingerprint)
  }
  return { outcomes, orders, runs, search }
}

export type { PossibleChoice }
