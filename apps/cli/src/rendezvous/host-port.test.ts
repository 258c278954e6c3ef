/** HOST:PORT, both ways. */
import { expect, test } from '@jest/globals'
import { formatHostPort, parseHostPort } from './host-port.js'

test.each(['node1:29500', '10.0.0.1:1', '[::1]:65535', '[fe80::1]:80', 'a-b.c:8080'])('CLI-1 %s', (text) => {
  expect(formatHostPort(parseHostPort(text)!)).toBe(text)
})

test.each([
  '',
  'node1',
  ':80',
  'node1:',
  'node1:0',
  'node1:65536',
  'node1:x',
  '::1:80',
  '[::1]',
  '[node]:80',
  'a b:80',
  'tcp://a:80',
  'a:80/x',
])('CLI-1 %j is none', (text) => {
  expect(parseHostPort(text)).toBeNull()
})
