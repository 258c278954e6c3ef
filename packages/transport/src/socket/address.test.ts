/** Addresses as text and in parts, and which of them only this machine can reach. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import fc from 'fast-check'
import {
  type Address,
  checkAddress,
  formatAddress,
  isLocal,
  isLoopback,
  loopbackWay,
  networkOf,
  parseAddress,
  UNIX_PATH_BYTES_MAX,
} from './address.js'

const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (isPostgradError(error)) return error.code
    throw error
  }
  return 'none'
}

describe('ADR-1 an address is read and written', () => {
  test.each<[string, Address]>([
    ['tcp://127.0.0.1:29500', { kind: 'tcp', host: '127.0.0.1', port: 29500 }],
    ['tcp://node-3.cluster.local:1', { kind: 'tcp', host: 'node-3.cluster.local', port: 1 }],
    ['tcp://[::1]:65535', { kind: 'tcp', host: '::1', port: 65535 }],
    ['tcp://[fe80::1%eth0]:80', { kind: 'tcp', host: 'fe80::1%eth0', port: 80 }],
    ['tcp://0.0.0.0:0', { kind: 'tcp', host: '0.0.0.0', port: 0 }],
    ['unix:/tmp/a b/w0.sock', { kind: 'unix', path: '/tmp/a b/w0.sock' }],
  ])('ADR-1 %s', (text, address) => {
    expect(parseAddress(text)).toEqual(address)
    expect(formatAddress(address)).toBe(text)
  })

  test('ADR-1 what was written is read as the same', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.constant('localhost'))
    const tcp = fc.record({ kind: fc.constant('tcp' as const), host, port: fc.nat(65_535) })
    const unix = fc.record({ kind: fc.constant('unix' as const), path: fc.stringMatching(/^\/[a-z0-9/._ :-]{0,90}$/) })
    fc.assert(
      fc.property(fc.oneof(tcp, unix), (address) => {
        expect(parseAddress(formatAddress(address))).toEqual(address)
      }),
    )
  })
})

describe('ADR-2 what is no address is refused', () => {
  test.each([
    ...['', 'tcp://', 'tcp://host', 'tcp://host:', 'tcp://:80', 'tcp://host:x', 'tcp://host:-1', 'tcp://host:65536', 'tcp://host:123456'],
    ...['tcp://::1:80', 'tcp://[host]:80', 'tcp://[127.0.0.1]:80', 'tcp://[]:80', 'tcp://host:80/', 'tcp://a/b:80', 'tcp://user@host:80'],
    ...['http://host:80', 'host:80', 'TCP://host:80', ' tcp://host:80', 'tcp://host:80\n', 'tcp://ho st:80', 'tcp://-h:80', 'tcp://h\0:80'],
    ...['unix:', 'unix:relative', 'unix://\0', 'unix:/a\0b', `unix:/${'a'.repeat(UNIX_PATH_BYTES_MAX)}`, `tcp://${'a'.repeat(254)}:1`],
  ])('ADR-2 %j', (text) => {
    expect(codeOf(() => parseAddress(text))).toBe('ADDRESS_INVALID')
  })

  test('ADR-2 a path of the longest kind goes, in bytes and not in letters', () => {
    expect(codeOf(() => parseAddress(`unix:/${'a'.repeat(UNIX_PATH_BYTES_MAX - 1)}`))).toBe('none')
    expect(codeOf(() => parseAddress(`unix:/${'ä'.repeat(60)}`))).toBe('ADDRESS_INVALID')
  })

  test.each([
    [null],
    [undefined],
    [{}],
    [{ kind: 'udp', host: 'a', port: 1 }],
    [{ kind: 'tcp', host: 'a', port: 1.5 }],
    [{ kind: 'tcp', host: 'a', port: '1' }],
    [{ kind: 'tcp', port: 1 }],
    [{ kind: 'unix' }],
  ])('ADR-2 parts that are none: %j', (parts) => {
    expect(codeOf(() => checkAddress(parts as Address))).toBe('ADDRESS_INVALID')
    expect(codeOf(() => formatAddress(parts as Address))).toBe('ADDRESS_INVALID')
  })

  test('ADR-2 no text makes anything but an address or the typed error, in one line', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: 'binary' }).map((text) => `tcp://${text}`),
          fc.string().map((text) => `unix:/${text}`),
        ),
        (text) => {
          try {
            checkAddress(parseAddress(text))
          } catch (error) {
            expect(isPostgradError(error, 'ADDRESS_INVALID')).toBe(true)
            expect((error as Error).message).not.toContain('\n')
          }
        },
      ),
    )
  })
})

describe('ADR-3 loopback is what only this machine reaches', () => {
  test.each([
    '127.0.0.1',
    '127.255.0.9',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::1%lo',
    'localhost',
    'LocalHost',
    'localhost.',
  ])('ADR-3 %s is', (host) => {
    expect(isLoopback(host)).toBe(true)
  })

  // Some resolvers read the last ones as 127.0.0.1: an uncertain host is not loopback.
  test.each([
    '0.0.0.0',
    '::',
    '128.0.0.1',
    '126.255.255.255',
    '10.0.0.1',
    '::2',
    '::ffff:10.0.0.1',
    '::ffff:0:127.0.0.1',
    'localhost.example.org',
    'my-localhost',
    '',
    '127.1',
    '2130706433',
  ])('ADR-3 %j is not', (host) => {
    expect(isLoopback(host)).toBe(false)
  })

  test('ADR-4 both ends of a connection over loopback name it alike, the dialler first; of any other they say nothing', () => {
    const way = (side: 'dialler' | 'listener', local: string, localPort: number, remote: string, remotePort: number) =>
      loopbackWay(side, { localAddress: local, localPort, remoteAddress: remote, remotePort })
    expect(way('dialler', '127.0.0.1', 40_001, '127.0.0.2', 5000)).toBe('127.0.0.1:40001>127.0.0.2:5000')
    expect(way('listener', '127.0.0.2', 5000, '127.0.0.1', 40_001)).toBe('127.0.0.1:40001>127.0.0.2:5000')
    expect(way('listener', '::ffff:127.0.0.2', 5000, '::ffff:127.0.0.1', 40_001)).toBe('127.0.0.1:40001>127.0.0.2:5000')
    expect(way('dialler', '::1', 40_001, '::1', 5000)).toBe('::1:40001>::1:5000')
    expect(way('dialler', '10.0.0.1', 40_001, '10.0.0.1', 5000)).toBe('')
    expect(way('dialler', '127.0.0.1', 40_001, '10.0.0.1', 5000)).toBe('')
    expect(loopbackWay('listener', {})).toBe('')
  })

  test.each([
    [undefined, 'unix'],
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::1', '::1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5::', '2001:db8:1:2::/64'],
  ])('ADR-5 who comes from %j counts as of %j', (address, place) => {
    expect(networkOf(address)).toBe(place)
  })

  test('ADR-3 a Unix socket is local, TCP by its host', () => {
    expect(isLocal(parseAddress('unix:/tmp/x'))).toBe(true)
    expect(isLocal(parseAddress('tcp://127.0.0.1:1'))).toBe(true)
    expect(isLocal(parseAddress('tcp://10.0.0.1:1'))).toBe(false)
  })
})
