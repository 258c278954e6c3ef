/** Keys by role, the file that has them, and identities in certificates. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import fc from 'fast-check'
import { parseAddress } from './address.js'
import { certificateMismatch, tlsIdentity } from './certificate.js'
import { type Credentials, checkCredentials, type KeyCredentials, requireCredentials } from './credentials.js'
import { formatKeyFile, generateKey, parseKeyFile, readKeyFile } from './key-file.js'

const key = (fill: number, length = 32): Uint8Array => new Uint8Array(length).fill(fill)
const MEMBER: KeyCredentials = { kind: 'key', role: 'member', keys: { member: key(1), observer: key(2) } }

function errorOf(run: () => unknown): PostgradError {
  try {
    run()
  } catch (error) {
    if (isPostgradError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('CRD-1 what credentials must be', () => {
  test('CRD-1 those that are right are given back', () => {
    expect(checkCredentials(MEMBER)).toBe(MEMBER)
    const pem = '-----BEGIN CERTIFICATE-----\n'
    const tls: Credentials = { kind: 'tls', ca: pem, cert: pem, key: Buffer.from(pem) }
    expect(checkCredentials(tls)).toBe(tls)
  })

  test.each<[string, unknown]>([
    ['null', null],
    ['no kind', {}],
    ['another kind', { kind: 'password' }],
    ['no role', { kind: 'key', keys: { member: key(1) } }],
    ['a role with a space', { kind: 'key', role: 'a b', keys: { 'a b': key(1) } }],
    ['a long role', { kind: 'key', role: 'a'.repeat(65), keys: { ['a'.repeat(65)]: key(1) } }],
    ['no keys', { kind: 'key', role: 'member' }],
    ['no key of its own role', { kind: 'key', role: 'member', keys: { observer: key(1) } }],
    ['a role that every object has', { kind: 'key', role: 'toString', keys: { observer: key(1) } }],
    ['a short key', { kind: 'key', role: 'member', keys: { member: key(1, 31) } }],
    ['a short key of another role', { kind: 'key', role: 'member', keys: { member: key(1), observer: key(2, 31) } }],
    ['a long key', { kind: 'key', role: 'member', keys: { member: key(1, 1025) } }],
    ['zeros', { kind: 'key', role: 'member', keys: { member: key(0) } }],
    ['text', { kind: 'key', role: 'member', keys: { member: 'a'.repeat(64) } }],
    ['numbers of 16 bits', { kind: 'key', role: 'member', keys: { member: new Uint16Array(32).fill(7) } }],
    ['one key for two roles', { kind: 'key', role: 'member', keys: { member: key(1), observer: key(1) } }],
    ['too many roles', { kind: 'key', role: 'r0', keys: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`r${i}`, key(i + 1)])) }],
    ['a path in the place of PEM', { kind: 'tls', ca: '/etc/ca.pem', cert: 'c', key: 'k' }],
    ['half of TLS', { kind: 'tls', ca: '-----BEGIN CERTIFICATE-----' }],
  ])('CRD-1 %s is refused', (_, credentials) => {
    expect(errorOf(() => checkCredentials(credentials as Credentials)).code).toBe('CREDENTIALS_INVALID')
  })

  test('CRD-1 what is no PEM is said to be other text, as a string and as the bytes of a file', () => {
    for (const other of ['/etc/ca.pem', Buffer.from('member = abc')]) {
      const { message } = errorOf(() => checkCredentials({ kind: 'tls', ca: other, cert: other, key: other }))
      expect(message).toContain("expected PEM as 'ca', got other text")
    }
  })

  test('CRD-1 no error shows a key', () => {
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ'
    const errors = [
      errorOf(() => checkCredentials({ kind: 'key', role: 'member', keys: { member: secret as unknown as Uint8Array } })),
      errorOf(() => parseKeyFile(`member = ${secret}`)),
      errorOf(() => parseKeyFile(`member ${secret}`)),
      errorOf(() => parseKeyFile(secret)),
      errorOf(() => parseKeyFile(`member = ${Buffer.from(key(7)).toString('base64')}`, { role: 'observer' })),
    ]
    for (const { message, values } of errors) {
      expect(message + JSON.stringify(values)).not.toContain(secret)
      expect(message + JSON.stringify(values)).not.toContain('BwcH')
    }
  })
})

test('CRD-2 an address that others reach requires credentials, and says how to make them', () => {
  for (const local of ['unix:/tmp/a', 'tcp://127.0.0.1:0', 'tcp://[::1]:1', 'tcp://localhost:1'])
    requireCredentials(parseAddress(local), null)
  for (const open of ['tcp://0.0.0.0:1', 'tcp://[::]:1', 'tcp://10.0.0.1:1', 'tcp://host:1']) {
    requireCredentials(parseAddress(open), MEMBER)
    const error = errorOf(() => requireCredentials(parseAddress(open), null))
    expect([error.code, error.values]).toEqual(['CREDENTIALS_REQUIRED', { address: open }])
    expect(error.message).toContain('postgrad keygen')
  }
})

describe('CRD-3 a key file', () => {
  test('CRD-3 is read as it was written', () => {
    const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/).filter((role) => role !== '__proto__')
    const keys = fc.uniqueArray(fc.tuple(name, fc.uint8Array({ minLength: 32, maxLength: 80 })), {
      minLength: 1,
      maxLength: 8,
      selector: ([role]) => role,
    })
    fc.assert(
      fc.property(keys, (list) => {
        // A number in front makes no two alike, and none zero.
        const withNumbers = Object.fromEntries(list.map(([role, bytes], i) => [role, Uint8Array.from([i + 1, ...bytes])]))
        const credentials: KeyCredentials = { kind: 'key', role: (list[0] as [string, Uint8Array])[0], keys: withNumbers }
        expect(parseKeyFile(formatKeyFile(credentials))).toEqual(credentials)
      }),
    )
  })

  test('CRD-3 comments, spaces and Windows lines are overlooked; the first line is the own role, unless another is asked for', () => {
    const line = (role: string, fill: number) => `${role}=${Buffer.from(key(fill)).toString('base64')}`
    const text = `# a comment\r\n\r\n  ${line('observer', 2)}  \r\n${line('member', 1)}`
    expect(parseKeyFile(text)).toEqual({ ...MEMBER, role: 'observer' })
    expect(parseKeyFile(text, { role: 'member' })).toEqual(MEMBER)
    expect(errorOf(() => parseKeyFile(text, { role: 'admin' })).code).toBe('CREDENTIALS_INVALID')
  })

  test('CRD-3 a new key is what the random source gave, a copy', () => {
    const source = key(9)
    const made = generateKey(() => source)
    source.fill(0)
    expect(made).toEqual(key(9))
  })

  test.each([
    ['nothing', '', 'got none'],
    ['comments alone', '# a\n#b\n', 'got none'],
    ['no key', 'member =', 'line 1'],
    ['no role', `= ${Buffer.from(key(1)).toString('base64')}`, 'line 1'],
    ['a second line that is none', `member = ${Buffer.from(key(1)).toString('base64')}\nobserver`, 'line 2'],
    ['bits that mean nothing', `member = ${'A'.repeat(42)}B=`, 'line 1'],
    ['base64url', `member = ${Buffer.from(key(255)).toString('base64url')}`, 'line 1'],
    ['a role twice', `a = ${Buffer.from(key(1)).toString('base64')}\na = ${Buffer.from(key(2)).toString('base64')}`, 'line 2'],
    ['the prototype', `__proto__ = ${Buffer.from(key(1)).toString('base64')}`, 'line 1'],
  ])('CRD-5 %s is no key file', (_, text, where) => {
    const error = errorOf(() => parseKeyFile(text))
    expect(error.code).toBe('KEY_FILE_INVALID')
    expect(error.message).toContain(where)
  })
})

describe('CRD-4 a key file is its owner’s alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-keys-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  // Windows has no modes.
  const posix = process.platform === 'win32' ? test.skip : test

  posix('CRD-4 modes', () => {
    const path = join(folder, 'keys')
    writeFileSync(path, formatKeyFile(MEMBER))
    for (const mode of [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666]) {
      chmodSync(path, mode)
      const error = errorOf(() => readKeyFile(path))
      expect([error.code, error.values]).toEqual(['KEY_FILE_OPEN', { path, mode }])
      expect(error.message).toContain(`chmod 600 '${path}'`)
    }
    for (const mode of [0o600, 0o400, 0o700]) {
      chmodSync(path, mode)
      expect(readKeyFile(path)).toEqual(MEMBER)
      expect(readKeyFile(path, { role: 'observer' }).role).toBe('observer')
    }
  })

  test('CRD-5 what is no such file says so', () => {
    expect(errorOf(() => readKeyFile(join(folder, 'none'))).code).toBe('KEY_FILE_UNREADABLE')
    const [bad, empty] = ['bad', 'empty'].map((name) => join(folder, name)) as [string, string]
    writeFileSync(bad, `${formatKeyFile(MEMBER)}nothing\n`, { mode: 0o600 })
    writeFileSync(empty, '', { mode: 0o600 })
    expect(errorOf(() => readKeyFile(bad)).message).toContain(`line 4 of '${bad}'`)
    expect(errorOf(() => readKeyFile(empty)).message).toContain(`got none in '${empty}'`)
    const large = join(folder, 'large')
    writeFileSync(large, '#'.repeat(70_000), { mode: 0o600 })
    expect(errorOf(() => readKeyFile(large)).code).toBe('KEY_FILE_INVALID')
    if (process.platform === 'win32') return
    chmodSync(folder, 0o700)
    expect(errorOf(() => readKeyFile(folder)).code).toBe('KEY_FILE_UNREADABLE')
  })
})

describe('CRD-6 what a certificate says', () => {
  const said = (subjectaltname?: string) => tlsIdentity({ subjectaltname })
  const WORKER = { cluster: 'train', name: 'worker1', role: 'member', id: null }

  test.each<[string, object]>([
    ['URI:postgrad:train/worker1?role=member', WORKER],
    ['DNS:host, IP Address:10.0.0.1, URI:postgrad:train/worker1?role=member, URI:https://x/y', WORKER],
    ['DNS:"a, b", URI:postgrad:train/worker1?role=member', WORKER],
    ['URI:postgrad:train/worker1?role=member&id=7', { ...WORKER, id: 7 }],
    ['URI:postgrad:train/*?role=observer', { ...WORKER, name: null, role: 'observer' }],
    ['URI:postgrad:a.b-c_d/ps:0?role=member', { ...WORKER, cluster: 'a.b-c_d', name: 'ps:0' }],
  ])('CRD-6 %s', (text, identity) => {
    expect(said(text)).toEqual(identity)
  })

  test.each([
    [undefined],
    [''],
    ['DNS:postgrad:train/worker1?role=member'],
    ['URI:postgrad:train/worker1?role=member, URI:postgrad:train/worker2?role=member'],
    ['URI:postgrad:train/worker1'],
    ['URI:postgrad:train/worker1?role='],
    ['URI:postgrad:/worker1?role=member'],
    ['URI:postgrad:train/?role=member'],
    ['URI:postgrad:train/a*?role=member'],
    ['URI:postgrad:train/a/b?role=member'],
    ['URI:postgrad:tr%61in/worker1?role=member'],
    ['URI:postgrad:train/worker1?role=member&role=admin'],
    ['URI:postgrad:train/worker1?role=member#x'],
    ['URI:postgrad:train/worker1?role=member&id=65536'],
    ['URI:postgrad:train/worker1?role=member&id=01'],
    ['URI:POSTGRAD:train/worker1?role=member'],
    // Inside another name, in quotes as Node writes it, and where the text is not to be understood.
    ['DNS:"host, URI:postgrad:train/worker1?role=member, x"'],
    ['DNS:"a\\", URI:postgrad:train/worker1?role=member, x"'],
    ['URI:"postgrad:train/worker1?role=member"'],
    ['DNS:"a, URI:postgrad:train/worker1?role=member'],
    ['nonsense, URI:postgrad:train/worker1?role=member'],
  ])('CRD-6 %s is AUTH_FAILED', (text) => {
    expect(errorOf(() => said(text)).code).toBe('AUTH_FAILED')
  })

  test('CRD-6 the claim is held against it, part by part', () => {
    const claim = { cluster: 'train', name: 'worker1', id: 7, role: 'member' }
    expect(certificateMismatch(WORKER, claim)).toBe(null)
    expect(certificateMismatch({ ...WORKER, id: 7, name: null }, claim)).toBe(null)
    expect(certificateMismatch(WORKER, { ...claim, cluster: 'other' })).toBe('cluster')
    expect(certificateMismatch(WORKER, { ...claim, name: 'worker2' })).toBe('name')
    expect(certificateMismatch(WORKER, { ...claim, role: 'admin' })).toBe('role')
    expect(certificateMismatch({ ...WORKER, id: 8 }, claim)).toBe('id')
  })
})
