/** The readable trace and the diagram: names of messages, their faults, and what is left out of long runs. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { call, expose, remote, stream } from '@postgrad/rpc'
import { designNoteOn, readGolden } from '@postgrad/testing-cases'
import { type SimCluster, simulate } from '../simulate/simulate.js'

const echo = (value: unknown) => value
class Counter {
  private sum = 0
  bump(by: number): number {
    this.sum += by
    return this.sum
  }
}
function* upTo(to: number): Generator<number> {
  for (let n = 0; n < to; n++) yield n
}
const fails = () => {
  throw new RangeError('on purpose')
}
expose({ 'trace.echo': echo, 'trace.Counter': Counter, 'trace.upTo': upTo, 'trace.fails': fails })

const { inputs } = readGolden().design_note!
const workers = ['worker0', 'worker1', 'worker2']
const directory = mkdtempSync(join(tmpdir(), 'postgrad-trace-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** Elements of each kind; that every one is closed. */
function elements(svg: string): Record<string, number> {
  const counts: Record<string, number> = {}
  const open: string[] = []
  for (const [, end, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (end === '/') expect(open.pop()).toBe(name)
    else {
      counts[name!] = (counts[name!] ?? 0) + 1
      if (self !== '/') open.push(name!)
    }
  }
  expect(open).toEqual([])
  return counts
}

const many = (count: number) => async (sim: SimCluster) =>
  sim.on('worker0').run(async () => {
    for (let i = 0; i < count; i++) await call(`worker${1 + (i % 2)}`, echo, [i])
  })

describe('the readable trace', () => {
  test('TK-29 names functions, requests, contexts and passes, and which answer is to which call', async () => {
    const { trace } = await simulate({ workers: 2, seed: 3 }, (sim) => sim.on('worker0').run(designNoteOn, 'worker1', inputs))
    const lines = trace.readable.split('\n').map((line) => line.replace(/^#\d+ /, ''))
    expect(lines.slice(0, 3)).toEqual([
      '0 ms  worker0 → worker1: call tensor.add #1, context 0.0',
      '0 ms  worker1 → worker0: result of tensor.add #1',
      expect.stringMatching(/^0 ms {2}worker0 → worker1: gradients of message 1\.0, pass 0\.\d$/),
    ])
    expect(lines.at(-1)).toBe('0 ms  worker0 → worker1: release context 0.0')
  })

  test('TK-29 tells methods, streams, references, errors, and what faults did to them', async () => {
    const faults = [
      { match: { kind: 'REMOTE_CALL' }, do: 'drop', times: 1 },
      { match: { kind: 'EXCEPTION' }, do: 'delay', delayMs: 5 },
    ] as const
    const { trace } = await simulate({ workers, seed: 1, faults }, async (sim) => {
      await sim.on('worker0').run(async () => {
        const counter = remote('worker2', Counter, [])
        await counter.call('bump', [1])
        counter.dispose()
        for await (const _ of stream('worker1', upTo, [2])) await Promise.resolve()
        await call('worker1', fails).catch(() => {})
      })
      sim.crash('worker2')
      sim.restart('worker2')
      await new Promise<void>((resolve) => sim.world.clock.setTimer(5, resolve))
    })
    for (const part of [
      'lost: remote trace.Counter #',
      'remote trace.Counter #1 (again)',
      'call method bump #',
      'result of method bump #',
      'rref user delete 0.',
      'call stream of trace.upTo #',
      'item of stream of trace.upTo #',
      'put off: error of trace.fails #',
      'worker2 crashes',
      'worker2 may live again',
      'learns that the link from worker2 has ended',
      '— time advances to here —',
    ]) {
      expect(trace.readable).toContain(part)
    }
    // A message that came late was not sent twice.
    expect(trace.readable).toMatch(/worker1 → worker0: error of trace\.fails #\d+$/m)
    // Named or not, it is the same trace.
    expect(trace.readable.split('\n')).toHaveLength(trace.text.split('\n').length)
  })
})

describe('the diagram', () => {
  test('TK-30 is a well-formed picture: a lifeline for each worker, an arrow for each frame, and what was done', async () => {
    const faults = [{ match: { kind: 'RESULT', nth: 2 }, do: 'drop' }] as const
    const { trace, faults: done } = await simulate({ workers, seed: 2, faults }, many(4))
    const svg = trace.diagram({ title: 'a <title> & more', note: 'why\nit ended' })
    const counts = elements(svg)
    const frames = trace.named.filter(({ kind, family }) => ['frame', 'poll', 'drop'].includes(kind) && family !== 'ack').length
    expect(counts.g).toBe(frames)
    expect(svg.match(/class="life"/g)).toHaveLength(3)
    expect(svg.match(/✕/g)).toHaveLength(done.drop)
    expect(svg).toContain('a &lt;title&gt; &amp; more')
    expect(svg).toContain('>it ended</text>')
    expect(svg).toContain('are not drawn')
    expect(trace.diagram({ all: true }).length).toBeGreaterThan(svg.length)
    writeFileSync(join(directory, 'looked-at.svg'), svg)
  })

  test('TK-30 of a long run the beginning and the end are drawn, and what is between them, or was not kept, is counted', async () => {
    const { trace } = await simulate({ workers, seed: 1, world: { traceEventsMax: 500 } }, many(1000))
    const svg = trace.diagram({ eventsMax: 60 })
    expect(elements(svg).g).toBe(60)
    expect(svg).toContain(`… ${trace.count - 500} earlier events were not kept …`)
    expect(svg).toContain('… 440 events are left out …')
  })

  test('TK-30 a crash changes the lifeline, a new life changes it back, also where that is left out', async () => {
    const { trace } = await simulate({ workers, seed: 1, faults: [] }, async (sim) => {
      sim.crash('worker2')
      sim.restart('worker2')
      await sim.on('worker0').run(() => call('worker1', echo, [1]))
      sim.crash('worker1')
      await new Promise<void>((resolve) => sim.world.clock.setTimer(5, resolve))
    })
    for (const eventsMax of [300, 1]) {
      const svg = trace.diagram({ eventsMax })
      elements(svg)
      expect(svg.match(/class="dead"/g)).toHaveLength(2)
      expect(svg.match(/class="life"/g)).toHaveLength(4)
    }
  })
})

describe('files of a failed run', () => {
  const body = async (sim: SimCluster) => {
    await many(3)(sim)
    throw new RangeError('wrong <in the end>')
  }

  test('TK-31 a failed run writes its trace and its diagram where it is told to, and says so; another writes nothing', async () => {
    const at = join(directory, 'deep', 'er')
    const error = await simulate({ workers, seed: 4, traceDir: at, name: 'my run' }, body).catch((thrown: Error) => thrown)
    const [svg, text] = readdirSync(at).sort()
    expect([svg, text]).toEqual([expect.stringMatching(/my-run.*seed4\.svg$|seed4\.svg$/), expect.stringMatching(/seed4\.txt$/)])
    expect((error as Error).stack).toContain(`as a diagram: ${join(at, svg!)}`)
    expect(readFileSync(join(at, text!), 'utf8')).toContain('worker0 → worker1: call trace.echo #1')
    expect(readFileSync(join(at, text!), 'utf8')).toContain('wrong <in the end>')
    elements(readFileSync(join(at, svg!), 'utf8'))
    await simulate({ workers, seed: 5, traceDir: at }, many(2))
    expect(readdirSync(at)).toHaveLength(2)
  })

  test('TK-31 a place that cannot be written to does not hide the failure', async () => {
    const blocked = join(directory, 'a-file')
    writeFileSync(blocked, '')
    const error = await simulate({ workers, traceDir: blocked }, body).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ message: 'wrong <in the end>' })
    expect((error as Error).stack).toContain('could not be written to')
  })
})
