/** Tests an envelope's trace field: setting one of its parts leaves the others as they were, and all survive the wire. */
import { describe, expect, test } from '@jest/globals'
import { Codec } from './codec.js'
import { MessageType } from './message-type.js'
import { anomalyOf, chainOf, headersOf, isWatched, setAnomaly, setChain, setHeaders, setWatched } from './trace-field.js'

describe('the trace field', () => {
  test('chain and headers are set in any order, and read at the other end', () => {
    const codec = new Codec()
    const headers = { traceparent: '00-1', n: 1, ok: true, none: null, big: 2n ** 63n }
    for (const chainFirst of [true, false]) {
      const out = codec.prepare(MessageType.CALL, ['f', []])
      expect([chainOf(out), headersOf(out)]).toEqual([null, null])
      if (chainFirst) setChain(out, 7n)
      setHeaders(out, headers)
      if (!chainFirst) setChain(out, 7n)
      const message = codec.decode(codec.encode(out))
      expect(chainOf(message)).toBe(7n)
      expect(headersOf(message)).toEqual(headers)
    }
  })

  test('anomaly mode beside them, or alone', () => {
    const codec = new Codec()
    const out = codec.prepare(MessageType.CALL, ['f', []])
    setAnomaly(out, 'nan')
    expect([anomalyOf(out), chainOf(out), headersOf(out)]).toEqual(['nan', null, null])
    setChain(out, 7n)
    setHeaders(out, { a: 1 })
    const message = codec.decode(codec.encode(out))
    expect([anomalyOf(message), chainOf(message), headersOf(message)]).toEqual(['nan', 7n, { a: 1 }])
    for (const trace of [null, [], [null, null], [null, null, 'all'], 'nan']) expect(anomalyOf({ trace })).toBeNull()
  })

  test('that the maker of an actor watches it, beside them, or alone', () => {
    const codec = new Codec()
    const out = codec.prepare(MessageType.REMOTE_CALL, ['f', [], 1n, 2n])
    expect(isWatched(out)).toBe(false)
    setWatched(out)
    expect([anomalyOf(out), chainOf(out), headersOf(out)]).toEqual([null, null, null])
    setChain(out, 7n)
    setAnomaly(out, 'throw')
    const message = codec.decode(codec.encode(out))
    expect([isWatched(message), anomalyOf(message), chainOf(message)]).toEqual([true, 'throw', 7n])
    for (const trace of [null, [], [null, null, null, 1], 'true']) expect(isWatched({ trace })).toBe(false)
  })

  test('what is of another layout is no chain and no header', () => {
    for (const trace of [null, 7n, 'x', {}, [], [1], ['x', [1]], [null, 'x']]) {
      expect(chainOf({ trace })).toBeNull()
      expect(headersOf({ trace })).toBeNull()
    }
    expect(headersOf({ trace: [null, { a: 1, b: [], c: {} }] })).toEqual({ a: 1 })
  })
})
