/** Sums of a trace: own times, what waits, what never ended. */
import { expect, test } from '@jest/globals'
import type { TraceEvent } from '@postgrad/base/internal'
import { TraceTotals, traceText } from './trace-totals.js'

function totalsOf(events: readonly Pick<TraceEvent, 'phase' | 'kind' | 'name' | 'span' | 'atMs'>[]) {
  const totals = new TraceTotals()
  for (const event of events) totals.read({ values: { way: 'sent' }, ...event })
  return totals.sorted
}

const event = (phase: TraceEvent['phase'], kind: TraceEvent['kind'], name: string, span: number, atMs: number) => ({
  phase,
  kind,
  name,
  span,
  atMs,
})

test('own time is what no span within it takes, over all levels', () => {
  const totals = totalsOf([
    event('begin', 'node', 'MulBackward', 1, 0),
    event('begin', 'operation', 'mul', 2, 1),
    event('begin', 'kernel', 'mul', 3, 2),
    event('end', 'kernel', 'mul', 3, 6),
    event('end', 'operation', 'mul', 2, 7),
    event('begin', 'kernel', 'mul', 4, 8),
    event('end', 'kernel', 'mul', 4, 9),
    event('end', 'node', 'MulBackward', 1, 10),
  ])
  expect(totals).toEqual([
    { what: 'kernel mul', count: 2, ms: 5, ownMs: 5 },
    { what: 'node MulBackward', count: 1, ms: 10, ownMs: 3 },
    { what: 'operation mul', count: 1, ms: 6, ownMs: 2 },
  ])
})

test('calls and waits overlap what is computed, and take nothing from it', () => {
  const totals = totalsOf([
    event('begin', 'call', 'echo', 1, 0),
    event('value', 'message', 'CALL', 0, 1),
    event('begin', 'operation', 'add', 2, 1),
    event('begin', 'call', 'echo', 3, 2),
    event('end', 'operation', 'add', 2, 4),
    event('end', 'call', 'echo', 1, 9),
    event('end', 'call', 'unknown', 77, 9),
  ])
  expect(totals).toEqual([
    { what: 'operation add', count: 1, ms: 3, ownMs: 3 },
    { what: 'call echo', count: 2, ms: 9, ownMs: null },
    { what: 'message CALL sent', count: 1, ms: 0, ownMs: null },
  ])
})

test('the text has times of one of n, and a line for each sum', () => {
  const text = traceText('worker0', 10, [
    { what: 'kernel mul', count: 20, ms: 5, ownMs: 5 },
    { what: 'call echo', count: 5, ms: 9, ownMs: null },
  ])
  expect(text).toHaveLength(3)
  expect(text[0]).toMatch(/worker0, each of 10 times: +times +own µs +µs$/)
  expect(text[1]).toMatch(/kernel mul +2\.00 +500\.00 +500\.00$/)
  expect(text[2]).toMatch(/call echo +0\.50 +- +900\.00$/)
})
