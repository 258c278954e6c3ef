/** The ledger against a model: random passes of which all is known, reports that arrive late, and whether it sees that the pass ended. */
import { describe, expect, test } from '@jest/globals'
import { Random } from '@postgrad/sim/internal'
import { PassLedger } from './pass-ledger.js'

const ROOT = 0

class ModelWorker {
  received = 0
  readonly sent = new Map<number, number>()
  version = 0
  /** Node tasks that are queued: above 0 the worker is active. */
  queued = 0
  changed = false
}

/** Runs a random pass and asks the ledger after every event that lets the root ask; returns how often it asked. */
function runModel(seed: number): number {
  const random = new Random(seed)
  const workers = Array.from({ length: 2 + random.below(4) }, () => new ModelWorker())
  const ledger = new PassLedger()
  const links = new Map<string, (() => void)[]>()
  const post = (from: number, to: number, fn: () => void) => {
    const key = `${from}→${to}`
    links.set(key, [...(links.get(key) ?? []), fn])
  }
  let energy = 40
  workers[ROOT]!.queued = 1 + random.below(3)
  let asked = 0
  const check = () => {
    const root = workers[ROOT]!
    if (root.queued > 0) return
    asked++
    const gradientsInFlight = workers.some((worker, id) => sumTo(workers, id) !== worker.received)
    const over = !gradientsInFlight && workers.every((worker) => worker.queued === 0)
    if (ledger.balanced && !over) throw new Error(`seed ${seed}: the ledger says ended, and it has not`)
  }
  const passive = (id: number) => {
    const worker = workers[id]!
    if (worker.queued > 0) return
    const row = { version: ++worker.version, received: worker.received, sent: [...worker.sent], missingCount: 0, missingSample: [] }
    if (id === ROOT) ledger.report(ROOT, row)
    else post(id, ROOT, () => ledger.report(id, row))
    check()
  }
  const runTask = (id: number) => {
    const worker = workers[id]!
    worker.queued--
    for (let n = random.below(3); n > 0 && energy > 0; n--) {
      energy--
      const to = random.below(workers.length)
      worker.sent.set(to, (worker.sent.get(to) ?? 0) + 1)
      post(id, to, () => {
        workers[to]!.received++
        workers[to]!.queued += 1 + random.below(2)
      })
    }
    passive(id)
  }
  for (;;) {
    const events: (() => void)[] = []
    workers.forEach((worker, id) => {
      if (worker.queued > 0) events.push(() => runTask(id))
    })
    for (const [key, queue] of links) {
      if (queue.length > 0)
        events.push(() => {
          links.get(key)!.shift()!()
          check()
        })
    }
    if (events.length === 0) break
    events[random.below(events.length)]!()
  }
  if (!ledger.balanced) throw new Error(`seed ${seed}: it has ended, and the ledger does not say so`)
  return asked
}

function sumTo(workers: readonly ModelWorker[], id: number): number {
  return workers.reduce((sum, worker) => sum + (worker.sent.get(id) ?? 0), 0)
}

describe('PassLedger', () => {
  test('DA-22 says that a pass has ended when it has, and never before, over 3000 seeds', () => {
    let asked = 0
    for (let seed = 0; seed < 3000; seed++) asked += runModel(seed)
    // The check can fail only if the root asked while others were still at it.
    expect(asked).toBeGreaterThan(10_000)
  })

  test('DA-22 a worker to which something was sent and that has said nothing keeps the pass open', () => {
    const ledger = new PassLedger()
    ledger.report(0, { version: 1, received: 0, sent: [[1, 1]], missingCount: 0, missingSample: [] })
    expect(ledger.balanced).toBe(false)
    expect(ledger.unbalanced()).toEqual([1])
    expect([...ledger.participants()]).toEqual([0, 1])
    ledger.report(1, {
      version: 1,
      received: 1,
      sent: [],
      missingCount: 2,
      missingSample: [
        [7n, 0, 'the call'],
        [8n, 0, 'the result'],
      ],
    })
    expect(ledger.balanced).toBe(true)
    expect(ledger.incomplete().map(([worker]) => worker)).toEqual([1])
  })

  test('DA-22 an older report than the newest is ignored', () => {
    const ledger = new PassLedger()
    ledger.report(1, { version: 2, received: 2, sent: [[0, 1]], missingCount: 0, missingSample: [] })
    ledger.report(1, { version: 1, received: 1, sent: [], missingCount: 1, missingSample: [] })
    expect(ledger.unbalanced().sort()).toEqual([0, 1])
    expect(ledger.incomplete()).toEqual([])
  })
})
