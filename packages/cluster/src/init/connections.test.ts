/** Where a process of a group listens, by its options. */
import { expect, test } from '@jest/globals'
import { deathRemedy, limitsOf, places } from './connections.js'

const PLACE = { meeting: { kind: 'tcp', host: '127.0.0.1', port: 1 }, rank: 0, worldSize: 1 } as unknown as Parameters<typeof places>[1]
const never = (): never => {
  throw new Error('no path is needed')
}

test('INI-9 by a socket and a port, or by what `transports` says', () => {
  const tcp = { kind: 'tcp', host: '127.0.0.1', port: 0 }
  const unix = { kind: 'unix', path: '/s' }
  expect(places({}, PLACE, () => '/s')).toEqual([unix, tcp])
  expect(places({ transports: ['unix'] }, PLACE, () => '/s')).toEqual([unix])
  expect(places({ transports: ['tcp'], ports: [4, 9], advertise: 'me' }, PLACE, never)).toEqual([{ ...tcp, port: [4, 9], advertise: 'me' }])
})

test.each([[[]], [['udp']], ['tcp']])('INI-9 transports %j are refused', (transports) => {
  expect(() => places({ transports: transports as never }, PLACE, never)).toThrow("transports among 'unix' and 'tcp'")
})

test('INI-9 one attempt to connect never takes all of the time in which one must succeed', () => {
  expect(limitsOf()).toEqual({ connectMs: 5000 })
  expect(limitsOf({ graceMs: 800 })).toEqual({ graceMs: 800, connectMs: 400 })
  expect(limitsOf({ graceMs: 800, connectMs: 100 })).toEqual({ graceMs: 800, connectMs: 100 })
  for (const connection of [{ connectMs: 10_000 }, { connectMs: 3000, graceMs: 2000 }, { connectMs: 2000, graceMs: 2000 }]) {
    expect(() => limitsOf(connection)).toThrow(/a connectMs below graceMs \(\d+\), got \d+/)
  }
  expect(() => limitsOf({ patience: 1 } as never)).toThrow('patience')
})

test.each([
  ['no connection to worker1 (1) within 10000 ms: tcp://10.0.0.2:41234: CONNECT_TIMEOUT, no answer within 5000 ms', true],
  ['no connection to worker1 (1) within 10000 ms: tcp://10.0.0.2:41234: no way to that host (EHOSTUNREACH)', true],
  // Refused, ended, or lost later: not a closed port.
  ['no connection to worker1 (1): tcp://10.0.0.2:41234: AUTH_FAILED, the other end refused', false],
  ['nothing came for 15000 ms; no new connection to worker1 (1) within 10000 ms: tcp://10.0.0.2:41234: CONNECT_TIMEOUT, no answer', false],
  ['its process ended or was cut off: rank 0 had no connection to it for 5 s', false],
])('INI-9 a worker that was never reached is a matter of ports and firewalls: %s', (detail, isFirewall) => {
  expect(deathRemedy(detail).includes('--ports')).toBe(isFirewall)
  expect(deathRemedy(detail)).not.toContain('launch')
})
