/** Tests the tracer: which events a reader gets, and how the ends of a span are paired. */
import { afterEach, describe, expect, test } from '@jest/globals'
import { withScope } from './scope.js'
import { endTrace, inSpan, type TraceEvent, trace, tracerOf } from './trace.js'

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  expect(tracerOf(null)).toBeNull()
})

const bugs: unknown[] = []
const optionsOf = (now = () => 0) => ({ now, onBug: (error: unknown) => bugs.push(error) })

/** The events of a worker, from here to the end of the test. */
function eventsOf(worker: object | null, now = () => 0): TraceEvent[] {
  const events: TraceEvent[] = []
  stops.push(trace(worker, optionsOf(now), (event) => events.push(event)))
  return events
}

const short = (events: readonly TraceEvent[]) => events.map(({ phase, name, span }) => `${phase} ${name} ${span}`)
const nothing = () => {}

describe('the tracer', () => {
  test('TRC-5: a span begins and ends at times of the given clock, and a value is one event', () => {
    let ms = 5
    const events = eventsOf(null, () => ms++)
    const span = tracerOf(null)!.begin('node', 'MulBackward', { depth: 2 })
    tracerOf(null)!.value('message', 'CALL', { way: 'sent' })
    span.end({ outcome: 'value' })
    expect(events).toEqual([
      { phase: 'begin', kind: 'node', name: 'MulBackward', atMs: 5, span: 1, values: { depth: 2 } },
      { phase: 'value', kind: 'message', name: 'CALL', atMs: 6, span: 0, values: { way: 'sent' } },
      { phase: 'end', kind: 'node', name: 'MulBackward', atMs: 7, span: 1, values: { outcome: 'value' } },
    ])
  })

  test('TRC-1: a reader gets the events of its worker alone, or of what is outside of all, and each counts its spans', () => {
    const [a, b] = [{}, {}]
    const ofA = eventsOf(a)
    const ofB = eventsOf(b)
    const outside = eventsOf(null)
    const inB = () => withScope({ worker: b }, () => inSpan('wait', 'get', undefined, nothing))
    withScope({ worker: a }, () => inSpan('operation', 'add', undefined, inB))
    withScope({ worker: {} }, () => inSpan('operation', 'unread', undefined, nothing))
    inSpan('operation', 'outside', undefined, nothing)
    expect(short(ofA)).toEqual(['begin add 1', 'end add 1'])
    expect(short(ofB)).toEqual(['begin get 1', 'end get 1'])
    expect(short(outside)).toEqual(['begin outside 1', 'end outside 1'])
  })

  test('TRC-2: a span ends when its function throws', () => {
    const events = eventsOf(null)
    const fails = () => {
      throw new RangeError('on purpose')
    }
    expect(() => inSpan('operation', 'add', undefined, fails)).toThrow('on purpose')
    expect(short(events)).toEqual(['begin add 1', 'end add 1'])
  })

  test('TRC-2: several readers each get all from when they began to read, and one function may read twice', () => {
    const events: TraceEvent[] = []
    const note = (event: TraceEvent) => events.push(event)
    const first = trace(null, optionsOf(), note)
    const span = tracerOf(null)!.begin('call', 'echo')
    const second = trace(null, optionsOf(), note)
    span.end()
    first()
    tracerOf(null)!.begin('call', 'again')
    second()
    second()
    expect(tracerOf(null)).toBeNull()
    expect(short(events)).toEqual(['begin echo 1', 'end echo 1', 'end echo 1', 'begin again 2'])
  })

  test('TRC-2: after its last reader a worker has a new tracer, and an end that comes late goes to nobody', () => {
    const before: TraceEvent[] = []
    const stop = trace(null, optionsOf(), (event) => before.push(event))
    const late = tracerOf(null)!.begin('call', 'late')
    stop()
    const events = eventsOf(null)
    stop()
    late.end()
    tracerOf(null)!.begin('call', 'next')
    expect(short(before)).toEqual(['begin late 1'])
    expect(short(events)).toEqual(['begin next 1'])
  })

  test('TRC-6: what a reader throws is reported, and reaches neither the code that is traced nor other readers', () => {
    stops.push(
      trace(null, optionsOf(), () => {
        throw new Error('of a reader')
      }),
    )
    const events = eventsOf(null)
    expect(inSpan('operation', 'add', undefined, () => 7)).toBe(7)
    expect(short(events)).toEqual(['begin add 1', 'end add 1'])
    expect(bugs.splice(0)).toMatchObject([{ message: 'of a reader' }, { message: 'of a reader' }])
  })

  test('TRC-2: a worker that closes has no readers any more', () => {
    const worker = {}
    const events = eventsOf(worker)
    const tracer = tracerOf(worker)!
    endTrace(worker)
    endTrace(worker)
    tracer.begin('call', 'late')
    expect(tracerOf(worker)).toBeNull()
    expect(events).toEqual([])
  })
})
