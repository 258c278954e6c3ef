/** Key files: their text, their mode, and that none is overwritten. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { keyFiles, writeKeyFile } from './key-files.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-keys-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const counting = () => {
  let next = 0
  return (bytes: number): Uint8Array => new Uint8Array(bytes).fill(++next)
}
const key = (byte: number): string => Buffer.alloc(32, byte).toString('base64')
const FIRST =
  '# postgrad keys: a process that reads this file can be in these roles. A process that uses it has the role of the first line.\n'

describe('keyFiles', () => {
  test('CLI-60 32 random bytes for each role, and a file of its own for each further one', () => {
    expect(keyFiles({ role: ['member'], out: 'a.key' }, counting())).toEqual([
      { path: 'a.key', text: `${FIRST}member = ${key(1)}\n`, role: null },
    ])
    expect(keyFiles({ role: ['member', 'observer', 'x'], out: 'd.d/keys' }, counting())).toEqual([
      { path: 'd.d/keys', text: `${FIRST}member = ${key(1)}\nobserver = ${key(2)}\nx = ${key(3)}\n`, role: null },
      { path: 'd.d/keys.observer', text: `${FIRST}observer = ${key(2)}\n`, role: 'observer' },
      { path: 'd.d/keys.x', text: `${FIRST}x = ${key(3)}\n`, role: 'x' },
    ])
    expect(keyFiles({ role: ['a', 'b'], out: './c.key' }, counting())[1]?.path).toBe('./c.b.key')
    expect(keyFiles({ role: ['a', 'b'], out: '.key' }, counting())[1]?.path).toBe('.key.b')
  })

  test.each([[['']], [['a b']], [['a', 'a']], [['a=b']], [['__proto__']], [['x'.repeat(65)]]])('CLI-60 roles %j are refused', (role) => {
    expect(() => keyFiles({ role, out: 'k' }, counting())).toThrow(expect.objectContaining({ code: 'ROLE_INVALID' }))
  })
})

describe('writeKeyFile', () => {
  test('CLI-60 is its owner’s alone from the start, and replaced only by force, then too', () => {
    const path = join(folder, 'one.key')
    const mode = (): number => statSync(path).mode & 0o777
    writeKeyFile(path, 'first\n', false)
    expect([readFileSync(path, 'utf8'), mode()]).toEqual(['first\n', 0o600])
    expect(() => writeKeyFile(path, 'second\n', false)).toThrow(expect.objectContaining({ code: 'KEY_FILE_EXISTS' }))
    expect(readFileSync(path, 'utf8')).toBe('first\n')
    writeKeyFile(path, 'second\n', true)
    expect([readFileSync(path, 'utf8'), mode()]).toEqual(['second\n', 0o600])
    const open = join(folder, 'open.key')
    writeFileSync(open, 'x', { mode: 0o644 })
    writeKeyFile(open, 'y', true)
    expect(statSync(open).mode & 0o777).toBe(0o600)
  })

  test('CLI-60 a folder that is not there', () => {
    expect(() => writeKeyFile(join(folder, 'no/k'), 'x', false)).toThrow(expect.objectContaining({ code: 'KEY_FILE_UNWRITABLE' }))
  })
})
